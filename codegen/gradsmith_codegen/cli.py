"""The command line: wires the layers together. Nothing but this module prints or decides how the program
ends."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .depfile import depfile, modules
from .diagnostics import Diagnostic, Source, counted, format_json, format_text
from .files import Changes
from .loader import paused_collector, read_source
from .model import Schema
from .reader import load_source

OK, FAILED, USAGE = 0, 1, 2
MAX_SHARDS = 999

_DESCRIPTION = (
    "Generates Gradsmith's headers, dispatch table, tests and reference pages from a schema of operators."
)
_EPILOG = "Exit status: 0 for success, 1 for faults in the schema or files that differ, 2 for wrong usage."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # names are Unicode, terminals may not be
    options = _parser().parse_args(arguments)
    try:
        with paused_collector():
            status: int = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"gradsmith-codegen: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED


# ----------------------------------------------------------------------------------------------------
# Commands


def _generate(options: argparse.Namespace) -> int:
    if options.depfile and not options.stamp:
        options.parser.error("--depfile needs --stamp, whose dependencies it lists")
    if options.check and options.stamp:
        options.parser.error("--check writes nothing, --stamp neither")

    # Only this command needs the templates' engine, whose import takes longer than a check.
    from . import output
    from .plan import make_plan
    from .render import templates

    schema = _load(options)
    if not schema:
        return FAILED
    plan = make_plan(schema, options.shards)
    if options.check:
        difference = output.compare(options.out, plan)
        sys.stdout.write(difference)
        return FAILED if difference else OK
    changes = output.write(options.out, plan)
    if options.depfile:
        options.depfile.parent.mkdir(parents=True, exist_ok=True)
        dependencies = [options.schema, *modules(), *templates()]
        options.depfile.write_text(depfile(options.stamp, dependencies), encoding="utf-8")
    if options.stamp:
        options.stamp.parent.mkdir(parents=True, exist_ok=True)
        options.stamp.touch()
    if options.format == "text":
        print(f"{options.out}: {_told(changes)}")
    return OK


def _told(changes: Changes) -> str:
    if changes.written or changes.removed:
        return f"{counted(len(changes.written), 'file')} written, {len(changes.removed)} removed"
    return f"{counted(len(changes.unchanged), 'file')}, none changed"


def _check(options: argparse.Namespace) -> int:
    schema = _load(options)
    if schema and options.format == "text":
        rows = sum(len(op.rows) * len(op.backends) for op in schema.ops)
        print(f"{options.schema}: {counted(len(schema.ops), 'operator')}, {counted(rows, 'row')}, no errors")
    return OK if schema else FAILED


def _list(options: argparse.Namespace) -> int:
    schema = _load(options)
    if not schema:
        return FAILED
    rows = _rows(schema)
    if options.format == "json":
        print(json.dumps(rows, indent=2))
    else:
        print(_table(rows))
    return OK


def _rows(schema: Schema) -> list[dict[str, object]]:
    """What `list` shows: one entry for each row of each operator on each backend."""
    return [
        {
            "op": op.name,
            "row": row.name,
            "types": {parameter: data_type.value for parameter, data_type in row.types},
            "backend": backend.value,
            "kernel": op.kernel,
            "line": row.origin.line,
        }
        for op in schema.ops
        for row in op.rows
        for backend in op.backends
    ]


def _table(rows: list[dict[str, object]]) -> str:
    header = [column.upper() for column in rows[0]]
    lines = [header, *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{parameter}={data_type}" for parameter, data_type in value.items())
    return str(value)


# ----------------------------------------------------------------------------------------------------
# The schema and its faults


def _load(options: argparse.Namespace) -> Schema | None:
    """The schema, or None after its faults have been shown."""
    source, diagnostics = read_source(options.schema)
    schema = None
    if not diagnostics:
        schema, diagnostics = load_source(source)
    _show(diagnostics, source, options)
    return schema


def _show(diagnostics: list[Diagnostic], source: Source, options: argparse.Namespace) -> None:
    """Text goes to stderr. JSON is the command's output, unless the command itself has one."""
    if options.format == "json" and options.run is not _list:
        sys.stdout.write(format_json(diagnostics, source))
    elif diagnostics:
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        sys.stderr.write(format_text(diagnostics, source, colour))


# ----------------------------------------------------------------------------------------------------
# Arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gradsmith-codegen", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"gradsmith-codegen {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _generate_arguments(commands.add_parser("generate", help="write the generated files", epilog=_EPILOG))
    check = commands.add_parser("check", help="check the schema and write nothing", epilog=_EPILOG)
    check.set_defaults(run=_check)
    _schema_arguments(check, ("text", "json"), "how faults are shown")
    listing = commands.add_parser(
        "list", help="list the rows: operator, types, backend, kernel, line", epilog=_EPILOG
    )
    listing.set_defaults(run=_list)
    _schema_arguments(listing, ("table", "json"), "how the rows are shown")
    return parser


def _generate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_generate, parser=parser)
    _schema_arguments(parser, ("text", "json"), "how faults are shown")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the generated files"
    )
    parser.add_argument(
        "--shards",
        type=_shards,
        default=8,
        metavar="N",
        help="number of source files for the operators (default: 8)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; show a diff and exit with 1 if files in DIR differ",
    )
    parser.add_argument("--stamp", type=Path, metavar="FILE", help="file to touch once all files are written")
    parser.add_argument(
        "--depfile", type=Path, metavar="FILE", help="what the stamp depends on, as a Make rule"
    )


def _schema_arguments(parser: argparse.ArgumentParser, formats: tuple[str, ...], help_text: str) -> None:
    parser.add_argument(
        "--schema", type=Path, default=Path("ops.yaml"), metavar="FILE", help="default: ops.yaml"
    )
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help=f"{help_text} (default: {formats[0]})"
    )


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SHARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_SHARDS}")
    return int(text)
