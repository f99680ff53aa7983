#!/usr/bin/env python3
"""Layers drawn at random, as networks have them: a suite for gpu_benchmark.py of what nobody chose. Needs no GPU.

    python3 bench/random_layers.py --seed 1 --count 500 --out build/random.tsv [--transposed]
    python3 bench/gpu_benchmark.py --program PROGRAM --only conv --suite build/random.tsv --cases-only

Without --out it prints them. --transposed draws transposed convolutions, for --only conv_transpose. A seed has the same
layers everywhere, and the layers of a smaller count are the first of a larger.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from gpu_conv_shapes import ConvShape
from gpu_suites import SIZES, Case, suite_text, write_suite

MOST_BYTES = 2_000_000_000  # of all tensors of a call: X, W and dY, and dX and dW
MOST_PRODUCTS = 1_000_000_000_000  # of dX, and as many of dW; a quarter of it without 16-bit numbers
MOST_DEPTHWISE_PRODUCTS = 50_000_000_000
FEWEST_PRODUCTS = 1_000_000
FEWEST_BYTES = 500_000

TYPES = ("f16",) * 10 + ("bf16",) * 4 + ("tf32",) * 3 + ("f32",) * 2 + ("f64",)
LAYOUTS = ("NCHW", "NHWC")
BATCHES = (1, 2, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 256)
SIZES_2D = (4, 7, 8, 13, 14, 16, 19, 20, 28, 32, 38, 40, 56, 64, 80, 96, 112, 128, 160, 224, 256)
IMAGES = (96, 112, 128, 160, 192, 224, 256, 299, 320, 384, 512)
LENGTHS = (64, 100, 128, 250, 256, 499, 512, 800, 1000, 1024, 1500, 2048, 3000, 4096, 8192)
CLIPS = ((8, 28, 28), (8, 56, 56), (16, 14, 14), (16, 56, 56))
VOLUMES = (*CLIPS, (24, 24, 24), (32, 32, 32), (48, 48, 48), (64, 64, 64))
ODD_CHANNELS = (5, 7, 10, 12, 17, 18, 21, 27, 30, 33, 36, 50, 54, 75, 97, 100, 116, 150, 255)
FEW_CHANNELS = (16, 24, 32, 32, 48, 64, 64, 64, 80, 96)
USUAL_CHANNELS = (*FEW_CHANNELS, 128, 128, 128, 160, 192, 256, 256, 256, 320, 384, 512, 512, 768, 1024)

Layer = dict[str, list[int] | int | str]


def channels(draw: Random) -> int:
    kind = draw.randrange(20)
    if kind == 0:
        return draw.choice(ODD_CHANNELS)
    return 8 * draw.randrange(1, 80) if kind < 4 else draw.choice(USUAL_CHANNELS)


def layer(
    kind: str,
    spatial: Sequence[int],
    kernel: Sequence[int],
    *,
    inputs: int,
    outputs: int,
    groups: int = 1,
    stride: Sequence[int] | None = None,
    pad: Sequence[int] | None = None,
    pad_end: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> Layer:
    """By default one that keeps the size, or half of it by steps of two."""
    dilation = dilation or [1] * len(spatial)
    pad = [a * (k - 1) // 2 for k, a in zip(kernel, dilation, strict=True)] if pad is None else pad
    return {
        "kind": kind,
        "C": inputs,
        "K": outputs,
        "groups": groups,
        "spatial": [*spatial],
        "kernel": [*kernel],
        "stride": [*(stride or [1] * len(spatial))],
        "pad": [*pad],
        "pad_end": [*(pad if pad_end is None else pad_end)],
        "dilation": [*dilation],
    }


def square(draw: Random) -> list[int]:
    """Mostly; some are as wide again by half, as those of detectors."""
    size = draw.choice(SIZES_2D)
    return [size, size * 3 // 2] if draw.randrange(8) == 0 else [size, size]


def pointwise(draw: Random) -> Layer:
    step = 2 if draw.randrange(10) == 0 else 1
    return layer(
        "1x1", square(draw), [1, 1], inputs=channels(draw), outputs=channels(draw), stride=[step, step]
    )  # fmt: skip


def window(draw: Random) -> Layer:
    size = draw.choice((3, 3, 3, 3, 3, 3, 5, 5, 7, 4))
    step = draw.choice((1, 1, 1, 2))
    dilation = draw.choice((2, 4, 6)) if size == 3 and step == 1 and draw.randrange(8) == 0 else 1
    no_pad = draw.randrange(12) == 0
    return layer(
        "dilated" if dilation > 1 else "window",
        square(draw),
        [size, size],
        inputs=channels(draw),
        outputs=channels(draw),
        stride=[step, step],
        dilation=[dilation, dilation],
        pad=[0, 0] if no_pad else None,
    )


def flat_window(draw: Random) -> Layer:
    size = draw.choice((3, 5, 7, 11, 15))
    kernel = [1, size] if draw.randrange(2) else [size, 1]
    return layer("flat", square(draw), kernel, inputs=channels(draw), outputs=channels(draw))


def stem(draw: Random) -> Layer:
    size, step = draw.choice(((3, 2), (3, 1), (7, 2), (7, 2), (5, 1), (9, 1), (11, 4), (4, 2)))
    side = draw.choice(IMAGES)
    inputs = draw.choice((3, 3, 3, 3, 1, 4, 6))
    return layer(
        "stem", [side, side], [size, size], inputs=inputs, outputs=draw.choice((16, 24, 32, 40, 64, 64, 96)),
        stride=[step, step],
    )  # fmt: skip


def head(draw: Random) -> Layer:
    """To few channels, as a network's last layer."""
    size = draw.choice((1, 3, 3, 9))
    outputs = draw.choice((1, 2, 3, 3, 4, 19, 21))
    return layer("head", square(draw), [size, size], inputs=channels(draw), outputs=outputs)


