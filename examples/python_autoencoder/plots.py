"""Pictures of a training, with Matplotlib."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from digits import Images
from training import History


def draw(history: History, parameters: dict[str, Any], images: Images, drawn: Images) -> Any:
    """The loss, how w_b comes to match w_f, the filters, and images above their reconstructions."""
    figure = plt.figure(figsize=(11, 8), layout="constrained")
    curves, filters, pictures = figure.subfigures(3, 1, height_ratios=(2, 1, 1))
    loss, match = curves.subplots(1, 2)
    loss.semilogy(range(1, len(history.loss) + 1), history.loss)
    loss.set(title="loss", xlabel="epoch", ylabel="half the squared error of an image")
    match.plot(range(1, len(history.cosine) + 1), history.cosine)
    match.set(title="w_b comes to match w_f", xlabel="epoch", ylabel="mean cosine", ylim=(-0.1, 1))
    show_pairs(filters, parameters["w_f"], parameters["w_b"], ("w_f", "w_b"))
    show_pairs(pictures, images, drawn, ("image", "drawn"))
    return figure


def show_pairs(figure: Any, above: Any, below: Any, names: tuple[str, str]) -> None:
    axes = figure.subplots(2, len(above), squeeze=False)
    for row, (pictures, name) in enumerate(zip((above, below), names, strict=True)):
        for column, picture in enumerate(pictures):
            axes[row, column].imshow(picture[0], cmap="gray")
            axes[row, column].set(xticks=[], yticks=[])
        axes[row, 0].set_ylabel(name)
