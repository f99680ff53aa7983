"""Tables for people and JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_BOLD, _CYAN, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"


def show(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Prints rows of the same columns: a table, coloured on a terminal, or JSON."""
    if as_json:
        print(json.dumps(list(rows), indent=2))
    elif rows:
        print(table(rows, has_colours(sys.stdout)))


def has_colours(stream: Any) -> bool:
    if stream is None or not stream.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(rows: Sequence[Mapping[str, Any]], colours: bool) -> str:
    header = [name.replace("_", " ").upper() for name in rows[0]]
    lines = [header, *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    widths[-1] = 0  # nothing follows
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    if colours:
        padded[0] = [f"{_BOLD}{cell}{_PLAIN}" for cell in padded[0]]
        padded[1:] = [[f"{_CYAN}{line[0]}{_PLAIN}", *line[1:]] for line in padded[1:]]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
