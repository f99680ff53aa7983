#!/usr/bin/env python3
"""The page docs/support/README.md from the table that gradsmith-support wrote.

    python3 tools/support_page.py [--check]

With --check nothing is written; exits with 1 where the page is not what the table says.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
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
depthwise kernels and, as the last resort, our direct kernel are candidates beside them.

| operator | row | output |{columns}
|---|---|---|{rules}
"""

TAIL = """
Batch normalization, forward and backward, is served in every cell by our own kernels; cuDNN's graph engines (half and
bf16, compiled at run time) and its legacy kernels are candidates beside them.
"""

Cell = tuple[str, str, str, str]  # primitive, type, layout, axes


def read(table: str) -> tuple[str, dict[Cell, list[tuple[str, int]]]]:
    """cuDNN's version, and source and engines of each feature of each cell."""
    first, _, *lines = table.splitlines()
    cells: dict[Cell, list[tuple[str, int]]] = defaultdict(list)
    for line in lines:
        primitive, data_type, layout, axes, _, source, engines = line.split("\t")
        cells[primitive, data_type, layout, axes].append((source, int(engines)))
    number = int(first.removeprefix("# cuDNN "))
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}", cells


def cell_text(features: list[tuple[str, int]]) -> str:
    sources = {"packed" if source == "packed graph" else source for source, _ in features}
    fewest = min(engines for _, engines in features)
    return f"{', '.join(sorted(sources))} ({fewest})"


def page(table: str) -> str:
    version, cells = read(table)
    names = "".join(f" {layout} {axes}-D |" for layout, axes in COLUMNS)
    text = HEAD.format(table=TABLE.name, version=version, columns=names, rules="---|" * len(COLUMNS))
    for op, outputs in OUTPUTS.items():
        for row, data_type in ROWS.items():
            for output, primitive in outputs.items():
                found = (
                    cell_text(cells[primitive, data_type, *column]) if primitive else "own" for column in COLUMNS
                )
                text += f"| {op} | `{row}` | {output} | {' | '.join(found)} |\n"
    return text + TAIL


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
