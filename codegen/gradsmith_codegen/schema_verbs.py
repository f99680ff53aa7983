"""The verbs for who writes a schema: what editors know, what has changed, new entries, and style."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .diagnostics import counted, has_errors
from .text import printable
from .verbs import (
    EPILOG,
    FAILED,
    OK,
    Refused,
    kernels,
    run_verb,
    schema_options,
    schema_position,
    show,
)

if TYPE_CHECKING:
    from .changes import Change
    from .draft import Document
    from .source_files import SourceFiles


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds them to a command line."""
    _add_schema(commands)
    _add_diff(commands)
    _add_new_op(commands)
    _add_fmt(commands)


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

_BREAKING, _FAULTY = 1, 2
_NAMED_OPS = 3  # as many are named where several operators share what has changed

_DIFF_EPILOG = (
    "Exit status: 0 where nothing changed or all is compatible, 1 where something is breaking, "
    "2 where a file has faults or for wrong usage, 3 for a fault of the generator."
)


def _add_diff(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "diff",
        help="say what differs between two schemas, and whether it breaks callers",
        epilog=_DIFF_EPILOG,
    )
    parser.set_defaults(run=run_verb, work=_diff, verb="diff", has_result=True)
    parser.add_argument("old", type=Path, metavar="OLD", help="the schema as it was")
    schema_position(parser, "NEW", "the schema as it is")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how changes are shown (default: text)"
    )
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as --format json"
    )


def _diff(options: argparse.Namespace) -> int:
    from .changes import Effect
    from .schema_changes import changes

    old, new = (_read(path, options) for path in (options.old, options.schema))
    if not old or not new:
        return _FAULTY
    found = changes(old, new)
    files = {True: old.files, False: new.files}
    if options.format == "json":
        print(json.dumps([_change_json(change, files[change.is_of_old]) for change in found], indent=2))
    else:
        _show_changes(found, files)
    return _BREAKING if any(change.effect is Effect.BREAKING for change in found) else OK


def _read(path: Path, options: argparse.Namespace) -> Document | None:
    """None after its faults have been shown."""
    from .loader import read_source
    from .reader import check_document

    source, diagnostics = read_source(path)
    document = None
    if not diagnostics:
        document, diagnostics = check_document(source)
    if has_errors(diagnostics):
        show(diagnostics, source, options)
    return document


def _change_json(change: Change, files: SourceFiles) -> dict[str, object]:
    return {
        "effect": change.effect.value,
        "op": change.op or None,
        "message": change.message,
        "file": files.at(change.line).path,
        "line": files.line(change.line),
    }


def _show_changes(found: Sequence[Change], files: Mapping[bool, SourceFiles]) -> None:
    """What operators share by an alias has changed for all of them, and is told once."""
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in found:
        alike.setdefault((change.effect, change.message, change.is_of_old, change.line), []).append(change)
    for changes in alike.values():
        first = changes[0]
        of_change = files[first.is_of_old]
        place = f"{printable(of_change.at(first.line).path)}:{of_change.line(first.line)}"
        ops = _ops([change.op for change in changes])
        print(f"{place}: {first.effect.value}: {ops}{first.message}")
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


# ----------------------------------------------------------------------------------------------------
# new-op

_FORMULA = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*(\S.*?)\s*\Z", re.ASCII | re.DOTALL)
_ATTRIBUTE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\S+)\s*\Z", re.ASCII)


