"""The verbs for who writes a schema: what editors know of it, and what has changed in it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .diagnostics import counted, has_errors
from .text import printable
from .verbs import EPILOG, OK, run_verb, show

if TYPE_CHECKING:
    from .changes import Change
    from .draft import Document


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds them to a command line."""
    _add_schema(commands)
    _add_diff(commands)


# ----------------------------------------------------------------------------------------------------
# schema


def _add_schema(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "schema", help="print a JSON Schema of what a schema may hold, for editors", epilog=EPILOG
    )
    parser.set_defaults(run=run_verb, work=_schema, verb="schema")


def _schema(_: argparse.Namespace) -> int:
    from . import json_schema

    sys.stdout.write(json_schema.text())
    return OK


# ----------------------------------------------------------------------------------------------------
# diff

_BREAKING, _UNREADABLE = 1, 2
_NAMED_OPS = 3  # as many are named where several operators share what has changed

_DIFF_EPILOG = (
    "Exit status: 0 where nothing changed or all is compatible, 1 where something is breaking, "
    "2 where a file does not read or for wrong usage, 3 for a fault of the generator."
)


def _add_diff(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "diff",
        help="say what differs between two schemas, and whether it breaks callers",
        epilog=_DIFF_EPILOG,
    )
    parser.set_defaults(run=run_verb, work=_diff, verb="diff", has_result=True)
    parser.add_argument("old", type=Path, metavar="OLD", help="the schema as it was")
    parser.add_argument("new", type=Path, metavar="NEW", help="the schema as it is")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how changes are shown (default: text)"
    )
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as --format json"
    )


def _diff(options: argparse.Namespace) -> int:
    from .changes import Effect
    from .schema_changes import changes

    old, new = (_read(path, options) for path in (options.old, options.new))
    if not old or not new:
        return _UNREADABLE
    found = changes(old, new)
    if options.format == "json":
        print(json.dumps([_change_json(change, options) for change in found], indent=2))
    else:
        _show_changes(found, options)
    return _BREAKING if any(change.effect is Effect.BREAKING for change in found) else OK


def _read(path: Path, options: argparse.Namespace) -> Document | None:
    """None after its faults have been shown."""
    from .loader import read_source
    from .reader import read_document

    source, diagnostics = read_source(path)
    document = None
    if not diagnostics:
        document, diagnostics = read_document(source)
    if has_errors(diagnostics):
        show(diagnostics, source, options)
    return document


def _change_json(change: Change, options: argparse.Namespace) -> dict[str, object]:
    return {
        "effect": change.effect.value,
        "op": change.op or None,
        "message": change.message,
        "file": str(options.old if change.is_of_old else options.new),
        "line": change.line,
    }


def _show_changes(found: Sequence[Change], options: argparse.Namespace) -> None:
    """What operators share by an alias has changed for all of them, and is told once."""
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in found:
        alike.setdefault((change.effect, change.message, change.is_of_old, change.line), []).append(change)
    for changes in alike.values():
        first = changes[0]
        file = options.old if first.is_of_old else options.new
        ops = _ops([change.op for change in changes])
        print(f"{printable(str(file))}:{first.line}: {first.effect.value}: {ops}{first.message}")
    effects = [change.effect.value for change in found]
    counts = [f"{effects.count(effect)} {effect}" for effect in dict.fromkeys(effects)]
    print(f"{counted(len(found), 'change')}: {', '.join(counts)}" if found else "no changes")


def _ops(names: Sequence[str]) -> str:
    """`Conv, ConvGrad and 3 more: `"""
    if not any(names):
        return ""
    more = len(names) - _NAMED_OPS
    shown = ", ".join(names if more <= 1 else names[:_NAMED_OPS]) + (f" and {more} more" if more > 1 else "")
    return f"{printable(shown)}: "