def patches(draw: Random) -> Layer:
    size = draw.choice((2, 2, 2, 4, 4, 8, 14, 16, 16, 32))
    if size == 2 and draw.randrange(2):
        inputs = draw.choice((64, 96, 128, 192, 256, 384))
        side = draw.choice((14, 28, 32, 56, 64))
        return layer("patches", [side, side], [2, 2], inputs=inputs, outputs=2 * inputs, stride=[2, 2], pad=[0, 0])
    side = draw.choice((224, 224, 256, 384, 512))
    return layer(
        "patches", [side, side], [size, size], inputs=draw.choice((3, 3, 1, 4)),
        outputs=draw.choice((96, 128, 192, 384, 768, 1024)), stride=[size, size], pad=[0, 0],
    )  # fmt: skip


def depthwise(draw: Random) -> Layer:
    size = draw.choice((3, 3, 3, 3, 5, 5, 7, 7, 9, 13, 21, 31))
    step = draw.choice((1, 1, 1, 2)) if size < 9 else 1
    count = channels(draw)
    side = square(draw)
    return layer(
        "depthwise", side, [size, size], inputs=count, outputs=count * (2 if draw.randrange(16) == 0 else 1),
        groups=count, stride=[step, step],
    )  # fmt: skip


def grouped(draw: Random) -> Layer:
    groups = draw.choice((2, 4, 8, 16, 32, 32))
    width = draw.choice((1, 2, 4, 4, 8, 8, 16, 24, 32, 64))
    size, step = draw.choice(((3, 1), (3, 1), (3, 2), (1, 1), (5, 1)))
    more = draw.choice((1, 1, 1, 2))
    return layer(
        "grouped", square(draw), [size, size], inputs=groups * width, outputs=groups * width * more, groups=groups,
        stride=[step, step],
    )  # fmt: skip


def sequence(draw: Random) -> Layer:
    size = draw.choice((1, 3, 3, 5, 7, 9, 11, 15))
    step = draw.choice((1, 1, 1, 2, 4)) if size > 1 else 1
    dilation = draw.choice((1, 1, 1, 2, 4, 8, 16, 64)) if size == 3 and step == 1 else 1
    causal = draw.randrange(4) == 0
    reach = dilation * (size - 1)
    return layer(
        "sequence", [draw.choice(LENGTHS)], [size], inputs=channels(draw), outputs=channels(draw), stride=[step],
        dilation=[dilation], pad=[reach] if causal else None, pad_end=[0] if causal else None,
    )  # fmt: skip


def depthwise_sequence(draw: Random) -> Layer:
    size = draw.choice((3, 4, 4, 7, 9, 15, 31, 63))
    causal = size == 4 or draw.randrange(4) == 0
    count = draw.choice((128, 256, 512, 512, 768, 1024, 2048, 4096))
    return layer(
        "depthwise sequence", [draw.choice(LENGTHS)], [size], inputs=count, outputs=count, groups=count,
        pad=[size - 1] if causal else None, pad_end=[0] if causal else None,
    )  # fmt: skip


def volume(draw: Random) -> Layer:
    kernel, stride = draw.choice(
        (
            ((3, 3, 3), (1, 1, 1)),
            ((3, 3, 3), (1, 1, 1)),
            ((3, 3, 3), (2, 2, 2)),
            ((1, 3, 3), (1, 1, 1)),
            ((3, 1, 1), (1, 1, 1)),
            ((1, 1, 1), (1, 1, 1)),
            ((3, 7, 7), (1, 2, 2)),
        )
    )
    inputs = draw.choice((1, 3, 16, 32, 32, 48, 64, 64, 96, 128, 256))
    outputs = draw.choice((16, 32, 32, 48, 64, 64, 96, 128, 256))
    is_depthwise = inputs > 3 and draw.randrange(5) == 0
    if is_depthwise:
        outputs = inputs
    groups = inputs if is_depthwise else 1
    return layer(
        "volume", draw.choice(VOLUMES), kernel, inputs=inputs, outputs=outputs, groups=groups, stride=stride
    )  # fmt: skip


