"""The command line: `python -m gradsmith`. Nothing but this module and the generator's prints."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeAlias, TypeVar

import gradsmith

from . import _bench, _table, _tuning
from ._bars import CountBar
from ._codegen import cli as generator
from ._codegen import tables
from ._codegen.text import printable
from ._codegen.verbs import VerbParser

_R = TypeVar("_R")

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_ERRORS = (ImportError, ValueError, NotImplementedError, MemoryError, RuntimeError)

_EXAMPLE = '"ConvGrad half X=8x3x9x9 W=4x3x3x3"'
_EPILOG = (
    "generate, check, list, schema, diff, new-op and fmt are the generator's, which needs PyYAML and Jinja2. "
    "With --json results are JSON on standard output, and errors are JSON on standard error. "
    "Exit status: 0 for success, 1 for what failed or is not supported, 2 for wrong usage."
)


class _WrongUsage(Exception):
    """What argparse has to say, with the usage of the verb."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class _Parser(VerbParser):
    """Leaves to `main` how an error is told. Options are not abbreviated: main looks for --json."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise _WrongUsage(f"{self.prog}: error: {message}", self.format_usage())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    generator.escape_what_cannot_be_shown()
    try:
        options = _parser().parse_args(given)
        status: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # here it is told what goes wrong
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except _WrongUsage as wrong:
        _say(str(wrong) if as_json else f"{wrong.usage}{wrong}", as_json, program="")
        return USAGE
    except BrokenPipeError:  # the reader of our output has seen enough
        _end_output()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}", as_json)
        _end_output()
    except _ERRORS as error:
        _say(str(error), as_json)
    return FAILED


def _say(error: str, as_json: bool, program: str = "gradsmith: ", **about: str) -> None:
    """Tells of an error; `about` is what it is an error of."""
    text = ": ".join([*about.values(), error])
    print(json.dumps({**about, "error": error}) if as_json else f"{program}{text}", file=sys.stderr)


def _end_output() -> None:
    """Writes what is not written yet; what cannot be is not tried again at the end of the process."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ops(options: argparse.Namespace) -> int:
    rows = [
        {
            "op": op.name,
            "function": op.function,
            "row": row.name,
            "types": row.types,
            "backend": row.backend,
            "kernel": op.kernel,
            "line": row.line,
        }
        for op in gradsmith.ops()
        for row in op.rows
        if options.op in (None, op.name, op.function)
    ]
    tables.show(rows, options.json)
    if not rows:
        _say(gradsmith.explain(options.op), options.json)
        return FAILED
    return OK


def _explain(options: argparse.Namespace) -> int:
    told = gradsmith.explain(options.op, *options.types, device=options.device)
    row = _table.find_row(options.op, *options.types, device=options.device)
    missing = gradsmith.missing_for(options.device)
    if options.json:
        fields = {
            "op": _table.op_name(options.op),
            "types": options.types,
            "device": options.device,
            "supported": row is not None,
            "row": row.name if row else None,
            "line": row.line if row else None,
            "explanation": told,
            "missing": missing,
        }
        tables.show([fields], as_json=True)
    else:
        print(told)
        if not options.types and (taken := _types_taken(options.op)):
            print("\n  ".join(["It takes one of", *taken]))
        if missing:
            print(f"Here {options.device} cannot be used: {missing}")
    return OK if row else FAILED


def _tune(options: argparse.Namespace) -> int:
    def tune(problem: str) -> dict[str, Any]:
        start = time.perf_counter()
        tuned = gradsmith.tune(problem, device=options.device, mode=options.mode, budget=options.budget)
        return {
            "problem": problem,
            "device": options.device,
            "seconds": time.perf_counter() - start,
            "chosen": [choice.kernel for choice in tuned.chosen],
            "note": tuned.note,
        }

    with gradsmith.policy(
        allow_tf32=options.allow_tf32,
        allow_reduced_accuracy=options.allow_reduced_accuracy,
        exact_padding=options.exact_padding,
        deterministic=options.deterministic or None,
        workspace_limit=options.workspace,
    ):
        rows, status = _each(_problems(options.problems), tune, options)
    tables.show(rows, options.json)
    return status


