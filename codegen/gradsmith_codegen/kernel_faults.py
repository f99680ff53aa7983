"""What a kernel's header says of it, against itself: the constants against the fields, and each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .kernel_terms import FOREIGN, MEMBERS, NUMBER_TYPES, OPTIONAL, RUNS_ANYWHERE, Kernel, Limit, Rule, Shapes
from .shapes import ShapeRule
from .suggestions import nearest

_NO_FIELD = "which is no field of its Inputs or Outputs"


def contradictions(kernel: Kernel, rules: Mapping[str, Rule]) -> list[str]:
    """`rules` are those of the header, by names such as conv::OutputSpatial. What builds on what is at fault
    is not looked at."""
    return (
        [*_unread_members(kernel), *_uncalled_functions(kernel)]
        or [*_shape_faults(kernel, rules), *_type_faults(kernel)]
        or [*_limit_faults(kernel), *_gradient_faults(kernel)]
    )


def _unread_members(kernel: Kernel) -> Iterator[str]:
    members = zip(MEMBERS, (kernel.attributes, kernel.inputs, kernel.outputs), strict=True)
    says_of_tensors = any((kernel.shapes, kernel.types, kernel.gradients))
    for name, found in members:
        is_compared = kernel.shapes or kernel.limits.of if name == "Attributes" else says_of_tensors
        if found is None and is_compared:
            yield f"its {name} are in no form that the generator reads: fields, one to a declaration"


def _uncalled_functions(kernel: Kernel) -> Iterator[str]:
    for run in sorted(kernel.runs - {RUNS_ANYWHERE}) if kernel.runs_anywhere else ():
        yield f"it has {RUNS_ANYWHERE}, which is called on every backend, and {run}, which then never is"


def _shape_faults(kernel: Kernel, rules: Mapping[str, Rule]) -> Iterator[str]:
    if kernel.shapes:
        yield from _unlike_fields("kShapes", kernel.shapes.tensors, kernel.tensors)
        yield from _bad_shapes(kernel, kernel.shapes)
        for symbol, rule in kernel.shapes.rules.items():
            yield from _bad_rule(kernel.shapes, symbol, rule, rules)


def _type_faults(kernel: Kernel) -> Iterator[str]:
    if kernel.types and kernel.inputs is not None and kernel.outputs is not None:
        yield from _unlike_fields("kTypes", kernel.types.tensors, kernel.tensors)
        unused = kernel.types.choices.keys() - kernel.types.tensors.values()
        yield from (f"kTypes has no tensor of type {name}" for name in sorted(unused))


def _limit_faults(kernel: Kernel) -> Iterator[str]:
    for name, limit in kernel.limits.of.items():
        yield from _bad_limit(kernel, name, limit)


def _gradient_faults(kernel: Kernel) -> Iterator[str]:
    for name in kernel.gradients.tensors if kernel.gradients else ():
        if name not in kernel.tensors:
            yield f"kGradientOf has '{name}', {_NO_FIELD}"


def _unlike_fields(constant: str, said: Mapping[str, object], fields: Mapping[str, object]) -> Iterator[str]:
    lacking = [name for name in fields if name not in said]
    for name in said:
        if name not in fields:
            meant = lacking[0] if len(lacking) == 1 else nearest(name, lacking)
            lacking = [other for other in lacking if other != meant]
            hint = f"; did you mean '{meant}'?" if meant else ""
            yield f"{constant} has '{name}', {_NO_FIELD}{hint}"
    yield from (f"{constant} lacks its field '{name}'" for name in lacking)


def _bad_shapes(kernel: Kernel, shapes: Shapes) -> Iterator[str]:
    symbols, attributes = shapes.symbols, kernel.attributes or {}
    dims = [dim for shape in shapes.tensors.values() for dim in shape]
    both = {dim.symbol for dim in dims if dim.symbol and symbols[dim.symbol] is not dim.is_list}
    yield from (f"kShapes has '{name}' as a list and as a single dim" for name in sorted(both))
    for divisor in sorted({dim.divisor for dim in dims if dim.divisor}):
        if attributes.get(divisor) != "int":
            yield f"kShapes divides by '{divisor}', which is no std::int64_t of its Attributes"
    for output, given in shapes.in_place.items():
        if output not in (kernel.outputs or {}) or given not in (kernel.inputs or {}):
            yield f"kShapes has '{output} in_place_of {given}', which are no output and input of it"


def _bad_rule(shapes: Shapes, symbol: str, rule: ShapeRule, rules: Mapping[str, Rule]) -> Iterator[str]:
    symbols, known = shapes.symbols, rules.get(rule.function)
    if rule.is_sum:
        yield from _bad_sum(shapes, symbol, rule)
    elif not symbols.get(symbol):
        yield f"kShapes has a rule for '{symbol}', which is no list symbol of its shapes"
    elif not known:
        yield f"kShapes has the rule {rule.function}, which is no function of the header"
    elif known.arguments != len(rule.arguments):
        yield f"kShapes has the rule {rule.text}, which takes {known.arguments} symbols"
    else:
        lacking = [name for name in rule.arguments if name not in symbols]
        yield from (f"kShapes has the rule {rule.text}, and '{name}' in no shape" for name in lacking)


def _bad_sum(shapes: Shapes, symbol: str, rule: ShapeRule) -> Iterator[str]:
    single = [name for name in (symbol, *rule.arguments) if shapes.symbols.get(name) is False]
    if len(rule.arguments) != 1 or len(single) != 2:
        yield f"kShapes has the rule {symbol} = {rule.text}, which is for two single dims of its shapes"


def _without_optional(kind: str | None) -> str:
    return (kind or "").removeprefix(OPTIONAL)


def _bad_limit(kernel: Kernel, name: str, limit: Limit) -> Iterator[str]:
    symbols = kernel.shapes.symbols if kernel.shapes else {}
    attributes = kernel.attributes or {}
    is_list, kind = symbols.get(name), attributes.get(name)
    is_input = name in (kernel.inputs or {})
    if limit.of_input and is_input and limit.text == f"{name} {limit.of_input}":
        return
    if limit.of_input:
        yield f"kLimits has '{limit.text}', of which '{name}' is no input or more is said than that"
        return
    if is_list is None and kind is None:
        yield f"kLimits has '{name}', which is no symbol of kShapes and no field of its Attributes"
        return
    number = _without_optional(kind)
    if (limit.lengths and not is_list) or (limit.length and not (is_list or number in ("ints", "floats"))):
        yield f"kLimits gives '{name}' a length, and it is no list"
    if (limit.minimum is not None or limit.maximum is not None) and number not in NUMBER_TYPES:
        is_foreign = kind is not None and kind.startswith(FOREIGN)
        what = f"{kind}, neither {' nor '.join(NUMBER_TYPES.values())}" if is_foreign else "no number"
        yield f"kLimits gives '{name}' a range, and it is {what}"
    is_before_axis = bool(limit.length and is_list and attributes.get(limit.length.symbol) == "int")
    if limit.broadcast_to and not (is_list and symbols.get(limit.broadcast_to)):
        yield f"kLimits has '{name} broadcast_to {limit.broadcast_to}', which are no list symbols of kShapes"
    if limit.axis_of and (kind != "int" or limit.axis_of not in (kernel.inputs or {})):
        yield f"kLimits has '{name} axis_of {limit.axis_of}', no std::int64_t and input"
    if limit.length and not symbols.get(limit.length.symbol) and not is_before_axis:
        yield f"kLimits gives '{name}' the length of '{limit.length.symbol}', which is no list symbol"
    if limit.multiple_of and (is_list is not False or attributes.get(limit.multiple_of) != "int"):
        yield f"kLimits has '{name} multiple_of {limit.multiple_of}', no single dim and std::int64_t"
