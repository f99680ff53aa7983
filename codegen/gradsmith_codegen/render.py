"""From the plan to text: one template for each kind of file, and the few filters that templates need.

Output is in its final form: clang-format has nothing to change, so the filters know how it breaks what is too
long.
"""

from __future__ import annotations

import builtins
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import jinja2

from . import model
from .plan import Plan

TEMPLATES = Path(__file__).resolve().parent / "templates"
COLUMN_LIMIT = 100


def render(plan: Plan) -> dict[str, str]:
    """Returns what the generator writes: path below the output folder -> text."""
    environment = _environment()
    environment.globals["once"] = _Once()
    template = environment.get_template
    header, page = template("op_header.h.jinja"), template("op_page.md.jinja")
    stubs, tests = template("ops_shard.cc.jinja"), template("generated_tests.cc.jinja")
    contents = {
        "include/gradsmith/ops.h": template("ops.h.jinja").render(plan=plan),
        "src/dispatch_table.cc": template("dispatch_table.cc.jinja").render(plan=plan),
        "docs/README.md": template("support_matrix.md.jinja").render(plan=plan),
    }
    for op in plan.ops:
        contents[f"include/gradsmith/ops/{op.snake}.h"] = header.render(op=op)
        contents[f"docs/{op.name}.md"] = page.render(op=op, plan=plan)
    for shard in range(plan.shards):
        ops = plan.shard(shard)
        context = {"plan": plan, "ops": ops, "shard": shard, "entries": plan.entries(ops)}
        contents[f"src/ops_shard_{shard}.cc"] = stubs.render(context)
        contents[f"tests/generated_tests_{shard}.cc"] = tests.render(context)
    return contents


def templates() -> list[Path]:
    """Every template, for the depfile."""
    return sorted(TEMPLATES.glob("*.jinja"))


class _StrictEnvironment(jinja2.Environment):
    """`a.b` in a template is the attribute b and nothing else. Stricter than Jinja's own look-up, which tries
    items too, and it takes a quarter of the time off rendering."""

    getattr = staticmethod(builtins.getattr)  # type: ignore[assignment]


@cache
def _environment() -> jinja2.Environment:
    environment = _StrictEnvironment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is C++ and Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        attribute_range=_attribute_range,
        attribute_kind=lambda attribute: f"k{attribute.kind.value.capitalize()}",
        bound=_bound,
        braces=_braces,
        camel=_camel,
        comment=_comment,
        dim_kind=lambda dim: f"k{dim.kind.value.capitalize()}",
        element_type=lambda name: _data_type(name).value if _is_data_type(name) else name,
        enumerator=lambda name: _data_type(name).cpp_enumerator,
        field_type=_field_type,
        md=_markdown_cell,
        symbol_length=_symbol_length,
        symbol_rule=_symbol_rule,
    )
    environment.globals.update(
        assignment=_assignment,
        call=_call,
        dynamic_value=_dynamic_value,
        field_value=_field_value,
        signature=_signature,
    )
    return environment


class _Once:
    """`{% call once(name, identity) %}`: a block that is the same for many ops is rendered for the first."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, object], str] = {}

    def __call__(self, name: str, identity: object, caller: Callable[[], str]) -> str:
        key = (name, identity)
        if key not in self._texts:
            self._texts[key] = caller()
        return self._texts[key]


@cache
def _camel(name: str) -> str:
    """`auto_pad` -> `AutoPad`."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


@cache
def _comment(text: str, indent: int) -> str:
    """A Doxygen comment, wrapped as clang-format would."""
    start = " " * indent + "/// "
    if len(start) + len(text) <= COLUMN_LIMIT:
        return start + text
    lines = textwrap.wrap(
        text, COLUMN_LIMIT, initial_indent=start, subsequent_indent=start, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)


def _signature(head: str, parameters: Sequence[str], tail: str) -> str:
    """A declaration's head with its parameters: on one line, or else each on its own."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    return f"{head}(\n" + ",\n".join(f"    {parameter}" for parameter in parameters) + f"){tail}"


def _call(head: str, arguments: Sequence[object], tail: str) -> str:
    """A call: on one line, or else its arguments on the next."""
    listed = ", ".join(str(argument) for argument in arguments)
    line = f"{head}({listed}){tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    return f"{head}(\n{indent}{listed}){tail}"


def _assignment(target: str, value: str) -> str:
    """A definition: on one line, or else its value on the next."""
    line = f"{target} = {value};"
    return line if len(line) <= COLUMN_LIMIT else f"{target} =\n    {value};"


def _bound(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else repr(float(value))


def _attribute_range(attribute: model.Attribute) -> str:
    if attribute.choices:
        return ", ".join(attribute.choices)
    low, high = attribute.minimum, attribute.maximum
    if low is None:
        return "any" if high is None else f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


def _symbol_length(symbol: model.Symbol) -> str:
    if not symbol.is_list:
        return "one"
    if symbol.length_of:
        return f"as {symbol.length_of}"
    low, high = symbol.min_length, symbol.max_length
    return str(low) if low == high else f"{low} to {high}"


def _symbol_rule(symbol: model.Symbol) -> str:
    if symbol.multiple_of:
        return f"a multiple of `{symbol.multiple_of}`"
    return f"`{symbol.rule.text}`" if symbol.rule else ""


def _field_type(attribute: model.Attribute) -> str:
    return {
        model.AttributeKind.INT: "std::int64_t",
        model.AttributeKind.FLOAT: "double",
        model.AttributeKind.INTS: "IntList",
        model.AttributeKind.ENUM: attribute.enum,
    }[attribute.kind]


@cache
def _braces(values: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def _field_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as the attributes struct takes it."""
    if attribute.kind is model.AttributeKind.ENUM:
        return f"{attribute.enum}::{value}"
    return _number(attribute, value)


def _dynamic_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as gradsmith::Attribute takes it."""
    if attribute.kind is model.AttributeKind.ENUM:
        return f'"{value}"'
    return ("IntList" if isinstance(value, tuple) else "") + _number(attribute, value)


def _number(attribute: model.Attribute, value: model.AttributeValue) -> str:
    if isinstance(value, tuple):
        return _braces(value)
    return repr(float(value)) if attribute.kind is model.AttributeKind.FLOAT else str(value)


def _is_data_type(name: str) -> bool:
    return name in model.TYPE_ALIASES or any(name == data_type.value for data_type in model.DataType)


def _data_type(name: str) -> model.DataType:
    return model.TYPE_ALIASES.get(name) or model.DataType(name)


@cache
def _markdown_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
