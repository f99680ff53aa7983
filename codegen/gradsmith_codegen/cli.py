"""The command line: wires the layers together. Nothing but this module, the verbs' and `tables` prints, and
nothing but this module decides how the program ends."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import __version__, explain_verb, schema_verbs, tables
from .depfile import depfile, modules
from .diagnostics import counted
from .files import Changes, write_list
from .model import Backend, Schema
from .text import printable
from .verbs import (
    EPILOG,
    FAILED,
    INTERNAL,
    OK,
    Refused,
    VerbParser,
    kernels,
    load,
    load_selected,
    run_verb,
    schema_arguments,
    selection_options,
)

MAX_SHARDS = 999

PROGRAM = "gradsmith-codegen"
_DESCRIPTION = (
    "Generates Gradsmith's headers, dispatch table, tests and reference pages from a schema of operators."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    escape_what_cannot_be_shown()
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{PROGRAM}: {printable(where)}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except (ModuleNotFoundError, Refused) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return FAILED
    except Exception as error:
        print(f"{PROGRAM}: {_internal_fault(error)}", file=sys.stderr)
        return INTERNAL


def _internal_fault(error: Exception) -> str:
    """What is told of a fault of the generator itself, in a line: what it is and where it was raised."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    place = f"{Path(frame.f_code.co_filename).name}:{line}"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return printable(f"internal error, a fault of the generator and not of the schema ({place}): {what}")


def escape_what_cannot_be_shown() -> None:
    """Names are Unicode, terminals may not be."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


# ----------------------------------------------------------------------------------------------------
# Commands


def _generate(options: argparse.Namespace) -> int:
    if options.depfile and not options.stamp:
        options.parser.error("--depfile needs --stamp, whose dependencies it lists")
    if options.check and options.stamp:
        options.parser.error("--check writes nothing, --stamp neither")

    # Only this command needs the templates' engine, whose import takes longer than a check.
    from . import output
    from .kernel_operands import families_of
    from .library import Library
    from .plan import make_plan
    from .render import templates
    from .rule_cpp import rules_of

    schema = load_selected(options)
    if not schema:
        return FAILED
    if not schema.ops:
        raise Refused(f"{printable(str(options.schema))} declares no operators")
    found = kernels(options)
    library = Library(options.library, found.own_families, bool(schema.all_ops))
    families, rules = families_of(found, library), rules_of(found, library)
    plan = make_plan(schema, options.shards, library, families, rules)
    if options.check:
        difference = output.compare(options.out, plan, without=options.without)
        sys.stdout.write(difference)
        return FAILED if difference else OK
    changes = output.write(options.out, plan, without=options.without)
    if options.depfile:
        options.depfile.parent.mkdir(parents=True, exist_ok=True)
        included = [Path(file.path) for file in schema.files.included]
        dependencies = [options.schema, *included, *modules(), *templates(), *found.files]
        options.depfile.write_bytes(os.fsencode(depfile(options.stamp, dependencies)))
    if options.included:
        write_list(options.included, [Path(file.path).resolve() for file in schema.files.included])
    if options.stamp:
        options.stamp.parent.mkdir(parents=True, exist_ok=True)
        options.stamp.touch()
    if options.format == "text":
        print(f"{printable(str(options.out))}: {_told(changes)}")
    return OK


def _told(changes: Changes) -> str:
    if changes.written or changes.removed:
        return f"{counted(len(changes.written), 'file')} written, {len(changes.removed)} removed"
    return f"{counted(len(changes.unchanged), 'file')}, none changed"


def _check(options: argparse.Namespace) -> int:
    schema = load(options)
    if schema and options.format == "text":
        counts = f"{counted(len(schema.ops), 'operator')}, {_row_counts(schema)}"
        print(f"{printable(str(options.schema))}: {counts}, no errors")
    return OK if schema else FAILED


def _row_counts(schema: Schema) -> str:
    """`32 rows (32 on cpu, 32 on cuda)`: as the schema has them, and as the dispatch table does."""
    rows = counted(sum(len(op.rows) for op in schema.ops), "row")
    on = Counter(dict.fromkeys(Backend, 0))
    for op in schema.ops:
        on.update(dict.fromkeys(op.backends, len(op.rows)))
    return f"{rows} ({', '.join(f'{count} on {backend.value}' for backend, count in on.items() if count)})"


def _list(options: argparse.Namespace) -> int:
    schema = load_selected(options)
    if not schema:
        return FAILED
    tables.show(_rows(schema), options.format == "json")
    return OK


def _rows(schema: Schema) -> list[dict[str, object]]:
    """What `list` shows: one entry for each row of each operator on each backend."""
    return [
        {
            "op": op.name,
            "row": row.name,
            "types": {parameter: data_type.value for parameter, data_type in row.types},
            "backend": backend.value,
            "kernel": op.kernel_name,
            "line": schema.files.line(row.origin.line),
            **({"file": schema.files.at(row.origin.line).path} if schema.files.included else {}),
        }
        for op in schema.ops
        for row in op.rows
        for backend in op.backends
    ]


# ----------------------------------------------------------------------------------------------------
# Arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description=_DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=VerbParser
    )
    add_verbs(commands)
    explain_verb.add(commands)
    return parser


def add_verbs(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the generator's verbs to a command line, which calls the `run` of what it has parsed; but not
    `explain`, since the Python package has a verb of that name, which asks the library."""
    _generate_arguments(commands.add_parser("generate", help="write the generated files", epilog=EPILOG))
    check = commands.add_parser("check", help="check the schema and write nothing", epilog=EPILOG)
    check.set_defaults(run=run_verb, work=_check, verb="check")
    schema_arguments(check, ("text", "json"), "how faults are shown")
    listing = commands.add_parser(
        "list", help="list the rows: operator, types, backend, kernel, line", epilog=EPILOG
    )
    listing.set_defaults(run=run_verb, work=_list, verb="list", has_result=True)
    schema_arguments(listing, ("table", "json"), "how the rows are shown")
    selection_options(listing)
    schema_verbs.add(commands)


def _generate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run_verb, work=_generate, verb="generate", parser=parser)
    schema_arguments(parser, ("text", "json"), "how faults are shown")
    selection_options(parser)
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
    parser.add_argument(
        "--without",
        choices=("docs", "python", "tests"),
        action="append",
        default=[],
        help="write no reference pages, no Python or no tests; may be repeated",
    )
    parser.add_argument("--stamp", type=Path, metavar="FILE", help="file to touch once all files are written")
    parser.add_argument(
        "--included",
        type=Path,
        metavar="FILE",
        help="where to write which files the schema includes, a path a line; untouched where it says so",
    )
    parser.add_argument(
        "--depfile", type=Path, metavar="FILE", help="what the stamp depends on, as a Make rule"
    )


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SHARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_SHARDS}")
    return int(text)
