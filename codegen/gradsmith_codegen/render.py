"""From the plan to text: one template for each kind of file, and the few filters that templates need.

Output is in its final form: clang-format has nothing to change, so the filters know how it breaks what is too
long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

from . import formula_latex, model, text, vocabulary, words
from .cpp_names import type_parameter
from .plan import Plan
from .python_names import PythonPlan
from .wrapping import COLUMN_LIMIT

TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True)
class Artefact:
    """A file to be: its path below the output folder, its template, and what that is given."""

    path: str
    template: str
    context: dict[str, object]
    weight: int  # about how long it takes to render and write, in 30 us


def artefacts(plan: Plan) -> list[Artefact]:
    """What the generator writes, kind by kind."""
    stubs, formulas, tests, headers, pages = [], [], [], [], []
    for shard in range(plan.shards):
        ops = plan.shard(shard)
        with_formulas = [op for op in ops if op.has_formulas]
        context = {
            "plan": plan,
            "ops": ops,
            "with_formulas": with_formulas,
            "shard": shard,
            "entries": plan.entries(ops),
        }
        stubs.append(Artefact(f"src/ops_shard_{shard}.cc", "ops_shard.cc.jinja", context, 9 * len(ops)))
        context_of_formulas = {"plan": plan, "ops": with_formulas, "shard": shard}
        for kind in ("h", "cu"):
            template = f"formulas_shard.{kind}.jinja"
            weight = 2 * len(with_formulas)
            formulas.append(Artefact(f"src/formulas_{shard}.{kind}", template, context_of_formulas, weight))
        path = f"tests/generated_tests_{shard}.cc"
        tests.append(Artefact(path, "generated_tests.cc.jinja", context, 5 * len(ops)))
    include = f"include/{plan.library.name}"
    for op in plan.ops:
        context = {"plan": plan, "op": op}
        headers.append(Artefact(f"{include}/ops/{op.snake}.h", "op_header.h.jinja", context, 6))
        pages.append(Artefact(f"docs/{op.page}.md", "op_page.md.jinja", context, 4))
    context, weight = {"plan": plan}, len(plan.ops) // 3
    tables = [
        Artefact(f"{include}/ops.h", "ops.h.jinja", context, weight),
        Artefact("src/dispatch_table.cc", "dispatch_table.cc.jinja", context, weight),
        Artefact("docs/README.md", "support_matrix.md.jinja", context, weight),
    ]
    operands = [
        Artefact(f"src/{one.name}/operands.h", "kernel_operands.h.jinja", {"plan": plan, "family": one}, 3)
        for one in plan.families
    ]
    return [*stubs, *formulas, *tests, *headers, *pages, *tables, *operands, *_python_artefacts(plan)]


def _python_artefacts(plan: Plan) -> list[Artefact]:
    """The part of the Python package that is generated."""
    package = f"python/{plan.library.name}"
    folder = f"{package}/_ops"
    python = PythonPlan(plan)
    functions, stubs = [], []
    for op in python.ops:
        context: dict[str, object] = {"plan": plan, "op": op}
        path = f"{folder}/{op.plan.snake}_op"
        functions.append(Artefact(f"{path}.py", "python_op.py.jinja", context, 5))
        stubs.append(Artefact(f"{path}.pyi", "python_op.pyi.jinja", context, 3))
    context = {"plan": plan, "python": python}
    of_all = [
        Artefact(f"{folder}/__init__.py", "python_ops.py.jinja", context, len(plan.ops) // 3),
        Artefact(f"{package}/torch.pyi", "python_torch.pyi.jinja", context, len(plan.ops) // 3),
    ]
    return [*functions, *stubs, *of_all]


def render(wanted: Iterable[Artefact]) -> Iterator[tuple[str, str]]:
    """Path and text of each artefact, one at a time."""
    once = _Once()
    for artefact in wanted:
        yield artefact.path, _template(artefact.template).render(artefact.context, once=once)


def templates() -> list[Path]:
    """Every template, for the depfile."""
    return sorted(TEMPLATES.glob("*.jinja"))


class _CodeGenerator(CodeGenerator):
    """`a.b` in a template is the attribute b and nothing else, `a[b]` the item, and `a(b)` the call. Stricter
    than Jinja's own look-up, which tries both, and text between two statements is one string. Together that
    halves the time of rendering."""

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        self.visit(node.node, frame)
        self.write(f".{node.attr}")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        self.visit(node.node, frame)
        self.write("[")
        self.visit(node.arg, frame)
        self.write("]")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
            self.fail("calls in templates take positional arguments only", node.lineno)
        self.visit(node.node, frame)
        self.write("(")
        for argument in node.args:
            self.visit(argument, frame)
            self.write(", ")
        self.write("caller=caller)" if forward_caller else ")")

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:  # noqa: N802
        if frame.buffer is not None or frame.require_output_check:
            super().visit_Output(node, frame)
            return
        text = ""
        for i, piece in enumerate(node.nodes):
            if isinstance(piece, nodes.TemplateData):
                text += piece.data.replace("{", "{{").replace("}", "}}")
                continue
            self.writeline(f"piece_{i} = ", node)
            self.visit(piece, frame)
            text += f"{{piece_{i}}}"
        self.writeline(f"yield f{text!r}", node)


class _Environment(jinja2.Environment):
    code_generator_class = _CodeGenerator


@cache
def _template(name: str) -> jinja2.Template:
    template = _environment().get_template(name)
    template.globals = dict(template.globals)  # a ChainMap, which takes long to copy into each rendering
    return template


@cache
def _environment() -> jinja2.Environment:
    environment = _Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # what needs it is no str, and is refused unless it is escaped
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # nobody edits them while we run
    )
    environment.filters.update(
        attribute_default=words.attribute_default,
        attribute_range=words.attribute_range,
        attribute_kind=lambda attribute: f"k{attribute.kind.value.capitalize()}",
        attribute_entries=words.attribute_entries,
        bound=_bound,
        braces=_braces,
        camel=_camel,
        dim_kind=lambda dim: f"k{dim.kind.value.capitalize()}",
        element_type=_element_type,
        enumerator=lambda name: _data_type(name).cpp_enumerator,
        field_default=_field_default,
        field_type=_field_type,
        argument_type=_argument_type,
        headers=_headers,
        input_remarks=words.input_remarks,
        input_shape=words.input_shape,
        list_words=words.list_words,
        md=text.md,
        output_remarks=words.output_remarks,
        output_shape=words.output_shape,
        repeatable=words.repeatable,
        symbol_length=words.symbol_length,
        symbol_rule=words.symbol_rule,
    )
    environment.globals.update(
        assignment=_assignment,
        comparison=_comparison,
        declaration=_declaration,
        declared_row=_declared_row,
        call=_call,
        closure=_closure,
        code=text.md_code,
        cell_code=text.md_cell_code,
        docstring=text.docstring,
        docstring_text=text.docstring_text,
        doxygen=text.doxygen,
        dynamic_value=_dynamic_value,
        enumerate=enumerate,
        field_value=_field_value,
        formula_block=formula_latex.block,
        html_comment=text.html_comment,
        line_comment=text.cpp_comment,
        py_comment=text.py_comment,
        py_string=text.py_string,
        quoted=lambda words: ", ".join(f'"{word}"' for word in words),
        string=text.cpp_string,
        signature=_signature,
        specialisation=_specialisation,
        templated=_templated,
        typed_row=_typed_row,
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
    return f"{head}(\n{_continuation(head)}{listed}){tail}"


def _continuation(line: str) -> str:
    """The blanks that a line begins with which goes on with this one."""
    return " " * (len(line) - len(line.lstrip()) + 4)


def _assignment(target: str, value: str) -> str:
    """A definition: on one line, or else its value on the next."""
    line = f"{target} = {value};"
    return line if len(line) <= COLUMN_LIMIT else f"{target} =\n{_continuation(target)}{value};"


def _templated(template: str, arguments: Sequence[str], tail: str) -> str:
    """What ends in `Name<A, B>`, the template, its arguments and what follows: on one line, or else each
    argument on its own."""
    line = f"{template}<{', '.join(arguments)}>{tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    blanks = _continuation(template)
    return f"{template}<\n" + ",\n".join([f"{blanks}{one}" for one in arguments]) + f">{tail}"


def _declaration(template: str, arguments: Sequence[str], mark: str, name: str) -> str:
    """`const Inputs<A, B>& inputs,`: on one line, or else its name on the next, or the template behind its
    namespace, or each argument on its own."""
    kind = f"{template}<{', '.join(arguments)}>{mark}"
    blanks = _continuation(template)
    if len(kind) <= COLUMN_LIMIT < len(kind) + 1 + len(name):
        return f"{kind}\n{blanks[4:] if name.startswith('/*') else blanks}{name}"
    if not mark and len(kind) > COLUMN_LIMIT:  # of a variable and no parameter
        return f"{template}<\n{blanks}{', '.join(arguments)}>\n{blanks}{name}"
    namespace, colons, own = template.rpartition("::")
    if colons and len(kind) > COLUMN_LIMIT >= len(f"{blanks}{own}{kind[len(template) :]}"):
        return f"{namespace}{colons}\n{_declaration(f'{blanks}{own}', arguments, mark, name)}"
    return _templated(template, arguments, f"{mark} {name}")


def _specialisation(head: str, template: str, arguments: Sequence[str]) -> str:
    """`Status Relu<A, B>(`: on one line, or else its head on the line before, or each argument on its own."""
    line = f"{template}<{', '.join(arguments)}>("
    if len(line) <= COLUMN_LIMIT < len(head) + 1 + len(line):
        return f"{head}\n{line}"
    return _templated(f"{head} {template}", arguments, "(")


def _declared_row(name: str, arguments: Sequence[str]) -> str:
    """`kHasRelu<A, B>`, which is true: on one line, or else broken before its value, before its name, or each
    argument on its own."""
    head, row = "inline constexpr bool", f"{name}<{', '.join(arguments)}>"
    if len(f"{head} {row} =") <= COLUMN_LIMIT:
        return _assignment(f"{head} {row}", "true")
    if len(f"    {row} =") <= COLUMN_LIMIT:
        return f"{head}\n{_assignment(f'    {row}', 'true')}"
    return _templated(f"{head} {name}", arguments, " = true;")


def _typed_row(name: str, arguments: Sequence[str]) -> str:
    """`{"row", &Run<A, B>}` of a list: on one line, or else the function on the next, or each argument on its
    own."""
    first, function = f'    {{"{name}",', f"&Run<{', '.join(arguments)}>}},"
    if len(f"{first} {function}") <= COLUMN_LIMIT:
        return f"{first} {function}"
    if len(f"     {function}") <= COLUMN_LIMIT:
        return f"{first}\n     {function}"
    blanks = " " * (len(first) + 5)
    return f"{first} &Run<\n" + ",\n".join([f"{blanks}{one}" for one in arguments]) + ">},"


def _closure(target: str, parameters: str, statements: Sequence[str]) -> str:
    """A function object that is defined: on one line where it has one statement and fits."""
    head = f"{target} = [&]({parameters}) {{"
    line = f"{head} {' '.join(statements)} }};"
    if len(statements) == 1 and len(line) <= COLUMN_LIMIT:
        return line
    indent = " " * (len(target) - len(target.lstrip()))
    return "\n".join([head, *[f"{indent}  {statement}" for statement in statements], f"{indent}}};"])


def _comparison(left: str, right: str, tail: str) -> str:
    """`left == right`: on one line, or else its right side on the next."""
    line = f"{left} == {right}{tail}"
    indent = " " * (len(left) - len(left.lstrip()) + 4)
    return line if len(line) <= COLUMN_LIMIT else f"{left} ==\n{indent}{right}{tail}"


def _bound(value: float | None, otherwise: str) -> str:
    if value is None:
        return otherwise
    infinity = "internal::kInfinity"
    return repr(float(value)) if math.isfinite(value) else f"{'-' if value < 0 else ''}{infinity}"


def _field_type(attribute: model.Attribute) -> str:
    kind = {
        model.AttributeKind.INT: "::std::int64_t",
        model.AttributeKind.FLOAT: "double",
        model.AttributeKind.INTS: "::gradsmith::IntList",
        model.AttributeKind.ENUM: f"::gradsmith::{attribute.enum}",
        model.AttributeKind.BOOL: "bool",
        model.AttributeKind.FLOATS: "::gradsmith::FloatList",
        model.AttributeKind.STRING: "::std::string",
    }[attribute.kind]
    return f"::std::optional<{kind}>" if attribute.is_optional else kind


def _field_default(attribute: model.Attribute) -> str:
    """What the field of the attributes struct is where nothing is given."""
    return "{}" if attribute.default is None else _field_value(attribute, attribute.default)


def _argument_type(tensor: model.Tensor, kind: str) -> str:
    """The type of a field that holds one of a kind, or a list of these."""
    return f"::std::vector<::gradsmith::{kind}>" if tensor.list else f"::gradsmith::{kind}"


def _headers(op: model.Op) -> list[str]:
    """The headers of the standard library that an operator's structs need, in order."""
    attributes = op.attributes
    values = [value for one in attributes for value in _listed(one)]
    needs = {
        "cstdint": True,
        "limits": any(isinstance(value, float) and math.isinf(value) for value in values),
        "optional": any(one.is_optional for one in attributes),
        "string": any(one.kind is model.AttributeKind.STRING for one in attributes),
        "vector": op.has_lists,
    }
    return [header for header, is_needed in needs.items() if is_needed]


