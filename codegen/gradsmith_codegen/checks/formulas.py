"""Formulas, against the operator's entry and against what the kernel patterns compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

from ..data_types import DataType
from ..diagnostics import Note
from ..formula_lookups import FORMS, is_form, lookups_by
from ..formula_misfit import Misfit
from ..formula_splits import unfolded
from ..formula_steps import steps_of
from ..formula_tree import (
    CALLED,
    CONSTANTS,
    COUNT,
    FUNCTIONS,
    Apply,
    Bit,
    Chosen,
    Given,
    Index,
    Kind,
    Lookup,
    Name,
    Reduce,
    Tree,
    asked_for,
    names,
    parts,
)
from ..grammar import is_identifier
from ..model import Attribute, AttributeKind, Formula, Op, Tensor
from ..shapes import Shape
from ..spans import Span
from ..suggestions import did_you_mean, instead
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule

_READ = ("formulas", *TENSORS, "attributes")
BITS_OF_WORD = 32
_KINDS = {AttributeKind.FLOAT: Kind.NUMBER, AttributeKind.INT: Kind.NUMBER, AttributeKind.BOOL: Kind.TRUTH}
_Kinds = dict[str, Kind | None]  # by names; none of an attribute that no formula can read, which G812 tells


@op_rule("G804", needs=_READ)
def wrong_kind(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula uses a comparison as a number, or a number as a comparison."""
    kinds: _Kinds = {attribute.name: _KINDS.get(attribute.kind) for attribute in op.attributes}
    kinds |= {tensor.name: Kind.TRUTH for tensor in op.inputs if tensor.is_mask}
    outputs = {tensor.name: Kind.TRUTH if tensor.is_mask else Kind.NUMBER for tensor in op.outputs}
    for formula in op.formulas:
        # What is no output may be either.
        kind = outputs.get(formula.name) or _kind(formula.tree, kinds)
        if kind:
            yield from _kind_findings(formula, formula.tree, kind, kinds, f"'{formula.name}'")
        kinds.setdefault(formula.name, kind)


def _kind_findings(
    formula: Formula, tree: Tree, expected: Kind, kinds: _Kinds, what: str
) -> Iterator[Finding]:
    found = _kind(tree, kinds)
    if found and found is not expected:
        hint = "; write 'where(condition, 1, 0)'" if expected is Kind.NUMBER else "; compare it: 'x > 0'"
        yield Finding(
            f"{what} must be {expected.value}, and this is {found.value}{hint}", formula.place(tree)
        )
    elif isinstance(tree, Apply):
        function = tree.function
        for index, (argument, kind) in enumerate(zip(tree.arguments, function.parameters, strict=True)):
            is_called = function.name in FUNCTIONS
            name = f"argument {index + 1} of '{function.name}'" if is_called else "what an operator is given"
            yield from _kind_findings(formula, argument, kind, kinds, name)
    elif isinstance(tree, Reduce):
        yield from _kind_findings(
            formula, tree.argument, Kind.NUMBER, kinds, f"what '{tree.operation}' is given"
        )


def _kind(tree: Tree, kinds: _Kinds) -> Kind | None:
    if isinstance(tree, Apply):
        return tree.function.result
    if isinstance(tree, Given | Chosen | Bit):
        return Kind.TRUTH
    return kinds.get(tree.name, Kind.NUMBER) if isinstance(tree, Name) else Kind.NUMBER


