"""Training, for either model: Adam, and what is recorded on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LossAndGradients = Callable[[dict[str, Any], Any], tuple[float, dict[str, Any]]]


@dataclass
class Options:
    epochs: int = 40
    batch: int = 32
    learning_rate: float = 0.02
    weight_decay: float = 0.02


@dataclass
class History:
    """One entry for each epoch."""

    loss: list[float] = field(default_factory=list)
    cosine: list[float] = field(default_factory=list)


class Adam:
    """Kingma and Ba, 2015. Weight decay adds weight_decay * value to every gradient: that of an L2 penalty."""

    def __init__(self, weight_decay: float) -> None:
        self._weight_decay = weight_decay
        self._steps = 0
        self._first: dict[str, Any] = {}
        self._second: dict[str, Any] = {}

    def step(self, parameters: dict[str, Any], gradients: dict[str, Any], learning_rate: float) -> None:
        self._steps += 1
        for name, value in parameters.items():
            gradient = gradients[name] + self._weight_decay * value
            first = self._first[name] = 0.9 * self._first.get(name, 0) + 0.1 * gradient
            second = self._second[name] = 0.999 * self._second.get(name, 0) + 0.001 * gradient**2
            mean, square = first / (1 - 0.9**self._steps), second / (1 - 0.999**self._steps)
            parameters[name] = value - learning_rate * mean / (square**0.5 + 1e-8)


def cosine(parameters: dict[str, Any]) -> float:
    """Between the filters of encoder and decoder, in the mean. ConvTranspose with a filter is the transpose of Conv
    with it: at 1 the decoder undoes the encoder as a transposed matrix would."""
    w_f, w_b = parameters["w_f"], parameters["w_b"]
    axes = (1, 2, 3)
    product = (w_f * w_b).sum(axes)
    return float((product / ((w_f**2).sum(axes) * (w_b**2).sum(axes)) ** 0.5).mean())


def train(
    loss_and_gradients: LossAndGradients,
    parameters: dict[str, Any],
    images: Any,
    options: Options,
    random: np.random.Generator,
) -> Iterator[History]:
    """Changes the parameters, and yields what has been recorded after each epoch."""
    history, adam = History(), Adam(options.weight_decay)
    batches = len(images) // options.batch
    for epoch in range(options.epochs):
        order = random.permutation(len(images))
        total = 0.0
        for i in range(batches):
            chosen = images[order[i * options.batch : (i + 1) * options.batch]]
            loss, gradients = loss_and_gradients(parameters, chosen)
            done = (epoch + i / batches) / options.epochs
            adam.step(parameters, gradients, options.learning_rate * (1 + math.cos(math.pi * done)) / 2)
            total += loss
        history.loss.append(total / batches)
        history.cosine.append(cosine(parameters))
        yield history