def _listed(attribute: model.Attribute) -> Sequence[object]:
    return attribute.default if isinstance(attribute.default, tuple) else (attribute.default,)


@cache
def _braces(values: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(_integer, values))}}}"


def _field_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as the attributes struct takes it."""
    if attribute.kind is model.AttributeKind.ENUM:
        return f"::gradsmith::{attribute.enum}::{value}"
    return text.cpp_string(value) if isinstance(value, str) else _number(attribute, value)


def _dynamic_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as gradsmith::Attribute takes it."""
    if isinstance(value, str):
        return text.cpp_string(value)
    list_type = "FloatList" if attribute.kind.is_real else "IntList"
    return (list_type if isinstance(value, tuple) else "") + _number(attribute, value)


def _number(attribute: model.Attribute, value: model.AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        if attribute.kind.is_real:
            return f"{{{', '.join(map(_real, value))}}}"
        return _braces(cast(tuple[int, ...], value))
    return _real(cast(float, value)) if attribute.kind.is_real else _integer(cast(int, value))


def _real(value: float) -> str:
    infinity = "::std::numeric_limits<double>::infinity()"
    return repr(float(value)) if math.isfinite(value) else f"{'-' if value < 0 else ''}{infinity}"


def _integer(value: int) -> str:
    """C++ has no literal for the least 64-bit integer."""
    return f"({value + 1} - 1)" if value == -(2**63) else str(value)


@cache
def _element_type(name: str) -> str:
    """The C++ type of a tensor's elements, as it can be spelled beside fields of any name."""
    if name not in vocabulary.TYPES:
        return type_parameter(name)
    data_type = _data_type(name)
    if data_type.cpp_type == data_type.value:  # the library's own, or a word of C++
        return f"::gradsmith::{data_type.value}" if data_type.value[0].isupper() else data_type.value
    return f"::{data_type.cpp_type}"


def _data_type(name: str) -> model.DataType:
    return vocabulary.TYPES[name]
