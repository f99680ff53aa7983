"""Shapes: the symbols that tensors share, where each is bound, and what computes it."""

from __future__ import annotations

from collections.abc import Iterator

from .. import chains
from ..data_types import DataType
from ..diagnostics import Note, counted
from ..grammar import MAX_RANK, family
from ..kernel_headers import HEADER
from ..model import OUTPUTS, Attribute, AttributeKind, Op, Symbol, Tensor
from ..shapes import Condition, Dim, DimKind
from ..spans import Span, Spanned
from ..suggestions import did_you_mean, instead, listing
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule

MAX_SYMBOLS = 16  # ShapeSymbols::kCapacity of the runtime


@op_rule("G301", needs=TENSORS, blames=("dims",))
def unknown_like(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor is `like` one that the operator does not have."""
    names = {tensor.name for tensor in scope.tensors}
    always_there = [tensor.name for tensor in scope.tensors if not tensor.optional]
    for tensor in scope.tensors:
        if tensor.like and tensor.like not in names:
            hint = did_you_mean(tensor.like, always_there, but=tensor.name)
            yield Finding(
                f"'{tensor.name}' is like '{tensor.like}', which does not exist{hint}", tensor.at("like")
            )


@op_rule("G302", needs=SHAPES, blames=("dims",))
def circular_like(op: Op, scope: Scope) -> Iterator[Finding]:
    """Tensors are `like` each other in a circle, or one is like itself."""
    tensors: dict[str, Tensor] = {}
    for tensor in scope.tensors:
        tensors.setdefault(tensor.name, tensor)
    for circle in chains.circles({name: tensor.like for name, tensor in tensors.items() if tensor.like}):
        message = f"'{circle[0]}' is like itself: {chains.text(circle)}"
        yield Finding(message, tensors[circle[0]].at("like"))


@op_rule("G329", needs=TENSORS, blames=("dims",))
def shape_of_no_output(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input holds the shape (`shape_of`) of something that is no output."""
    outputs = [tensor.name for tensor in op.outputs]
    for tensor in op.inputs:
        if tensor.shape_of and tensor.shape_of not in outputs:
            hint = did_you_mean(tensor.shape_of, outputs)
            message = f"'{tensor.name}' holds the shape of '{tensor.shape_of}', which is no output{hint}"
            yield Finding(message, tensor.at("shape_of"))


@op_rule("G330", needs=(*TENSORS, "types"), blames=("types",))
def shape_of_no_integers(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input that holds a shape (`shape_of`) has another type than int64."""
    for tensor in op.inputs:
        if tensor.shape_of and tensor.type != DataType.INT64.value:
            message = f"'{tensor.name}' holds the shape of '{tensor.shape_of}', and so must be of type int64"
            yield Finding(f"{message}, not {tensor.type}", tensor.at("type"))


@op_rule("G331", needs=(*SHAPES, "attributes"), blames=("dims",))
def like_a_held_shape(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor is `like` an input that holds the shape of an output (`shape_of`), or an attribute is an axis
    of such an input."""
    holders = {tensor.name: tensor for tensor in op.inputs if tensor.shape_of}
    users: list[tuple[Tensor | Attribute, str, str]] = [(one, one.like, "like") for one in scope.tensors]
    users += [(attribute, attribute.axis_of, "axis_of") for attribute in op.attributes]
    for user, name, key in users:
        holder = holders.get(name)
        if holder:
            what = "like" if key == "like" else "an axis of"
            message = f"'{user.name}' is {what} '{name}', which holds the shape of '{holder.shape_of}'"
            yield Finding(message, user.at(key), (Note("the input", holder.at("shape_of")),))


@op_rule("G304", needs=SHAPES)
def bad_in_place_of(op: Op, scope: Scope) -> Iterator[Finding]:
    """An output is in place of something that is no input, or an input of another type or shape."""
    inputs = {tensor.name: tensor for tensor in op.inputs}
    for tensor in op.outputs:
        if not tensor.in_place_of:
            continue
        partner = inputs.get(tensor.in_place_of)
        if not partner:
            hint = did_you_mean(tensor.in_place_of, inputs)
            message = f"output '{tensor.name}' is in place of '{tensor.in_place_of}', which is no input{hint}"
            yield Finding(message, tensor.at("in_place_of"))
        elif partner.shape_of or _form(partner) != _form(tensor):
            what = f"the dims of '{partner.shape_of}'" if partner.shape_of else _form(partner)[1]
            note = Note(f"the input is {partner.type} {what}", partner.span)
            message = (
                f"output '{tensor.name}' is {tensor.type} {_form(tensor)[1]}, unlike what it is in place of"
            )
            yield Finding(message, tensor.at("in_place_of"), (note,))


def _form(tensor: Tensor) -> tuple[str, str]:
    """Type and shape; of a list those of each of its tensors."""
    return tensor.type, f"{tensor.shape_text} each, a list" if tensor.list else tensor.shape_text


@op_rule("G306", needs=SHAPES, blames=("dims",))
def undeclared_list(op: Op, scope: Scope) -> Iterator[Finding]:
    """A list symbol, `*D`, has no entry with a `length` under `dims`."""
    reported: set[str] = set()
    declared = scope.draft.declared
    for dim, place in scope.dims:
        if dim.is_list and dim.symbol not in declared and dim.symbol not in reported:
            reported.add(dim.symbol)
            example = f", such as {dim.symbol}: {{length: [0, 8]}}"
            hint = did_you_mean(dim.symbol, declared) or example
            message = f"list symbol '*{dim.symbol}' has no entry under 'dims'{hint}"
            yield Finding(message, place.span)


@op_rule("G307", needs=SHAPES, blames=("dims",))
def list_and_scalar(op: Op, scope: Scope) -> Iterator[Finding]:
    """A symbol is a list in one place and a single dim in another."""
    first: dict[str, tuple[Symbol | Dim, Spanned]] = {}
    for name, symbol in scope.draft.declared.items():
        first[name] = symbol, symbol.origin
    for entry in scope.dims:
        dim, place = entry
        if not dim.symbol or dim.kind is DimKind.CEIL:  # of a list it counts the places
            continue
        known, known_place = first.setdefault(dim.symbol, entry)
        if known.is_list is not dim.is_list:
            remedy = (
                f'write "*{dim.symbol}"'
                if known.is_list
                else f"write {dim.symbol}, or give it a length under 'dims'"
            )
            message = f"'{dim.symbol}' is {_list_or_single(dim)} here, and not elsewhere; {remedy}"
            note = Note(f"{_list_or_single(known)} here", known_place.span)
            yield Finding(message, place.span, (note,))


def _list_or_single(noun: Symbol | Dim) -> str:
    if isinstance(noun, Symbol):
        return f"{'with' if noun.is_list else 'without'} a length"
    return "a list" if noun.is_list else "a single dim"


@op_rule("G308", needs=SHAPES, blames=("dims",))
def unused_symbol(op: Op, scope: Scope) -> Iterator[Finding]:
    """An entry of `dims` is for a symbol that no shape has."""
    used = {symbol.name for symbol in op.symbols}
    for name, symbol in scope.draft.declared.items():
        if name not in used:
            yield Finding(f"symbol '{name}' is in no shape", symbol.span)


@op_rule("G311", needs=("dims",), blames=("dims",))
def rule_of_scalar(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape rule other than `sum` is given for a symbol without a length; these compute lists of dims."""
    for symbol in scope.draft.declared.values():
        if symbol.rule and not symbol.is_list and not symbol.rule.is_sum:
            message = f"symbol '{symbol.name}' has a shape rule, and so needs a 'length'"
            yield Finding(f"{message}: only a list symbol can have that rule", symbol.at("rule"))


@op_rule("G312", needs=SHAPES, blames=("dims",))
def bad_rule_argument(op: Op, scope: Scope) -> Iterator[Finding]:
    """An argument of a shape rule is no symbol that the shape of a required input binds."""
    bound = scope.bound
    for symbol in op.symbols:
        for argument in symbol.rule.arguments if symbol.rule else ():
            if argument not in bound:
                hint = did_you_mean(argument, bound, but=symbol.name)
                message = (
                    f"'{argument}' is in the shape of no required input, so that no rule can use it{hint}"
                )
                yield Finding(message, symbol.at("rule"))
            elif argument == symbol.name:
                yield Finding(f"the rule of '{argument}' uses '{argument}' itself", symbol.at("rule"))


@op_rule("G313", needs=("dims", "kernel"), blames=("dims",))
def rule_of_other_family(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape rule is of another family than the kernel, and so takes other attributes; formulas are of
    none."""
    for symbol in scope.draft.declared.values():
        if not symbol.rule or not symbol.rule.is_of_family:
            continue
        if op.formulas:
            message = (
                f"rule {symbol.rule.function} is of a kernel's family; beside formulas there is 'broadcast'"
            )
            yield Finding(message, symbol.at("rule"))
        elif op.kernel and family(symbol.rule.function) != family(op.kernel):
            note = Note("the kernel", op.at("kernel"))
            message = f"rule {symbol.rule.function} is not of the kernel's family, {family(op.kernel)}"
            yield Finding(message, symbol.at("rule"), (note,))


@op_rule("G321", needs=("dims", "kernel"), blames=("dims",))
def unknown_rule(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape rule is no function of its family's `kernels.h`, or the text there that says what it computes
    does not read."""
    for symbol in scope.draft.declared.values():
        is_of_family = symbol.rule and symbol.rule.is_of_family
        found = scope.kernels.family_of(symbol.rule.function) if symbol.rule and is_of_family else None
        if not symbol.rule or not found or found.fault:
            continue
        function = symbol.rule.function
        header, rule = f"{family(function)}/{HEADER}", found.rules.get(function)
        if rule is None:
            message = f"there is no shape rule {function} in {header}{instead(function, sorted(found.rules))}"
            yield Finding(message, symbol.at("rule"))
        elif rule.fault:
            yield Finding(f"what {header} says of {function} does not read: {rule.fault}", symbol.at("rule"))


@op_rule("G322", needs=("dims", "kernel"), blames=("dims",))
def rule_of_other_attributes(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape rule takes an attribute that the kernel does not have, or another number of symbols."""
    has = scope.kernel.attributes if scope.kernel else None
    known = scope.kernels.family_of(op.kernel)
    for symbol in scope.draft.declared.values():
        rule = known.rules.get(symbol.rule.function) if known and symbol.rule else None
        taken = rule.attributes if rule else None
        lacking = [name for name in taken or () if has is not None and name not in has]
        if symbol.rule and rule and len(symbol.rule.arguments) != rule.arguments:
            message = f"rule {symbol.rule.function} takes {counted(rule.arguments, 'list')} of dims"
            yield Finding(f"{message}, not {len(symbol.rule.arguments)}", symbol.at("rule"))
        elif symbol.rule and lacking:
            takes = f"takes {listing(lacking)}, which kernel {op.kernel} does not have"
            message = f"rule {symbol.rule.function} {takes}"
            yield Finding(message, symbol.at("rule"), (Note("the kernel", op.at("kernel")),))


def _ruled(op: Op) -> set[str]:
    """Symbols that a shape rule computes, or that an attribute or the caller gives."""
    return {symbol.name for symbol in op.symbols if symbol.rule or symbol.given_by}


@op_rule("G328", needs=(*SHAPES, "attributes"), blames=("dims",))
def bad_giver(op: Op, scope: Scope) -> Iterator[Finding]:
    """`given_by` names neither an ints attribute nor `outputs`, nor, of a single dim, an int attribute with
    `min: 1` or more; or stands where an input or a rule binds the dims, or where an attribute, which is a
    list, would give a single dim."""
    for symbol in op.symbols:
        if not symbol.given_by:
            continue
        attribute, place = scope.attributes.get(symbol.given_by), symbol.at("given_by")
        if attribute and attribute.kind is AttributeKind.INT and not symbol.is_list:
            problem = _count_problem(scope, symbol.given_by, "what gives a dim")
            if problem:
                yield Finding(problem[0], place, problem[1])
            continue
        is_giver = attribute is not None and attribute.kind is AttributeKind.INTS
        if not is_giver and symbol.given_by != OUTPUTS:
            givers = [one.name for one in op.attributes if one.kind is AttributeKind.INTS]
            hint = did_you_mean(symbol.given_by, [*givers, OUTPUTS])
            message = f"'{symbol.name}' is given by '{symbol.given_by}', which is neither an ints attribute"
            yield Finding(f"{message} nor 'outputs'{hint}", place)
        elif is_giver and not symbol.is_list:
            message = f"'{symbol.name}' is a single dim, and '{symbol.given_by}' a list of them"
            yield Finding(message, place)
        elif symbol.rule or symbol.name in scope.bound:
            binder = f"rule {symbol.rule.text}" if symbol.rule else "an input"
            yield Finding(f"'{symbol.name}' is given by '{symbol.given_by}', and {binder} binds it", place)


@op_rule("G314", needs=SHAPES, blames=("dims",))
def unbound_symbol(op: Op, scope: Scope) -> Iterator[Finding]:
    """An output's shape has a symbol that no input has and no rule computes."""
    known = scope.bound | scope.optionally_bound | _ruled(op)
    for tensor in op.outputs:
        if tensor.shape.symbols <= known:
            continue
        for dim, place in tensor.own_dims:
            if dim.symbol and dim.symbol not in known:
                hint = did_you_mean(dim.symbol, known)
                where = f"'{dim.symbol}' in the shape of output '{tensor.name}'"
                unbound = (
                    "no input and no rule"
                    if dim.is_list
                    else "no input; a single dim can have no rule but 'sum'"
                )
                yield Finding(f"{where} is bound by {unbound}{hint}", place.span)


@op_rule("G315", needs=SHAPES, blames=("dims",))
def optionally_bound_symbol(op: Op, scope: Scope) -> Iterator[Finding]:
    """An output's shape has a symbol that only an optional input binds, which may be absent, or one that has
    it only where an attribute says so."""
    optional = scope.optionally_bound - scope.bound - _ruled(op)
    for tensor in op.outputs if optional else ():
        for symbol, place in _places_of_symbols(tensor):
            if symbol in optional:
                binder = next(t for t in op.inputs if any(d.symbol == symbol for d in t.shape))
                if tensor.like and not binder.optional:
                    continue  # it has the dim where that input has it
                condition = next(d.condition for d in binder.shape if d.symbol == symbol)
                note = Note(f"input '{binder.name}' is optional", binder.span)
                where = f"'{symbol}' in the shape of output '{tensor.name}'"
                message = f"{where} is bound only by '{binder.name}', which may be absent"
                if condition and not binder.optional:
                    note = Note(f"the shape of '{binder.name}'", binder.span)
                    message = f"{where} is bound only by '{binder.name}', which has it if {condition.text}"
                yield Finding(message, place, (note,))


def _places_of_symbols(tensor: Tensor) -> Iterator[tuple[str, Span]]:
    """Where each symbol of a shape stands; of one that is another's, where it says so."""
    if tensor.like:
        symbols = dict.fromkeys([dim.symbol for dim in tensor.shape])
        yield from [(symbol, tensor.at("like")) for symbol in symbols]
    else:
        yield from [(dim.symbol, place.span) for dim, place in tensor.own_dims]


@op_rule("G317", needs=SHAPES, blames=("dims",))
def rank_too_high(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor may have more than 8 dims."""
    lengths = {
        symbol.name: [symbol.lengths(condition) for condition in (False, True)] for symbol in op.symbols
    }
    for tensor in scope.tensors:
        lists = [lengths[dim.symbol] for dim in tensor.shape.lists]
        # Several lists need not be longest at once: a call whose dims are too many is refused at run time.
        end = 1 if len(lists) == 1 else 0
        ranks = [sum([one[condition][end] - 1 for one in lists]) for condition in (False, True)]
        rank = len(tensor.shape) + max(ranks)
        if rank > MAX_RANK and not tensor.shape_source:
            yield Finding(f"'{tensor.name}' may have rank {rank}; the most is {MAX_RANK}", tensor.at("shape"))


@op_rule("G318", needs=(*TENSORS, "attributes"), blames=("dims",))
def bad_divisor(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape divides by something that is no int attribute with `min: 1` or more."""
    for dim, place in scope.dims:
        if dim.divisor:
            problem = _count_problem(scope, dim.divisor, "the divisor")
            if problem:
                yield Finding(problem[0], place.span, problem[1])


def _count_problem(scope: Scope, name: str, what: str) -> tuple[str, tuple[Note, ...]] | None:
    """Why an attribute is no number of dims' places."""
    attribute = scope.attributes.get(name)
    if not attribute:
        hint = did_you_mean(name, scope.attributes)
        return f"{what} '{name}' is no attribute of operator '{scope.draft.op.name}'{hint}", ()
    is_number = attribute.kind is AttributeKind.INT and not attribute.is_optional
    if not is_number or attribute.minimum is None or attribute.minimum < 1:
        message = f"{what} '{name}' must be an int attribute with a default and a 'min' of at least 1"
        return message, (Note("the attribute", attribute.span),)
    return None


@op_rule("G332", needs=SHAPES, blames=("dims",))
def ceil_of_nothing(op: Op, scope: Scope) -> Iterator[Finding]:
    """The N of `ceil(N / 32)` is no dim, or list of dims, that the shape of a required input has as it is."""
    required = [tensor for tensor in op.inputs if not scope.may_be_absent(tensor)]
    plain = {
        dim.symbol
        for tensor in required
        for dim in tensor.shape
        if dim.kind is DimKind.SYMBOL and not dim.condition
    }
    for dim, place in scope.dims:
        if dim.kind is DimKind.CEIL and dim.symbol not in plain:
            hint = did_you_mean(dim.symbol, plain)
            message = f"nothing says what '{dim.symbol}' of {dim.text} is: no required input has that dim"
            yield Finding(f"{message} as it is{hint}", place.span)


@op_rule("G340", needs=(*TENSORS, "attributes"), blames=("dims",))
def bad_condition(op: Op, scope: Scope) -> Iterator[Finding]:
    """A dim hangs on something that is no enum attribute compared with one of its values and no bool
    attribute with a default, or on another condition than the operator's other dims."""
    conditions = [(dim, place) for dim, place in scope.dims if dim.condition]
    for dim, place in conditions:
        problem = _condition_problem(dim.condition, scope) if dim.condition else None
        first, first_place = conditions[0]
        if problem:
            message, notes = problem
            yield Finding(f"'{dim.without_condition.text}' hangs on {message}", place.span, notes)
        elif first.condition and first.condition != dim.condition:
            message = f"'{dim.without_condition.text}' hangs on another condition than"
            message += f" '{first.without_condition.text}': {first.condition.text}; there can be one"
            yield Finding(message, place.span, (Note("the other", first_place.span),))


def _condition_problem(condition: Condition, scope: Scope) -> tuple[str, tuple[Note, ...]] | None:
    """Why no dim can hang on it."""
    attribute = scope.attributes.get(condition.attribute)
    named = f"'{condition.attribute}'"
    if not attribute:
        kinds = (AttributeKind.ENUM, AttributeKind.BOOL)
        known = [name for name, one in scope.attributes.items() if one.kind in kinds]
        return f"{named}, which is no attribute{did_you_mean(condition.attribute, known)}", ()
    note = Note("the attribute", attribute.span)
    if attribute.kind is AttributeKind.ENUM and not condition.value:
        return f"{named}, which has values; compare it: '{named[1:-1]} == {attribute.choices[0]}'", (note,)
    if attribute.kind is AttributeKind.ENUM and condition.value not in attribute.choices:
        hint = instead(condition.value, attribute.choices)
        return f"'{condition.value}', which is no value of {named}{hint}", (note,)
    if attribute.kind is AttributeKind.BOOL and condition.value:
        return f"a value of {named}, which is true or false; write '{named[1:-1]}' alone", (note,)
    if attribute.kind not in (AttributeKind.ENUM, AttributeKind.BOOL) or attribute.is_optional:
        return f"{named}, which is no enum and no bool attribute with a default", (note,)
    return None


@op_rule("G319", needs=SHAPES)
def too_many_symbols(op: Op, scope: Scope) -> Iterator[Finding]:
    """An operator's shapes have more than 16 symbols."""
    if len(op.symbols) > MAX_SYMBOLS:
        message = (
            f"the shapes of operator '{op.name}' have {len(op.symbols)} symbols; the most is {MAX_SYMBOLS}"
        )
        yield Finding(message, op.span)


@op_rule("G320", needs=(*SHAPES, "attributes"), blames=("dims",))
def bad_multiple_of(op: Op, scope: Scope) -> Iterator[Finding]:
    """`multiple_of` is given for a list symbol, or names no int attribute with `min: 1` or more."""
    for symbol in op.symbols:
        if symbol.multiple_of and symbol.is_list:
            message = f"symbol '{symbol.name}' is a list of dims, which is no multiple of anything"
            yield Finding(message, symbol.at("multiple_of"))
        elif symbol.multiple_of:
            problem = _count_problem(scope, symbol.multiple_of, "the divisor")
            if problem:
                yield Finding(problem[0], symbol.at("multiple_of"), problem[1])
