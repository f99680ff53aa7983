"""The verb `explain`: what there is to know of an operator, in words or as JSON."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .kernel_headers import KernelHeaders
from .verbs import (
    EPILOG,
    FAILED,
    OK,
    Refused,
    WordOrSchema,
    kernels,
    load,
    run_verb,
    schema_options,
    schema_position,
)

if TYPE_CHECKING:
    from .explanation import Argument, Attribute, Explanation, Row, Seam
    from .plan import OpPlan, Plan

_PATTERN = re.compile(r'#include "patterns/(channels|map|rows|windows)\w*\.h"')


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds it to a command line."""
    parser = commands.add_parser(
        "explain", help="say all of an operator, or of one of its rows", epilog=EPILOG
    )
    parser.set_defaults(run=run_verb, work=_explain, verb="explain", has_result=True)
    parser.add_argument("op", metavar="OP", help="the operator's name")
    parser.add_argument(
        "row",
        nargs="?",
        action=WordOrSchema,
        default="",
        metavar="ROW",
        help="one of its rows (default: all)",
    )
    schema_position(parser)
    schema_options(parser, ("text", "json"), "how it is shown")
    parser.set_defaults(library=None)


def _explain(options: argparse.Namespace) -> int:
    from .explanation import explanation
    from .library import Library
    from .plan import make_plan

    is_of_a_known_library = options.library is not None or _is_gradsmiths(options.schema)
    options.library = options.library or "gradsmith"
    schema = load(options)
    if not schema:
        return FAILED
    headers = kernels(options)
    plan = make_plan(schema, 1, Library(options.library, headers.own_families))
    op = _find(options, plan)
    patterns = patterns_of(op.op.kernel, headers)
    found = explanation(op, plan, options.row, patterns)
    if options.format == "json":
        print(json.dumps(found.data(), indent=2))
    else:
        header = found.header if is_of_a_known_library else f"LIBRARY/{found.header.partition('/')[2]}"
        print("\n".join(words_of(replace(found, header=header))))
    return OK


def _is_gradsmiths(schema: Path) -> bool:
    """Whether it is the schema of the very library that the generator came with."""
    own = Path(__file__).resolve().parents[2] / "ops.yaml"
    return own.exists() and schema.exists() and own.samefile(schema)


def _find(options: argparse.Namespace, plan: Plan) -> OpPlan:
    from .suggestions import did_you_mean

    ops = {op.name: op for op in plan.ops}
    if options.op not in ops:
        raise Refused(f"there is no operator '{options.op}'{did_you_mean(options.op, ops)}")
    op = ops[options.op]
    rows = [row.name for row in op.rows]
    if options.row and options.row not in rows:
        known = f"its rows are {', '.join(rows)}{did_you_mean(options.row, rows)}"
        raise Refused(f"{op.name} has no row '{options.row}'; {known}")
    return op


def patterns_of(kernel: str, headers: KernelHeaders) -> list[str]:
    """Those that the sources of a handwritten kernel's family include, where these are there; in order."""
    header = headers.headers.get(kernel.partition("::")[0])
    if not kernel or header is None:
        return []
    found: set[str] = set()
    for path in _sources(header.parent):
        found.update(_PATTERN.findall(path.read_text(encoding="utf-8", errors="replace")))
    return sorted(found)


def _sources(folder: Path) -> Iterator[Path]:
    for kind in ("*.h", "*.cc"):
        yield from sorted(folder.glob(kind))


# ----------------------------------------------------------------------------------------------------
# Words


def words_of(of: Explanation) -> Iterator[str]:
    """Lines of text."""
    yield f"{of.op}: {of.doc}"
    relation = [f"the gradient of {of.gradient_of}"] if of.gradient_of else []
    relation += [f"its gradient is {', '.join(of.gradients)}"] if of.gradients else []
    version = f"{of.declared_at}; {of.domain}, since version {of.since_version}"
    yield from _indented([version, _include(of.header), *relation])
    yield from _section("Versions", [f"{one.version}: {one.change}" for one in of.history])
    yield from _section("Formulas", [f"{name} = {text}" for name, text in of.formulas.items()])
    yield from _section("Seams", map(_seam, of.seams))
    yield from _section("Inputs", map(_argument, of.inputs))
    yield from _section("Outputs", map(_argument, of.outputs))
    yield from _section("Dims", [_joined(one.name, one.how_many, one.rule, one.doc) for one in of.dims])
    for dims in of.dims:
        yield from _section(f"{dims.name} along each axis", dims.formula)
    yield from _section("Attributes", map(_attribute, of.attributes))
    yield from _section(f"Rows, on {' and '.join(of.backends)}", map(_row, of.rows))
    yield from _section("Operations of a call", [of.operations] if of.operations else [])
    yield from _section("Where it is computed", [f"{one}: {text}" for one, text in of.sources.items()])
    yield from _section("How it is computed", of.schedule)
    yield from _section(
        "Two calls give the same bits", [f"{one}: {text}" for one, text in of.repeatable.items()]
    )
    yield from _section("NaN and zeros", [*of.notes, *(f"{one.what} ({one.test})" for one in of.remarks)])
    if of.special_values:
        given = ["Special values, in double", *(["attributes at their defaults"] if of.attributes else [])]
        given += [f"{' and '.join(of.special_values.ones)} being 1"] if of.special_values.ones else []
        yield from _section(", ".join(given), map(_equations, of.special_values.points))


def _include(header: str) -> str:
    if not header.startswith("LIBRARY/"):
        return f"#include <{header}>"
    return f"#include <{header}>, LIBRARY being gradsmith or a library of one's own, as '--library' says"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Nothing where there are no lines."""
    found = list(lines)
    if found:
        yield from ["", title, *_indented(found)]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _argument(of: Argument) -> str:
    return _joined(f"{of.name}: {of.type} {of.shape}", of.remarks, of.doc)


def _attribute(of: Attribute) -> str:
    default = "absent" if of.default is None else json.dumps(of.default)
    return _joined(f"{of.name}: {of.kind}", f"default {default}", of.range, of.entries, of.doc)


def _row(of: Row) -> str:
    return f"{of.name}: {_equations(of.types)}; a call moves at least {of.bytes} bytes ({of.declared_at})"


def _seam(of: Seam) -> str:
    return f"where {_equations(of.at)}: {_equations(of.gives)}"


def _equations(of: Mapping[str, str]) -> str:
    return ", ".join([f"{name} = {text}" for name, text in of.items()])


def _joined(first: str, *rest: str) -> str:
    """`axis: int; default -1; ...`, without what is empty."""
    return "; ".join([first, *[one for one in rest if one]])
