"""What the verbs of the command line have in common: the schema that they read, and how faults are shown."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from . import tables
from .cpp_words import CPP_KEYWORDS
from .diagnostics import Diagnostic, Source, format_json, format_json_error, format_text
from .kernel_headers import RUNTIME, KernelHeaders
from .model import Schema

OK, FAILED, USAGE, INTERNAL = 0, 1, 2, 3

EPILOG = (
    "Exit status: 0 for success, 1 for faults in the schema or files that differ, 2 for wrong usage, "
    "3 for a fault of the generator."
)


class Refused(ValueError):
    """What is asked for cannot be done; the text says why."""


def run_verb(options: argparse.Namespace) -> int:
    """Runs a verb, whose modules are imported only now: they need packages."""
    try:
        from .loader import paused_collector

        with paused_collector():
            status: int = options.work(options)
            return status
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{options.verb} needs the Python module {missing.name}, which is not installed; "
            f"'{Path(sys.executable).name} -m pip install PyYAML Jinja2' brings what the generator needs"
        ) from missing


# ----------------------------------------------------------------------------------------------------
# The schema and its faults


def load(options: argparse.Namespace) -> Schema | None:
    """The schema, or None after its faults have been shown."""
    from .loader import read_source
    from .reader import load_source

    source, diagnostics = read_source(options.schema)
    schema = None
    if not diagnostics:
        schema, diagnostics = load_source(source, headers=kernels(options))
    show(diagnostics, source, options)
    return schema


def load_selected(options: argparse.Namespace) -> Schema | None:
    """The same, with the rows that are selected."""
    from .problem_lines import read_problems
    from .selection import Selection, select

    problems = [problem for path in options.problems for problem in read_problems(path)]
    selection = Selection(tuple(options.only), tuple(options.type), tuple(options.backend), tuple(problems))
    schema = load(options)
    return select(schema, selection) if schema and selection else schema


def kernels(options: argparse.Namespace) -> KernelHeaders:
    return KernelHeaders([*options.kernels, RUNTIME], options.library)


def show(diagnostics: list[Diagnostic], source: Source, options: argparse.Namespace) -> None:
    """Text goes to stderr. JSON is the command's output, unless the command itself has one: then it goes to
    stderr as an object on a line, as other errors do."""
    if options.format != "json":
        if diagnostics:
            sys.stderr.write(format_text(diagnostics, source, tables.has_colours(sys.stderr)))
    elif not getattr(options, "has_result", False):
        sys.stdout.write(format_json(diagnostics, source))
    elif diagnostics:
        sys.stderr.write(format_json_error(diagnostics, source))


# ----------------------------------------------------------------------------------------------------
# Arguments


def schema_arguments(parser: argparse.ArgumentParser, formats: tuple[str, ...], help_text: str) -> None:
    """The schema, by position or as an option; where its kernels are; and the format."""
    schema_position(parser)
    schema_options(parser, formats, help_text)


def schema_position(parser: argparse.ArgumentParser, metavar: str = "FILE", what: str = "the schema") -> None:
    """The last of the positions, which may be left out; `--schema` says the same."""
    parser.add_argument(
        "schema",
        nargs="?",
        action=_OneSchema,
        default=argparse.SUPPRESS,
        metavar=metavar,
        help=f"{what} (default: ops.yaml)",
    )
    parser.add_argument(
        "--schema",
        action=_OneSchema,
        default=Path("ops.yaml"),
        metavar="FILE",
        help=f"the same as {metavar}",
    )


class WordOrSchema(argparse.Action):
    """Takes a word that may be left out before the schema: what has a dot or a slash is a file."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        if re.search(r"[./\\]", values):
            _take_schema(parser, namespace, values)
        else:
            setattr(namespace, self.dest, values)


class VerbParser(argparse.ArgumentParser):
    """Of a verb: what is told by its position may stand between options and behind them."""

    _is_at_it = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        positions = self._get_positional_actions()
        is_plain = "--" in (sys.argv if args is None else args)  # behind which nothing is an option
        if self._is_at_it or is_plain or any(one.nargs == argparse.PARSER for one in positions):
            return super().parse_known_args(args, namespace)
        self._is_at_it = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_at_it = False


def schema_options(parser: argparse.ArgumentParser, formats: tuple[str, ...], help_text: str) -> None:
    """Where the schema's kernels are, and the format."""
    parser.add_argument(
        "--kernels",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder of further kernel families, each with its kernels.h; may be repeated",
    )
    parser.add_argument(
        "--library",
        type=_library,
        default="gradsmith",
        metavar="NAME",
        help="namespace of the operators and of the further kernels (default: gradsmith)",
    )
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help=f"{help_text} (default: {formats[0]})"
    )
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as --format json"
    )


def selection_options(parser: argparse.ArgumentParser) -> None:
    """Which rows there are: all, unless these say otherwise."""
    group = parser.add_argument_group("selection", "of all rows those alone; each option may be repeated")
    for name, metavar, told in (
        ("--only", "OP[:ROW]", "an operator, or one of its rows"),
        ("--type", "TYPE", "an element type, of operators whose rows are not named"),
        ("--backend", "BACKEND", "a backend"),
    ):
        group.add_argument(name, action="append", default=[], metavar=metavar, help=told)
    group.add_argument(
        "--problems",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="the rows of problems, in lines as tune and bench read them",
    )


def _library(text: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not lower-case words and digits joined by '_'")
    if text in CPP_KEYWORDS or text in ("std", "testing"):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be the namespace of a library")
    return text


class _OneSchema(argparse.Action):
    """Takes the schema, by position or as an option, and not twice."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        _take_schema(parser, namespace, values)


def _take_schema(parser: argparse.ArgumentParser, namespace: argparse.Namespace, given: str) -> None:
    if getattr(namespace, "has_schema", False):
        parser.error(f"one schema at a time: {namespace.schema} and {given} were given")
    namespace.has_schema, namespace.schema = True, Path(given)
