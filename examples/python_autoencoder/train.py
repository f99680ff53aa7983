"""Trains an autoencoder on handwritten digits: python train.py [--library numpy|torch] [--device cuda] [--plot FILE]

image 8x8 -> conv(w_f) -> batch_normalization -> ReLU -> code -> conv_transpose(w_b) -> image 8x8
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import Any

import digits
import numpy as np
import numpy_model
from training import Options, train

LARGEST_RATIO = 0.1  # of the error of drawing the mean image each time


def main() -> int:
    options = _parser().parse_args()
    lacking = _lacking(options)
    if lacking:
        print(f"train.py: {lacking}", file=sys.stderr)
        return 1
    random = np.random.default_rng(options.seed)
    data = digits.read(random)
    parameters: dict[str, Any] = numpy_model.initial_parameters(random, filters=12, side=6)
    images: Any = data.training
    loss_and_gradients = numpy_model.loss_and_gradients
    if options.library == "torch":
        import torch
        import torch_model

        loss_and_gradients = torch_model.loss_and_gradients
        parameters = {name: torch.from_numpy(one).to(options.device) for name, one in parameters.items()}
        images = torch.from_numpy(images).to(options.device)

    for history in train(loss_and_gradients, parameters, images, Options(epochs=options.epochs), random):
        epoch = len(history.loss)
        if epoch == 1 or epoch % 5 == 0:
            print(f"epoch {epoch:3}  loss {history.loss[-1]:7.4f}  cosine of w_f and w_b {history.cosine[-1]:6.3f}")

    trained = {name: np.asarray(one.cpu() if options.library == "torch" else one) for name, one in parameters.items()}
    drawn = numpy_model.reconstruct(trained, data.held_out)
    error = float(((drawn - data.held_out) ** 2).mean())
    ratio = error / float(((data.training.mean(0) - data.held_out) ** 2).mean())
    print(f"the held-out error is {ratio:.4f} of the mean image's; at most {LARGEST_RATIO} was to be reached")
    if options.plot:
        from plots import draw

        draw(history, trained, data.held_out[:12], drawn[:12]).savefig(options.plot)
    return 0 if ratio <= LARGEST_RATIO else 1


def _lacking(options: argparse.Namespace) -> str:
    """What the options need and is not installed, before the time of a training is spent; empty where all is there."""
    needs = {"--library torch": ("torch", options.library == "torch"), "--plot": ("matplotlib", bool(options.plot))}
    for option, (module, is_wanted) in needs.items():
        if is_wanted and not find_spec(module):
            return f"{option} needs {module}, which is not installed: pip install {module}"
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=("numpy", "torch"), default="numpy")
    parser.add_argument("--device", default="cpu", help="PyTorch's name of it, such as cuda (default: cpu)")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", metavar="FILE.png", help="draw the training; needs Matplotlib")
    return parser


if __name__ == "__main__":
    sys.exit(main())
