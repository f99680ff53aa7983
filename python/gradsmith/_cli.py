"""The command line: `python -m gradsmith`. Nothing but this module and _tables prints."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import gradsmith
from gradsmith import _bench, _table, _tables, _tuning

_R = TypeVar("_R")

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
GENERATOR_VERBS = ("generate", "check", "list")

_ERRORS = (ImportError, ValueError, NotImplementedError, MemoryError, RuntimeError)

_EPILOG = (
    "generate, check and list are the generator's (gradsmith-codegen) and need its package and PyYAML. "
    "Exit status: 0 for success, 1 for what failed or is not supported, 2 for wrong usage."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given and given[0] in GENERATOR_VERBS:
            return _generator(given)
        options = _parser().parse_args(given)
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"gradsmith: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except _ERRORS as error:
        print(f"gradsmith: {error}", file=sys.stderr)
        return FAILED


def _generator(arguments: list[str]) -> int:
    try:
        cli = importlib.import_module("gradsmith_codegen.cli")
    except ModuleNotFoundError as missing:
        print(
            f"gradsmith: {arguments[0]} needs the Python module {missing.name}; install the generator "
            "(python3 -m pip install ./codegen, in a checkout of gradsmith)",
            file=sys.stderr,
        )
        return FAILED
    status: int = cli.main(arguments)
    return status


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
        if not options.op or options.op in (op.name, op.function)
    ]
    _tables.show(rows, options.json)
    if options.op and not rows:
        print(f"gradsmith: {gradsmith.explain(options.op)}", file=sys.stderr)
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
        _tables.show([fields], as_json=True)
    else:
        print(told)
        if missing:
            print(f"Here {options.device} cannot be used: {missing}")
    return OK if row else FAILED


def _tune(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")

    def tune(problem: str) -> dict[str, Any]:
        known, start = set(gradsmith.cache.choices()), time.perf_counter()
        gradsmith.tune(problem, device=options.device, mode=options.mode, budget=options.budget)
        seconds = time.perf_counter() - start
        chosen = [choice.kernel for choice in gradsmith.cache.choices() if choice not in known]
        return {"problem": problem, "device": options.device, "seconds": seconds, "chosen": chosen}

    with gradsmith.policy(
        allow_tf32=options.allow_tf32,
        deterministic=options.deterministic or None,
        workspace_limit=options.workspace,
    ):
        rows, status = _each(_tuning.problems_of(text), tune)
    _tables.show(rows, options.json)
    return status


def _each(problems: Sequence[str], work: Callable[[str], _R]) -> tuple[list[_R], int]:
    """What came of the problems that nothing is wrong with; of the others it is said what is."""
    made, status = [], OK
    for problem in problems:
        try:
            made.append(work(problem))
        except _ERRORS as error:
            print(f"gradsmith: {problem}: {error}", file=sys.stderr)
            status = FAILED
    return made, status


def _cache(options: argparse.Namespace) -> int:
    if options.export:
        gradsmith.cache.export(options.export)
    elif options.load:
        gradsmith.cache.load(options.load)
    elif options.clear:
        gradsmith.cache.clear()
    else:
        if not options.json:
            print(f"file: {gradsmith.cache.path() or 'none'}")
        _tables.show([vars(choice) for choice in gradsmith.cache.choices()], options.json)
    return OK


def _run_bench(options: argparse.Namespace) -> int:
    problems = options.problems or _bench.PROBLEMS
    bar = _bench.CountBar(sys.stderr, len(problems))

    def measure(problem: str) -> _bench.Measured:
        bar.show(problem)
        return _bench.measure(problem, options.device, options.seconds)

    rows, status = _each(problems, measure)
    bar.close()
    _tables.show([vars(row) for row in rows], options.json)
    if options.plot and rows:
        Path(options.plot).write_text(_bench.plot(rows), encoding="utf-8")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gradsmith", description="Gradient operators.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"gradsmith {gradsmith.__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="{generate,check,list,ops,explain,tune,cache,bench}", required=True
    )

    command = commands.add_parser("ops", help="list the operators and their rows")
    command.add_argument("op", nargs="?", help="one operator, by its name or its function's")
    _common(command, _ops)

    command = commands.add_parser("explain", help="say whether an operator takes some types, and what is nearest")
    command.add_argument("op", help="an operator, by its name or its function's")
    command.add_argument("types", nargs="*", help="a type for each type parameter: float, double, half, bf16")
    command.add_argument("--device", default="cpu", help="cpu or cuda:N (default: cpu)")
    _common(command, _explain)

    command = commands.add_parser("tune", help="choose the kernels of a file of problems ahead of time")
    command.add_argument("file", help='lines such as "ConvGrad half X=8x3x9x9 W=4x3x3x3"; -: standard input')
    command.add_argument("--device", default="cuda:0", help="default: cuda:0")
    command.add_argument("--mode", default="benchmark", choices=("benchmark", "heuristic", "default"))
    command.add_argument("--budget", type=float, default=10.0, metavar="SECONDS", help="for each problem (default: 10)")
    command.add_argument("--allow-tf32", action="store_true", help="float may be multiplied in TF32")
    command.add_argument("--deterministic", action="store_true", help="only kernels with the same bits each time")
    command.add_argument("--workspace", type=int, metavar="BYTES", help="most workspace that a kernel may take")
    _common(command, _tune)

    command = commands.add_parser("cache", help="list, move or forget the kernels that were chosen")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--export", metavar="FILE", help="write what is remembered to FILE")
    which.add_argument("--load", metavar="FILE", help="remember what FILE holds as well")
    which.add_argument("--clear", action="store_true", help="forget all")
    _common(command, _cache)

    command = commands.add_parser("bench", help="measure calls")
    command.add_argument("problems", nargs="*", help="lines as for tune, each one argument (default: a few)")
    command.add_argument("--device", default="cpu", help="cpu or cuda:N, which needs PyTorch (default: cpu)")
    command.add_argument("--seconds", type=float, default=0.5, help="for each problem (default: 0.5)")
    command.add_argument("--plot", metavar="FILE.svg", help="draw the times")
    _common(command, _run_bench)
    return parser


def _common(command: argparse.ArgumentParser, run: object) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)
