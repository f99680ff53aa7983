"""Which convolutions keep what is not finite to the results that it reaches: python bench/padding.py [--json FILE]

One element of an operand is NaN. A result that has a product with it must be NaN as well; all others must be finite.
A kernel that multiplies padding, which is zero, or zeros that fill its tiles, makes others NaN too. Asked are, on one
GPU, Gradsmith by default and under the policy `exact_padding`, PyTorch and JAX, for the result of each primitive and
each of its two operands, whose first, middle and last element is NaN in turn. What an element reaches is counted by
convolutions of ones in float64 on the CPU. Printed is a table of how many of the asked kept it, as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradsmith
import torch

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory beside it
import jax  # noqa: E402

PRIMITIVES = {"Y": ("X", "W"), "dX": ("dY", "W"), "dW": ("dY", "X")}
TYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bf16": torch.bfloat16}
LAYOUTS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Layer:
    """A convolution in two dimensions, with the same pads and strides on both axes."""

    name: str
    x: tuple[int, int, int, int]
    channels: int
    taps: int
    pads: int = 0
    strides: int = 1
    groups: int = 1

    @property
    def w(self) -> tuple[int, int, int, int]:
        return (self.channels, self.x[1] // self.groups, self.taps, self.taps)

    def y(self) -> tuple[int, int, int, int]:
        rows, columns = ((size + 2 * self.pads - self.taps) // self.strides + 1 for size in self.x[2:])
        return (self.x[0], self.channels, rows, columns)


LAYERS = [
    Layer("3x3, pads 1", (8, 64, 28, 28), 64, 3, pads=1),
    Layer("3x3, no pads", (8, 64, 28, 28), 64, 3),
    Layer("3x3, pads 1, steps of 2", (8, 64, 28, 28), 128, 3, pads=1, strides=2),
    Layer("1x1", (8, 64, 28, 28), 256, 1),
    Layer("7x7, pads 3, steps of 2, images", (8, 3, 112, 112), 64, 7, pads=3, strides=2),
    Layer("3x3, pads 1, 16 groups", (8, 64, 28, 28), 64, 3, pads=1, groups=16),
    Layer("3x3, pads 1, depthwise", (8, 64, 28, 28), 64, 3, pads=1, groups=64),
]


def by_torch(layer: Layer, result: str, of: Tensors) -> torch.Tensor:
    settings = {"stride": layer.strides, "padding": layer.pads, "groups": layer.groups}
    if result == "Y":
        return torch.nn.functional.conv2d(of["X"], of["W"], **settings)
    steps, pads = [layer.strides] * 2, [layer.pads] * 2
    mask = [result == "dX", result == "dW", False]
    gradients = torch.ops.aten.convolution_backward(
        of["dY"], of["X"], of["W"], None, steps, pads, [1, 1], False, [0, 0], layer.groups, mask
    )
    return next(gradient for gradient in gradients if gradient is not None)


def by_gradsmith(context: gradsmith.Context) -> Callable[[Layer, str, Tensors], torch.Tensor]:
    def compute(layer: Layer, result: str, of: Tensors) -> torch.Tensor:
        settings: dict[str, Any] = {
            "strides": [layer.strides] * 2,
            "pads": [layer.pads] * 4,
            "group": layer.groups,
            "context": context,
        }
        if result == "Y":
            return gradsmith.conv(of["X"], of["W"], **settings).Y
        return getattr(gradsmith.conv_grad(of["dY"], of["X"], of["W"], outputs=result, **settings), result)

    return compute


def by_jax(layer: Layer, result: str, of: Tensors) -> torch.Tensor:
    x, w, dy = (jax.dlpack.from_dlpack(of[name].contiguous()) for name in ("X", "W", "dY"))

    def forward(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, [layer.strides] * 2, [(layer.pads, layer.pads)] * 2, feature_group_count=layer.groups
        )

    if result == "Y":
        value = jax.jit(forward)(x, w)
    else:
        place = 0 if result == "dX" else 1
        value = jax.jit(lambda x, w, dy: jax.vjp(forward, x, w)[1](dy)[place])(x, w, dy)
    return torch.from_dlpack(value)


LIBRARIES: dict[str, Callable[[Layer, str, Tensors], torch.Tensor]] = {
    "Gradsmith": by_gradsmith(gradsmith.Context(cache="off")),
    "Gradsmith, `exact_padding`": by_gradsmith(gradsmith.Context(cache="off", exact_padding=True)),
    "PyTorch": by_torch,
    "JAX": by_jax,
}


def places(count: int) -> list[int]:
    return sorted({0, count // 2, count - 1})


def tensors_of(layer: Layer, dtype: torch.dtype, layout: torch.memory_format) -> Tensors:
    torch.manual_seed(1)
    shapes = {"X": layer.x, "W": layer.w, "dY": layer.y()}
    return {
        name: torch.rand(shape, dtype=dtype, device="cuda").to(memory_format=layout) for name, shape in shapes.items()
    }


def reached(layer: Layer, result: str, operand: str, place: int) -> torch.Tensor:
    """Where a result has a product with an element of an operand, by float64 on the CPU."""
    shapes = {"X": layer.x, "W": layer.w, "dY": layer.y()}
    ones = {name: torch.ones(shape, dtype=torch.float64) for name, shape in shapes.items()}
    ones[operand].zero_()
    ones[operand].view(-1)[place] = 1
    return by_torch(layer, result, ones) != 0


def questions() -> Iterator[tuple[Layer, str, str, int, torch.Tensor]]:
    for layer in LAYERS:
        shapes = {"X": layer.x, "W": layer.w, "dY": layer.y()}
        for result, operands in PRIMITIVES.items():
            for operand in operands:
                for place in places(torch.Size(shapes[operand]).numel()):
                    yield layer, result, operand, place, reached(layer, result, operand, place)


def keeps(compute: Callable[[Layer, str, Tensors], torch.Tensor], asked: Any, of: Tensors) -> bool:
    layer, result, operand, place, expected = asked
    given = {name: tensor.clone() for name, tensor in of.items()}
    index = [int(one) for one in torch.unravel_index(torch.tensor(place), given[operand].shape)]
    given[operand][tuple(index)] = torch.nan
    found = ~torch.isfinite(compute(layer, result, given)).cpu()
    return bool(torch.equal(found, expected))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    asked = list(questions())
    kept: dict[str, dict[str, int]] = {library: {} for library in LIBRARIES}
    for type_name, dtype in TYPES.items():
        for layout_name, layout in LAYOUTS.items():
            of_layer = {layer.name: tensors_of(layer, dtype, layout) for layer in LAYERS}
            for library, compute in LIBRARIES.items():
                count = sum(keeps(compute, question, of_layer[question[0].name]) for question in asked)
                kept[library][f"{type_name} {layout_name}"] = count
    columns = list(kept["PyTorch"])
    print(f"| kept of {len(asked)} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for library, counts in kept.items():
        print(f"| {library} | {' | '.join(str(counts[column]) for column in columns)} |")
    if arguments.json:
        told = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "jax": jax.__version__}
        told |= {"cudnn": torch.backends.cudnn.version(), "python": platform.python_version()}
        arguments.json.write_text(json.dumps({"machine": told, "asked": len(asked), "kept": kept}, indent=1) + "\n")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