def up(draw: Random) -> Layer:
    """Transposed: 2x2, 3x3 or 4x4 by steps of two, wider ones of vocoders and of heads, and some that keep the size."""
    axes = draw.choice((1, 2, 2, 2, 2, 3))
    size, step, pad, more = draw.choice(
        ((2, 2, 0, 0), (2, 2, 0, 0), (4, 2, 1, 0), (4, 2, 1, 0), (3, 2, 1, 1), (3, 1, 1, 0), (5, 2, 2, 1), (8, 4, 2, 0))
        + (((16, 8, 4, 0), (32, 16, 8, 0)) if axes < 3 else ())
    )
    if axes == 1:
        spatial = [draw.choice(LENGTHS[:12])]
    elif axes == 2:
        spatial = square(draw)
    else:
        spatial = [*draw.choice(VOLUMES[:6])]
    count = channels(draw)
    kind = draw.randrange(8)
    groups = count if kind == 0 else 4 if kind == 1 and count % 4 == 0 else 1
    outputs = count if groups > 1 else draw.choice((count, max(count // 2, 1), max(count // 2, 1), 3))
    found = layer(
        f"transposed {axes}d" if groups == 1 else "transposed grouped", spatial, [size] * axes, inputs=count,
        outputs=outputs, groups=groups, stride=[step] * axes, pad=[pad] * axes,
    )  # fmt: skip
    return found | {"output_padding": [more] * axes}


# How often each is drawn.
CONVOLUTIONS: tuple[tuple[int, Callable[[Random], Layer]], ...] = (
    (7, window),
    (6, pointwise),
    (4, depthwise),
    (3, sequence),
    (2, grouped),
    (2, stem),
    (2, patches),
    (2, volume),
    (2, depthwise_sequence),
    (1, flat_window),
    (1, head),
)
KINDS = {"1x1", "window", "dilated", "flat", "stem", "head", "patches", "depthwise", "grouped", "sequence"}
KINDS |= {"depthwise sequence", "volume"}
TRANSPOSED_KINDS = {"transposed 1d", "transposed 2d", "transposed 3d", "transposed grouped"}
COLUMNS = ("N", "C", "K", "groups", "spatial", "kernel", "stride", "pad", "pad_end", "dilation", "output_padding")


def text(value: list[int] | int | str) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def is_of_use(case: Case) -> bool:
    """Has outputs, and is neither so large that it does not fit nor so small that nothing is measured but a launch."""
    shape = ConvShape(case)
    if min(shape.y) < 1 or any(o >= s for o, s in zip(shape.rest[5], shape.rest[1], strict=True) if o):
        return False
    x, w, y = (math.prod(dims) for dims in (shape.x, shape.w, shape.y))
    products = (x if "output_padding" in case else y) * w // shape.w[0]
    total = (2 * x + 2 * w + y) * SIZES[case["type"]]
    most = MOST_PRODUCTS if SIZES[case["type"]] == 2 else MOST_PRODUCTS // 4
    if int(case["groups"]) == int(case["C"]) > 1:
        most = MOST_DEPTHWISE_PRODUCTS
    return FEWEST_PRODUCTS <= products <= most and FEWEST_BYTES <= total < MOST_BYTES


def draw_layers(seed: int, count: int, is_transposed: bool = False) -> list[tuple[str, Case]]:
    """Each with its kind. Whole numbers and choices alone are drawn, which are the same in every Python."""
    draw = Random(seed)
    makers = [make for weight, make in CONVOLUTIONS for _ in range(weight)]
    found: list[tuple[str, Case]] = []
    while len(found) < count:
        made = up(draw) if is_transposed else draw.choice(makers)(draw)
        images, type_name, layout = draw.choice(BATCHES), draw.choice(TYPES), draw.choice(LAYOUTS)
        columns = {"N": images, **made}
        case = {column: text(columns[column]) for column in COLUMNS if column in columns}
        case = {"case": f"random_{seed}_{len(found)}", **case, "type": type_name, "layout": layout}
        if is_of_use(case):
            found.append((str(made["kind"]), case))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--transposed", action="store_true", help="transposed convolutions")
    parser.add_argument("--out", type=Path, default=None, help="the file; default: standard output")
    options = parser.parse_args(arguments)
    if options.count < 1 or options.seed < 0:
        parser.error("expected a seed of 0 or more and a count of 1 or more")
    cases = [case for _, case in draw_layers(options.seed, options.count, options.transposed)]
    if options.out is None:
        sys.stdout.write(suite_text(cases))
    else:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_suite(cases, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
