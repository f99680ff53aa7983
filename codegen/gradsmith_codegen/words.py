"""What pages and `explain` say of tensors, attributes and dims, in Markdown."""

from __future__ import annotations

from . import model, text
from .grammar import MAX_RANK


def unmarked(markdown: str) -> str:
    """The same as plain text: code is the only markup here."""
    return markdown.replace("`", "")


def attribute_default(attribute: model.Attribute) -> str:
    """As a page has it."""
    value = attribute.default
    if value is None:
        return "absent"
    if attribute.kind is model.AttributeKind.STRING:
        return text.md_cell_code(text.py_string(str(value)))
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def attribute_range(attribute: model.Attribute) -> str:
    if attribute.choices:
        return ", ".join(attribute.choices)
    low, high = attribute.minimum, attribute.maximum
    if attribute.axis_of:
        return f"an axis of {attribute.axis_of}"
    if attribute.kind in (model.AttributeKind.BOOL, model.AttributeKind.STRING):
        return ""
    if low is None:
        return "any" if high is None else f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


def symbol_length(symbol: model.Symbol) -> str:
    if not symbol.is_list:
        return "one"
    if symbol.length_of:
        return f"as {symbol.length_of}"
    if symbol.length_axis:
        return f"those before `{symbol.length_axis}`, of at most {MAX_RANK} in all"
    lengths = _range(*symbol.lengths(condition=False))
    if not symbol.length_if:
        return lengths
    return f"{lengths}; {_range(*symbol.lengths(condition=True))} where `{symbol.length_if.attribute}`"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def symbol_rule(symbol: model.Symbol) -> str:
    if symbol.multiple_of:
        split = f", {symbol.split[0]} of {symbol.split[1]} each" if symbol.split else ""
        return f"a multiple of `{symbol.multiple_of}`{split}"
    if symbol.broadcast_to:
        return f"broadcast to {symbol.broadcast_to}"
    if symbol.of_each:
        return "one for each tensor of a list"
    if symbol.given_by:
        return _giver(symbol)
    return f"`{symbol.rule.text}`" if symbol.rule else ""


def rule_lines(symbol: model.Symbol) -> list[str]:
    """What a shape rule computes along each axis; none where nothing says it."""
    return symbol.rule.formula.lines if symbol.rule and symbol.rule.formula else []


def _giver(symbol: model.Symbol) -> str:
    passed = "those of the output that is passed"
    if symbol.given_by == model.OUTPUTS:
        return passed
    return f"`{symbol.given_by}`, or {passed}" if symbol.is_list else f"`{symbol.given_by}`"


def list_words(tensor: model.Tensor) -> str:
    """What is said of a list behind the shape of its tensors."""
    return f" each, a list of {tensor.list}" if tensor.list else ""


def output_shape(tensor: model.Tensor) -> str:
    return f"`{tensor.shape_text}`{list_words(tensor)}"


def input_shape(tensor: model.Tensor) -> str:
    if tensor.shape_of:
        return f"the dims of `{tensor.shape_of}`, on the host"
    return output_shape(tensor)


def input_remarks(tensor: model.Tensor) -> str:
    """How it may be given; empty where nothing is to be said of that."""
    remarks = ["optional"] if tensor.optional else []
    remarks += ["only its shape is needed"] if tensor.shape_only else []
    remarks += ["may lie on the host"] if tensor.may_be_on_host else []
    remarks += [_refused(tensor)] if tensor.refuses_outside else []
    return ", ".join(remarks)


def _refused(tensor: model.Tensor) -> str:
    """What becomes of integers by which nothing can be looked up."""
    but = f", but for `{tensor.never_refused}`" if tensor.never_refused else ""
    return f"what is no place is an error on the CPU and gives NaN on CUDA{but}"


def output_remarks(tensor: model.Tensor) -> str:
    remarks = ["optional" if tensor.optional else "required"]
    remarks += [f"may be written in place of input `{tensor.in_place_of}`"] if tensor.in_place_of else []
    remarks += [shared_gradient(tensor)] if shared_gradient(tensor) else []
    return ", ".join(remarks)


def shared_gradient(tensor: model.Tensor) -> str:
    """Whose gradient an output is that several inputs share; empty of others."""
    if len(tensor.gradient_of) < 2:
        return ""
    *head, last = [f"of `{name}`" for name in tensor.gradient_of]
    return f"the gradient {', '.join(head)} and {last}"


def attribute_entries(attribute: model.Attribute) -> str:
    """How many a list has; empty of one value."""
    if not attribute.length:
        return ""
    factor = f"{attribute.length.factor} for" if attribute.length.factor != 1 else "one for"
    return f"{factor} each of {attribute.length.symbol}"


_REPEATABLE = {
    model.Repeatable.ALWAYS: "always",
    model.Repeatable.POLICY: "where the context is deterministic",
    model.Repeatable.NEVER: "never; a deterministic context refuses it",
}


def repeatable(word: model.Repeatable) -> str:
    """When two calls give the same bits."""
    return _REPEATABLE[word]
