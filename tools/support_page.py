#!/usr/bin/env python3
"""The page docs/support/README.md from the table that gradsmith-support wrote.

    python3 tools/support_page.py [--check]

With --check nothing is written; exits with 1 where the page is not what the table says.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs/support"
TABLE = FOLDER / "cudnn_9.19_h200.tsv"
PAGE = FOLDER / "README.md"

# What each operator's outputs are computed by; None is our own kernels, whatever cuDNN offers.
OUTPUTS = {
    "Conv": {"Y": "forward"},
    "ConvGrad": {"dX": "backward-data", "dW": "backward-filter", "dB": None},
    "ConvTranspose": {"Y": "backward-data"},
    "ConvTransposeGrad": {"dX": "forward", "dW": "backward-filter", "dB": None},
}
ROWS = {"float": "float", "double": "double", "half": "MLFloat16", "bf16": "BFloat16"}
COLUMNS = [(layout, axes) for layout in ("NCHW", "NHWC") for axes in ("1", "2", "3")]

HEAD = """\
<!-- Written by tools/support_page.py from {table}; do not edit. -->
# Which source serves each cell

What cuDNN {version} offers on an H200 without TF32, without less than float in sums, and deterministically: the answers
of `gradsmith-support`, which a test compares with the installed cuDNN. A cell names the sources that serve its
convolutions (plain, pointwise, strided, dilated, asymmetric pads, grouped, depthwise, odd channels, accumulating,
unaligned) and how many engines the one with the fewest has. *graph*: engines of the graph API. *packed*: the same on
aligned copies, for tensors whose addresses or strides no engine takes. *own*: our kernels. The legacy algorithms, our
kernels for depthwise convolutions, tensor cores, few channels, images and all gradients in one pass and, as the
last resort, our direct kernel are candidates beside them, and so are the engines that cuDNN compiles at run time,
which are not counted here.

| operator | row | output |{columns}
|---|---|---|{rules}
"""

BATCH_NORM = """
## Batch normalization

Forward and backward are served in every cell by our own kernels, and cuDNN's legacy kernels are candidates beside them,
but for ReLU's. So are graph engines backward, all of which cuDNN compiles at run time, where a cell names the problems
that it has them for (of plain, odd channels and accumulating) and how many.

| operator | row |{columns}
|---|---|{rules}
"""
BATCH_NORM_OPS = {
    "BatchNormalizationGrad": "batch-normalization-backward",
    "BatchNormalizationReluGrad": "batch-normalization-relu-backward",
}
BATCH_NORM_ROWS = {
    "float": "float/float/float",
    "double": "double/double/double",
    "half": "MLFloat16/MLFloat16/MLFloat16",
    "half_float_stats": "MLFloat16/MLFloat16/float",
    "half_float_params": "MLFloat16/float/float",
    "bf16": "BFloat16/BFloat16/BFloat16",
    "bf16_float_stats": "BFloat16/BFloat16/float",
    "bf16_float_params": "BFloat16/float/float",
}
BATCH_NORM_COLUMNS = [("NCHW", "0"), *COLUMNS]

Cell = tuple[str, str, str, str]  # primitive, type, layout, axes


@dataclass(frozen=True)
class Offer:
    """What serves one feature of a cell."""

    feature: str
    source: str
    engines: int
    compiled: int


def read(table: str) -> tuple[str, dict[Cell, list[Offer]]]:
    """cuDNN's version, and what serves the features of each cell."""
    first, _, *lines = table.splitlines()
    cells: dict[Cell, list[Offer]] = defaultdict(list)
    for line in lines:
        primitive, data_type, layout, axes, feature, source, engines, compiled = line.split("\t")
        cells[primitive, data_type, layout, axes].append(Offer(feature, source, int(engines), int(compiled)))
    number = int(first.removeprefix("# cuDNN "))
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}", cells


def cell_text(offers: list[Offer]) -> str:
    sources = {"packed" if offer.source == "packed graph" else offer.source for offer in offers}
    fewest = min(offer.engines for offer in offers)
    return f"{', '.join(sorted(sources))} ({fewest})"


def batch_norm_text(offers: list[Offer]) -> str:
    served = [offer for offer in offers if offer.source == "graph"]
    if not served:
        return "own"
    fewest = min(offer.engines + offer.compiled for offer in served)
    return f"own; graph: {', '.join(offer.feature for offer in served)} ({fewest})"


def column_name(layout: str, axes: str) -> str:
    return f"{layout} {axes}-D" if axes != "0" else "N, C alone"


def names_of(columns: list[tuple[str, str]]) -> str:
    return "".join(f" {column_name(*column)} |" for column in columns)


def page(table: str) -> str:
    version, cells = read(table)
    text = HEAD.format(table=TABLE.name, version=version, columns=names_of(COLUMNS), rules="---|" * len(COLUMNS))
    for op, outputs in OUTPUTS.items():
        for row, data_type in ROWS.items():
            for output, primitive in outputs.items():
                found = (
                    cell_text(cells[primitive, data_type, *column]) if primitive else "own" for column in COLUMNS
                )
                text += f"| {op} | `{row}` | {output} | {' | '.join(found)} |\n"
    text += BATCH_NORM.format(columns=names_of(BATCH_NORM_COLUMNS), rules="---|" * len(BATCH_NORM_COLUMNS))
    for op, primitive in BATCH_NORM_OPS.items():
        for row, mix in BATCH_NORM_ROWS.items():
            found = (batch_norm_text(cells[primitive, mix, *column]) for column in BATCH_NORM_COLUMNS)
            text += f"| {op} | `{row}` | {' | '.join(found)} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    wanted = page(TABLE.read_text(encoding="utf-8"))
    if not parser.parse_args().check:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PAGE} is not what {TABLE.name} says; run tools/support_page.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