@op_rule("G805", needs=_READ, blames=("formulas",))
def unknown_name(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula reads a name that is no input, no attribute and no formula before it."""
    outputs = {tensor.name for tensor in op.outputs}
    later = {formula.name for formula in op.formulas}
    known = {tensor.name for tensor in op.inputs} | {attribute.name for attribute in op.attributes}
    for formula in op.formulas:
        for name in names(formula.tree):
            if name.name in known or name.name in CONSTANTS or name.name in outputs:
                continue
            message = f"'{name.name}' {_why_unknown(op, name.name, known, later)}"
            yield Finding(message, formula.place(name))
        if formula.name not in outputs:
            known.add(formula.name)


def _why_unknown(op: Op, name: str, known: Set[str], later: Set[str]) -> str:
    if name in later:
        return "is not known yet; its formula must come before this one"
    enum = next((one.name for one in op.attributes if name in one.choices), "")
    if not enum and name in CALLED:
        return f"is a function, and no value; write '{name}(...)'"
    hint = f"; a value of '{enum}' is compared with it: '{enum} == {name}'" if enum else ""
    return f"is no input, attribute or formula{hint or instead(name, [*sorted(known), *CONSTANTS])}"


@op_rule("G806", needs=("formulas", "outputs"))
def output_without_formula(op: Op, scope: Scope) -> Iterator[Finding]:
    """An output has no formula."""
    given = {formula.name for formula in op.formulas}
    for tensor in op.outputs if op.formulas else ():
        if tensor.name not in given:
            intermediate = sorted(given - {other.name for other in op.outputs})
            hint = did_you_mean(tensor.name, intermediate)
            yield Finding(f"output '{tensor.name}' has no formula{hint}", op.at("formulas"))


@op_rule("G807", needs=_READ)
def value_never_used(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula that is no output's, or an input, is read by no formula."""
    outputs = {tensor.name for tensor in op.outputs}
    read = {name.name for formula in op.formulas for name in names(formula.tree)}
    for formula in op.formulas:
        if formula.name not in outputs and formula.name not in read:
            hint = did_you_mean(formula.name, sorted(outputs - {other.name for other in op.formulas}))
            yield Finding(f"'{formula.name}' is no output, and no formula reads it{hint}", formula.span)
    for tensor in op.inputs if op.formulas else ():
        if tensor.name not in read and not tensor.shape_only:
            hint = "; where its shape alone counts, it is 'shape_only'"
            message = f"no formula reads input '{tensor.name}'{hint}"
            yield _of_noun(message, tensor, op.at("inputs"), op, scope)


@op_rule("G818", needs=("formulas", *SHAPES, "attributes"))
def attribute_never_used(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute beside formulas is read by none of them nor by `operations`, and no length hangs on it."""
    trees = [formula.tree for formula in op.formulas] + ([op.operations.tree] if op.operations else [])
    read = {name.name for tree in trees for name in names(tree)}
    asked = {name.name for formula in op.formulas for name in asked_for(formula.tree)}
    for attribute in op.attributes if op.formulas else ():
        if attribute.name not in read | asked | _attributes_of_shapes(op):
            where = f"no formula of operator '{op.name}' reads attribute '{attribute.name}'"
            message = f"{where}, and no length there hangs on it"
            yield _of_noun(message, attribute, op.at("attributes"), op, scope)


def _of_noun(message: str, noun: Tensor | Attribute, place: Span, op: Op, scope: Scope) -> Finding:
    """Where an alias brings the noun, which may be right for others, at the place of the alias."""
    span = noun.span
    if op.line <= span.line <= scope.last_line:
        return Finding(message, span)
    return Finding(message, place, (Note(f"'{noun.name}' stands in what is repeated", span),))


def _attributes_of_shapes(op: Op) -> set[str]:
    """Those that decide lengths, or how many dims there are."""
    dims = [dim for tensor in (*op.inputs, *op.outputs) for dim in tensor.shape]
    used = {dim.divisor for dim in dims} | {dim.condition.attribute for dim in dims if dim.condition}
    for symbol in op.symbols:
        used |= {symbol.length_axis, symbol.given_by, symbol.multiple_of}
        used |= {symbol.length_if.attribute} if symbol.length_if else set()
    return used


@op_rule("G808", needs=_READ)
def output_is_read(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula reads an output. What several outputs have in common gets a name of its own."""
    inputs = {tensor.name for tensor in op.inputs}
    outputs = {tensor.name for tensor in op.outputs} - inputs
    for formula in op.formulas:
        for name in names(formula.tree):
            if name.name in outputs:
                message = f"'{name.name}' is an output, which no formula reads; give its value another name"
                yield Finding(message, formula.place(name))


@op_rule("G809", needs=("formulas", *SHAPES), blames=("formulas",))
def dim_of_no_operand(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula reduces over a dim that nothing in its expression has, over one twice, or over none."""
    seen = unfolded(op)
    shapes = {tensor.name: tensor.shape for tensor in seen.inputs}
    every = frozenset().union(*[tensor.shape.symbols for tensor in (*seen.inputs, *seen.outputs)])
    within: dict[str, frozenset[str]] = {}  # the symbols of each formula's value
    outputs = {tensor.name for tensor in op.outputs}
    for formula in op.formulas:
        for part in parts(formula.tree):
            if isinstance(part, Reduce):
                own = every if part.operation == COUNT else _symbols(part.argument, shapes, within)
                is_whole = part is formula.tree and formula.name in outputs
                yield from _dim_findings(formula, part, own, is_whole)
            elif isinstance(part, Index) and part.dim.name not in every:
                hint = instead(part.dim.name, sorted(every))
                yield Finding(f"no tensor has the dim '{part.dim.name}'{hint}", formula.place(part.dim))
        within[formula.name] = _symbols(formula.tree, shapes, within)


def _dim_findings(formula: Formula, part: Reduce, has: frozenset[str], is_whole: bool) -> Iterator[Finding]:
    """`is_whole` is true of what an output is as a whole."""
    if not part.dims and not (is_whole and part.operation == "sum"):
        hint = "; without one it is all that an output is" if part.operation == "sum" else ""
        yield Finding(f"'{part.operation}' needs a dim to reduce over{hint}", formula.place(part))
    for place, dim in enumerate(part.dims):
        if dim.name in [one.name for one in part.dims[:place]]:
            yield Finding(f"'{part.operation}' has the dim '{dim.name}' twice", formula.place(dim))
        if dim.name not in has:
            hint = instead(dim.name, sorted(has))
            what = "no tensor" if part.operation == COUNT else f"nothing in '{part.operation}'"
            yield Finding(f"{what} has the dim '{dim.name}'{hint}", formula.place(dim))


def _symbols(tree: Tree, shapes: dict[str, Shape], within: dict[str, frozenset[str]]) -> frozenset[str]:
    """The dims of an expression's value."""
    if isinstance(tree, Name):
        return shapes[tree.name].symbols if tree.name in shapes else within.get(tree.name, frozenset())
    if isinstance(tree, Apply):
        return frozenset().union(*[_symbols(argument, shapes, within) for argument in tree.arguments])
    if isinstance(tree, Reduce):
        return _symbols(tree.argument, shapes, within) - {dim.name for dim in tree.dims}
    if isinstance(tree, Index):
        return frozenset({tree.dim.name})
    if isinstance(tree, Lookup):
        return _symbols(tree.integer, shapes, within)
    return frozenset()


@op_rule("G810", needs=(*_READ, "dims", "rows"))
def fits_no_pattern(op: Op, scope: Scope) -> Iterator[Finding]:
    """No kernel pattern computes the formulas. A map's tensors have one type, its outputs one shape, to which
    inputs are broadcast, and outputs that are sums the shape of such an input. Where formulas name dims, all
    tensors have these in one order."""
    if not op.formulas or not op.inputs or not op.outputs or any(_bad_lookups(op)) or any(_bad_bits(op)):
        return
    given = {formula.name for formula in op.formulas}
    if any(tensor.name not in given for tensor in op.outputs):  # G806
        return
    if not all(op.has_types_of(tensor) for tensor in (*op.inputs, *op.outputs)):  # G014, G201
        return
    try:
        steps_of(op)
    except Misfit as misfit:
        yield from [Finding(message, span) for message, span in misfit.problems]


@op_rule("G811", needs=_READ, blames=("formulas",), turn=1)
def name_is_taken(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula's name is no name, or that of an input, an attribute or a constant."""
    outputs = {tensor.name for tensor in op.outputs}
    nouns: Sequence[Tensor | Attribute] = (*op.inputs, *op.attributes)
    taken = {noun.name: noun for noun in nouns}
    for formula in op.formulas:
        if formula.name in outputs:
            continue
        if not is_identifier(formula.name):
            yield Finding(f"'{formula.name}' cannot name a formula", formula.span)
        elif formula.name in taken:
            note = Note("which stands here", taken[formula.name].span)
            yield Finding(
                f"a formula cannot be called '{formula.name}', as another thing is", formula.span, (note,)
            )
        elif formula.name in CONSTANTS:
            yield Finding(f"a formula cannot be called '{formula.name}', which is a constant", formula.span)


@op_rule("G812", needs=_READ)
def unusable_attribute(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula reads an attribute that is no number and no truth value, or that may be absent while no
    formula asks whether it is there."""
    asked = {name.name for formula in op.formulas for name in asked_for(formula.tree)}
    attributes = {attribute.name: attribute for attribute in op.attributes}
    for formula in op.formulas:
        for name in [part for part in parts(formula.tree) if isinstance(part, Name)]:
            attribute = attributes.get(name.name)
            if attribute and attribute.kind not in _KINDS:
                kind = attribute.kind.value
                hint = f"; compare it: '{name.name} == {attribute.choices[0]}'" if attribute.choices else ""
                message = f"no formula can read attribute '{name.name}', which is of type {kind}{hint}"
                yield Finding(message, formula.place(name))
            elif attribute and attribute.is_optional and name.name not in asked:
                hint = f"; 'given({name.name})' tells whether it is there"
                message = f"no formula can read attribute '{name.name}' alone, which is optional{hint}"
                yield Finding(message, formula.place(name))


@op_rule("G813", needs=_READ)
def shape_is_read(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula reads an input of which only the shape is needed (`shape_only`)."""
    without_data = {tensor.name for tensor in op.inputs if tensor.shape_only}
    for formula in op.formulas:
        for name in names(formula.tree):
            if name.name in without_data:
                message = f"'{name.name}' is 'shape_only', so that no formula can read its elements"
                yield Finding(message, formula.place(name))


@op_rule("G814", needs=(*_READ, "rows"))
def no_lookup(op: Op, scope: Scope) -> Iterator[Finding]:
    """What is looked up is no input of one dim, or it is looked up by something else than an input of
    integers."""
    yield from _bad_lookups(op)


def _bad_lookups(op: Op) -> Iterator[Finding]:
    inputs = {tensor.name: tensor for tensor in op.inputs}
    lookups = [(one, part) for one in op.formulas for part in parts(one.tree) if isinstance(part, Lookup)]
    for formula, part in lookups:
        table, integer = inputs.get(part.table.name), inputs.get(part.integer.name)
        name = part.table.name
        if table is None or len(table.shape) != 1 or not table.shape[0].symbol or table.shape[0].is_list:
            got = f", and '{name}' is {table.shape_text}" if table else f", which '{name}' is not"
            message = f"what is looked up is an input with one dim, such as [C]{got}"
            yield Finding(message, formula.place(part.table))
        elif integer is None or (op.has_types_of(integer) and (not op.is_whole(integer) or integer.is_mask)):
            by = part.integer.name
            message = f"'{name}' is looked up by an input of integers, which '{by}' is not"
            yield Finding(message, formula.place(part.integer))


@op_rule("G820", needs=(*_READ, "rows"))
def wrong_outside(op: Op, scope: Scope) -> Iterator[Finding]:
    """`outside` is neither `ignored`, `refused` nor `refused unless ATTRIBUTE`; stands at an input by which
    no formula looks anything up; or names no attribute of type int."""
    for tensor in op.inputs:
        if not tensor.outside:
            continue
        place = tensor.at("outside")
        attribute = next((one for one in op.attributes if one.name == tensor.never_refused), None)
        if not is_form(tensor.outside):
            yield Finding(f"'outside' is {FORMS}, not '{tensor.outside}'", place)
        elif not any(lookups_by(op, tensor)):
            message = f"no formula looks anything up by '{tensor.name}', so that nothing lies outside"
            yield Finding(message, place)
        elif tensor.never_refused and (not attribute or attribute.kind is not AttributeKind.INT):
            known = [one.name for one in op.attributes if one.kind is AttributeKind.INT]
            hint = instead(tensor.never_refused, known)
            yield Finding(f"'{tensor.never_refused}' is no attribute of type int{hint}", place)


@op_rule("G815", needs=_READ)
def always_there(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula asks whether something is there that is no optional input or attribute."""
    optional = [tensor.name for tensor in op.inputs if tensor.optional]
    optional += [attribute.name for attribute in op.attributes if attribute.is_optional]
    for formula in op.formulas:
        for name in asked_for(formula.tree):
            if name.name not in optional:
                hint = did_you_mean(name.name, sorted(optional))
                message = f"'given' is of an optional input or attribute, which '{name.name}' is not{hint}"
                yield Finding(message, formula.place(name))


@op_rule("G816", needs=_READ)
def no_value_of_an_enum(op: Op, scope: Scope) -> Iterator[Finding]:
    """A formula compares an enum attribute with a name that is none of its choices."""
    choices = {attribute.name: attribute.choices for attribute in op.attributes}
    for formula in op.formulas:
        for part in parts(formula.tree):
            if isinstance(part, Chosen) and part.value.name not in choices[part.attribute.name]:
                known = choices[part.attribute.name]
                message = f"'{part.value.name}' is no value of '{part.attribute.name}'"
                yield Finding(message + instead(part.value.name, known), formula.place(part.value))


@op_rule("G817", needs=(*_READ, "rows"))
def no_bits(op: Op, scope: Scope) -> Iterator[Finding]:
    """What bits are read of is no required input of uint32 with the shape `[ceil(D / 32)]` of the dims that
    are named, is read in another way too, or is not the only such input; or these are not all dims of the
    outputs."""
    yield from _bad_bits(op)


def _bad_bits(op: Op) -> Iterator[Finding]:
    inputs = {tensor.name: tensor for tensor in op.inputs}
    found = [(one, part) for one in op.formulas for part in parts(one.tree) if isinstance(part, Bit)]
    reads = Counter(name.name for one in op.formulas for name in names(one.tree))
    asked = Counter(part.words.name for _, part in found)
    for formula, part in found:
        name, dims = part.words.name, part.dims.name
        words = inputs.get(name)
        if words is None or not _has_bits_of(words, dims):
            message = f"bits are read of a required input of uint32 with the shape [ceil({dims} / 32)]"
            yield Finding(f"{message}, which '{name}' is not", formula.place(part.words))
        elif reads[name] != asked[name]:
            yield Finding(f"'{name}' is read as bits, and as a number too", formula.place(part.words))
        elif name != next(iter(asked)):
            yield Finding("a map reads the bits of one input", formula.place(part.words))
        elif any([dim.text.lstrip("*") for dim in one.shape] != [dims] for one in op.outputs):
            message = f"bits are read along all dims of the outputs, which '{dims}' is not"
            yield Finding(message, formula.place(part.dims))


def _has_bits_of(words: Tensor, dims: str) -> bool:
    is_whole = words.shape.text == f"[ceil({dims} / {BITS_OF_WORD})]"
    return is_whole and words.type == DataType.UINT32.value and not words.optional and not words.list
