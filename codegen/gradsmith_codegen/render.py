"""From the plan to text: one template for each kind of file, and the few filters that templates need.

Output is in its final form: clang-format has nothing to change, so filters break what is too long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

from . import cpp_lines, cpp_values, formula_latex, text, words
from .artefacts import Artefact

TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(wanted: Iterable[Artefact]) -> Iterator[tuple[str, str]]:
    """Yields path and text of each artefact, one at a time."""
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
    _add_filters(environment)
    _add_functions(environment)
    return environment


def _add_filters(environment: jinja2.Environment) -> None:
    """Adds what templates apply to a value by `|`."""
    environment.filters.update(
        attribute_default=words.attribute_default,
        attribute_range=words.attribute_range,
        attribute_kind=lambda attribute: f"k{attribute.kind.value.capitalize()}",
        attribute_entries=words.attribute_entries,
        bound=cpp_values.bound,
        braces=cpp_values.braces,
        camel=_camel,
        dim_kind=lambda dim: f"k{dim.kind.value.capitalize()}",
        element_type=cpp_values.element_type,
        enumerator=lambda name: cpp_values.data_type(name).cpp_enumerator,
        field_default=cpp_values.field_default,
        field_type=cpp_values.field_type,
        argument_type=cpp_values.argument_type,
        headers=cpp_values.headers,
        input_remarks=words.input_remarks,
        input_shape=words.input_shape,
        list_words=words.list_words,
        md=text.md,
        output_remarks=words.output_remarks,
        shared_gradient=lambda tensor: words.unmarked(words.shared_gradient(tensor)),
        output_shape=words.output_shape,
        repeatable=words.repeatable,
        symbol_length=words.symbol_length,
        rule_lines=words.rule_lines,
        symbol_rule=words.symbol_rule,
    )


def _add_functions(environment: jinja2.Environment) -> None:
    """Adds what templates call."""
    environment.globals.update(
        assignment=cpp_lines.assignment,
        comparison=cpp_lines.comparison,
        declaration=cpp_lines.declaration,
        declared_row=cpp_lines.declared_row,
        call=cpp_lines.call,
        closure=cpp_lines.closure,
        code=text.md_code,
        cell_code=text.md_cell_code,
        docstring=text.docstring,
        docstring_text=text.docstring_text,
        doxygen=text.doxygen,
        dynamic_value=cpp_values.dynamic_value,
        enumerate=enumerate,
        field_value=cpp_values.field_value,
        formula_block=formula_latex.block,
        html_comment=text.html_comment,
        line_comment=text.cpp_comment,
        py_comment=text.py_comment,
        py_string=text.py_string,
        quoted=lambda words: ", ".join(f'"{word}"' for word in words),
        string=text.cpp_string,
        signature=cpp_lines.signature,
        specialisation=cpp_lines.specialisation,
        templated=cpp_lines.templated,
        typed_row=cpp_lines.typed_row,
    )


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