def _add_new_op(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "new-op", help="print an entry for a new operator, or add it to the schema", epilog=EPILOG
    )
    parser.set_defaults(run=run_verb, work=_new_op, verb="new-op", has_result=True, parser=parser)
    parser.add_argument("name", metavar="NAME", help="the new operator's name, in CamelCase")
    schema_position(parser)
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--like", metavar="OP", help="copy the entry of this operator")
    origin.add_argument(
        "--formula",
        action="append",
        type=_formula,
        metavar="'Y: X * sigmoid(X)'",
        help="what an output, or a name in later formulas, is; may be repeated",
    )
    parser.add_argument(
        "--attribute",
        action="append",
        default=[],
        type=_attribute,
        metavar="NAME=DEFAULT",
        help="a name in the formulas that is an attribute and no input, and its default: 0.5 and 0.0 make it "
        "a float, 0 an int, true a bool; may be repeated",
    )
    parser.add_argument("--doc", default="", metavar="TEXT", help="what it computes, in a line")
    parser.add_argument("--write", action="store_true", help="add the entry to the schema and print no entry")
    schema_options(parser, ("text", "json"), "how faults are shown")


def _formula(text: str) -> tuple[str, str]:
    found = _FORMULA.match(text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no formula; expected a name and an expression, such as 'Y: X * sigmoid(X)'"
        )
    return found[1], found[2]


def _attribute(text: str) -> tuple[str, str]:
    found = _ATTRIBUTE.match(text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no attribute; expected a name and a default, such as alpha=0.5"
        )
    return found[1], found[2]


def _new_op(options: argparse.Namespace) -> int:
    from .files import rewrite
    from .loader import read_source
    from .new_file import NewSchemaText, lacks_operators
    from .new_op import SchemaText, Wish
    from .reader import load_source

    if options.attribute and options.like:
        options.parser.error("--attribute is for operators of formulas; --like copies those that there are")
    wish = Wish(options.name, options.doc, options.like or "", options.formula or (), options.attribute)
    headers = kernels(options)
    source, diagnostics = read_source(options.schema)
    schema = None
    if not diagnostics:
        schema, diagnostics = load_source(source, headers=headers)
    is_new = options.write and not options.schema.exists()
    text: SchemaText | NewSchemaText
    if is_new or lacks_operators(source, diagnostics):
        text = NewSchemaText(source, schema)
    elif schema is None:
        show(diagnostics, source, options)
        if not options.schema.exists():
            raise Refused(f"{printable(str(options.schema))} is made by --write, which adds the entry to it")
        return FAILED
    else:
        text = SchemaText(source, schema)
    entry = text.entry(wish)
    new_source, line = text.with_entry(entry)
    new_schema, diagnostics = load_source(new_source, headers=headers)
    if new_schema is None:
        show(diagnostics, new_source, options)
        where = printable(str(options.schema))
        raise Refused(
            f"{where}: '{options.name}' was not added: from line {line} on its entry would have these faults"
        )
    warnings = [one for one in diagnostics if one.span and one.span.line >= line and not one.source]
    show(warnings, new_source, options)
    if options.write:
        rewrite(options.schema, new_source.text)
        print(f"{printable(str(options.schema))}:{line}: '{options.name}' was added")
    else:
        sys.stdout.write(entry)
    return OK


# ----------------------------------------------------------------------------------------------------
# fmt


def _add_fmt(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("fmt", help="bring a schema into the style of ops.yaml", epilog=EPILOG)
    parser.set_defaults(run=run_verb, work=_fmt, verb="fmt", format="text")
    schema_position(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; show a diff and exit with 1 if the schema differs",
    )


def _fmt(options: argparse.Namespace) -> int:
    from .files import difference, rewrite
    from .formatting import formatted
    from .loader import read_source
    from .reader import read_document

    source, diagnostics = read_source(options.schema)
    document = None
    if not diagnostics:
        document, diagnostics = read_document(source)
    if not document:
        show(diagnostics, source, options)
        return FAILED
    name = printable(str(options.schema))
    text = formatted(source)
    if options.check:
        sys.stdout.write(difference(f"{name} (on disk)", source.text, f"{name} (formatted)", text))
        return OK if text == source.text else FAILED
    if text != source.text:
        rewrite(options.schema, text)
    print(f"{name}: {'formatted' if text != source.text else 'no change'}")
    return OK