def _problems(given: Sequence[str]) -> list[str]:
    """The problems of a command line: lines, and files of lines."""
    problems = [problem for one in given for problem in _tuning.problems_of(_lines(one))]
    if not problems:
        raise ValueError(f"there is no problem in {', '.join(given)}; expected lines such as {_EXAMPLE}")
    return problems


def _lines(given: str) -> str:
    if given == "-" and sys.stdin is None:
        raise ValueError("standard input is closed; expected problems on it")
    if given == "-":
        return _read("standard input", sys.stdin)
    if os.path.exists(given):
        with open(given, encoding="utf-8-sig") as file:
            return _read(given, file)
    if len(given.split()) < 2:
        raise ValueError(f"'{given}' is no file; expected one, or a problem in quotes, such as {_EXAMPLE}")
    return _text(given)


def _read(name: str, file: TextIO) -> str:
    """The text of a file. Of one that is longer than any of problems it is as much as tells that."""
    try:
        return file.read(_tuning.MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from error


def _each(problems: Sequence[str], work: Callable[[str], _R], options: argparse.Namespace) -> tuple[list[_R], int]:
    """What came of the problems that nothing is wrong with; of the others it is said what is."""
    if missing := gradsmith.missing_for(options.device):
        raise RuntimeError(f"{options.device} cannot be used: {missing}")
    bar = CountBar(sys.stderr, len(problems))
    made, status = [], OK
    for problem in problems:
        bar.show(problem)
        try:
            made.append(work(problem))
        except _ERRORS as error:
            bar.clear()  # before it is written where the bar is
            _say(str(error), options.json, problem=problem)
            status = FAILED
        finally:
            bar.clear()
    return made, status


def _types_taken(op: str) -> list[str]:
    """What types an operator takes, each combination once; none where there is no operator of the name."""
    rows = (row for one in gradsmith.ops() if op in (one.name, one.function) for row in one.rows)
    return list(dict.fromkeys(" ".join(row.types.values()) for row in rows))


def _cache(options: argparse.Namespace) -> int:
    choices = gradsmith.cache.choices()
    if options.export is not None:
        gradsmith.cache.export(options.export)
        return _done("export", options.export, len(choices), options)
    if options.load is not None:
        gradsmith.cache.load(options.load)
        return _done("load", options.load, len(gradsmith.cache.choices()), options)
    if options.clear:
        gradsmith.cache.clear()
        return _done("clear", gradsmith.cache.path(), len(choices), options)
    if not options.json:
        print(f"file: {printable(gradsmith.cache.path()) or 'none'}")
    tables.show([vars(choice) for choice in choices], options.json)
    return OK


_DONE = {
    "export": "{choices} choices were written to {file}",
    "load": "{choices} choices are remembered, with those of {file}",
    "clear": "{choices} choices were forgotten",
}


def _done(action: str, file: str, choices: int, options: argparse.Namespace) -> int:
    """Says what was done to the cache."""
    told = {"action": action, "file": file, "choices": choices}
    print(json.dumps(told, indent=2) if options.json else _DONE[action].format_map({**told, "file": printable(file)}))
    return OK


def _run_bench(options: argparse.Namespace) -> int:
    problems = _problems(options.problems) if options.problems else _bench.default_problems()
    rows, status = _each(problems, lambda one: _bench.measure(one, options.device, options.seconds), options)
    tables.show([vars(row) for row in rows], options.json)
    if options.plot and rows:
        options.plot.write_text(_bench.plot(rows), encoding="utf-8")
    return status


_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def _parser() -> argparse.ArgumentParser:
    program = "python -m gradsmith" if Path(sys.argv[0]).name == "__main__.py" else "gradsmith"
    parser = _Parser(prog=program, description="Gradient operators.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"gradsmith {gradsmith.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    generator.add_verbs(commands)
    for add in (_add_ops, _add_explain, _add_tune, _add_cache, _add_bench):
        command = add(commands)
        command.epilog = _EPILOG
        command.add_argument("--json", action="store_true", help="print JSON, errors too")
    return parser


def _add_ops(commands: _Commands) -> argparse.ArgumentParser:
    command = commands.add_parser("ops", help="list the operators and their rows")
    command.set_defaults(run=_ops)
    command.add_argument("op", nargs="?", type=_text, help="one operator, by its name or its function's")
    return command


def _add_explain(commands: _Commands) -> argparse.ArgumentParser:
    command = commands.add_parser("explain", help="say whether an operator takes some types, and what is nearest")
    command.set_defaults(run=_explain)
    command.add_argument("op", type=_text, help="an operator, by its name or its function's")
    command.add_argument(
        "types", nargs="*", type=_text, help="a type for each type parameter: float, double, half, bf16"
    )
    command.add_argument("--device", default="cpu", help="cpu or cuda:N (default: cpu)")
    return command


def _add_tune(commands: _Commands) -> argparse.ArgumentParser:
    command = commands.add_parser("tune", help="choose the kernels of problems ahead of time, on a GPU")
    command.set_defaults(run=_tune)
    _add_problems(command, "+", "")
    command.add_argument("--device", default="cuda:0", help="default: cuda:0")
    command.add_argument("--mode", default="benchmark", choices=("benchmark", "heuristic", "default"))
    command.add_argument(
        "--budget", type=_seconds, default=10.0, metavar="SECONDS", help="for each problem (default: 10)"
    )
    command.add_argument("--allow-tf32", action="store_true", help="float may be multiplied in TF32")
    command.add_argument(
        "--allow-reduced-accuracy",
        action="store_true",
        help="kernels that are less exact than is promised may be taken where they are faster",
    )
    command.add_argument(
        "--exact-padding", action="store_true", help="only kernels of convolutions that never multiply padding"
    )
    command.add_argument("--deterministic", action="store_true", help="only kernels with the same bits each time")
    command.add_argument("--workspace", type=int, metavar="BYTES", help="most workspace that a kernel may take")
    return command


def _add_cache(commands: _Commands) -> argparse.ArgumentParser:
    command = commands.add_parser("cache", help="list, move or forget the kernels that were chosen")
    command.set_defaults(run=_cache)
    which = command.add_mutually_exclusive_group()
    which.add_argument("--export", metavar="FILE", help="write what is remembered to FILE")
    which.add_argument("--load", metavar="FILE", help="remember what FILE holds as well")
    which.add_argument("--clear", action="store_true", help="forget all")
    return command


def _add_bench(commands: _Commands) -> argparse.ArgumentParser:
    command = commands.add_parser("bench", help="measure calls")
    command.set_defaults(run=_run_bench)
    _add_problems(command, "*", " (default: a few)")
    command.add_argument("--device", default="cpu", help="cpu or cuda:N, which needs PyTorch (default: cpu)")
    command.add_argument(
        "--seconds", type=_seconds, default=0.5, metavar="SECONDS", help="for each problem (default: 0.5)"
    )
    command.add_argument("--plot", type=_svg, metavar="FILE.svg", help="draw the times")
    return command


def _add_problems(command: argparse.ArgumentParser, count: str, default: str) -> None:
    text = f"a line in quotes, such as {_EXAMPLE}; a file of such lines; or -, standard input{default}"
    command.add_argument("problems", nargs=count, metavar="PROBLEM", help=text)


def _text(given: str) -> str:
    """An argument as UTF-8, whatever the locale has made of its bytes."""
    return os.fsencode(given).decode("utf-8", "backslashreplace")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds; expected 0 or more, such as 2.5")
    return seconds


def _svg(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() != ".svg":
        raise argparse.ArgumentTypeError(f"'{text}': plots are drawn as SVG; expected a name that ends in .svg")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}': there is no folder {path.parent}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is a folder; expected the name of a file")
    return path
