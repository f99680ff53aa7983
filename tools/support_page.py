#!/usr/bin/env python3
"""The page docs/support/README.md from the table that gradsmith-support wrote.

    python3 tools/support_page.py [--check]

With --check nothing is written; exits with 1 where the page is not what the table says.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/support"
TABLE = FOLDER / "cudnn_9.19_h200.tsv"
PAGE = FOLDER / "README.md"
LAYOUTS = ("NCHW", "NHWC")

HEAD = """\
<!-- Written by tools/support_page.py from {table}; do not edit. -->
# Which source serves each cell

What cuDNN {version} offers on an H200 without TF32, without less than float in sums, and deterministically: the answers
of `gradsmith-support`, which a test compares with the installed cuDNN. *graph*: engines of the graph API. *packed*: the
same on aligned copies, for tensors whose addresses or strides no engine takes. *own*: our kernels.
"""

Cell = tuple[str, str, str, str]  # primitive, type, layout, axes


@dataclass(frozen=True)
class Section:
    """What the page says of a family of kernels: runtime/FAMILY/support/page.yaml."""

    title: str
    text: str
    axes: list[int]
    primitives: dict[str, str | dict[str, str | None]]
    """By operator: the primitive of the table that computes it, or that for each output."""
    own_serves_all: bool = False

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Layouts and numbers of axes; without an axis there is one layout."""
        alone = [(LAYOUTS[0], "0")] if 0 in self.axes else []
        return [*alone, *((layout, str(axes)) for layout in LAYOUTS for axes in self.axes if axes)]


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


def beside_own_text(offers: list[Offer]) -> str:
    """Where our own kernels serve all."""
    served = [offer for offer in offers if offer.source == "graph"]
    if not served:
        return "own"
    fewest = min(offer.engines + offer.compiled for offer in served)
    return f"own; graph: {', '.join(offer.feature for offer in served)} ({fewest})"


def column_name(layout: str, axes: str) -> str:
    return f"{layout} {axes}-D" if axes != "0" else "N, C alone"


def sections(schema: dict[str, Any]) -> list[Section]:
    """Of the families that have one, in the order of their operators in ops.yaml."""
    order = [op["name"] for op in schema["ops"]]
    found = [
        Section(**yaml.safe_load(path.read_text(encoding="utf-8"))) for path in ROOT.glob("runtime/*/support/page.yaml")
    ]
    return sorted(found, key=lambda section: min(map(order.index, section.primitives)))


def lines_of(section: Section, op: dict[str, Any], cells: dict[Cell, list[Offer]]) -> Iterator[str]:
    """The operator's rows whose types the table knows: a new one comes into it when the tool is next run."""
    told = beside_own_text if section.own_serves_all else cell_text
    primitives = section.primitives[op["name"]]
    outputs = primitives if isinstance(primitives, dict) else {"": primitives}
    known = {types for _, types, *_ in cells}
    for row, elements in op["rows"].items():
        types = "/".join(element for key, element in elements.items() if key != "backends")
        for output, primitive in outputs.items() if types in known else ():
            found = [told(cells[primitive, types, *column]) if primitive else "own" for column in section.columns]
            yield table_line([op["name"], f"`{row}`", *filter(None, [output]), *found])


def table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def page(table: str) -> str:
    version, cells = read(table)
    schema = yaml.safe_load((ROOT / "ops.yaml").read_text(encoding="utf-8"))
    text = HEAD.format(table=TABLE.name, version=version)
    for section in sections(schema):
        by_output = any(isinstance(primitives, dict) for primitives in section.primitives.values())
        heading = ["operator", "row", *(["output"] if by_output else [])]
        heading += [column_name(*column) for column in section.columns]
        text += f"\n## {section.title}\n\n{section.text}\n{table_line(heading)}|{'---|' * len(heading)}\n"
        for op in schema["ops"]:
            if op["name"] in section.primitives:
                text += "".join(lines_of(section, op, cells))
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
