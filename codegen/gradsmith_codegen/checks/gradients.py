"""Gradient operators: what ties one to its forward operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import chains, spelling
from ..data_types import FLOATING_TYPES, DataType
from ..diagnostics import Note
from ..grammar import family
from ..kernel_terms import Gradients
from ..model import Backend, Op, Row, Tensor
from ..shapes import Dim, DimKind
from ..spans import Span
from ..suggestions import did_you_mean, either, listing
from ..vocabulary import NO_FORWARD
from .kernels import header_of
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule, op_warning


@op_rule("G500", needs=("kernel", "gradient_of"), blames=("kernel", "gradient_of"), turn=1)
def gradient_of_other_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """The kernel computes the gradient of another kernel than the forward operator's (`kGradientOf`)."""
    said, forward = _gradients(op, scope), scope.forward_with("kernel")
    kernel = f"{family(op.kernel)}::{said.forward}" if said else ""
    if not said or not forward or forward.kernel == kernel:
        return
    ops = [draft.op.name for draft in scope.document.drafts if draft.op.kernel == kernel]
    meant = [*[f"'gradient_of: {name}'" for name in ops[:1]], *_kernels_of(forward, scope)]
    has = f"'{forward.name}' has kernel {forward.kernel}"
    message = f"kernel {op.kernel} computes the gradient of kernel {kernel}, and {has}"
    hint = f"; did you mean {either(meant)}?" if meant else ""
    yield Finding(message + hint, op.at("gradient_of"), (_said(op, said),))


def _kernels_of(forward: Op, scope: Scope) -> Iterator[str]:
    """Those that compute the gradient of its kernel."""
    known = scope.kernels.family_of(forward.kernel)
    for name in known.kernel_names if known else ():
        other = scope.kernels.kernel(name)
        if other and other.gradients and f"{family(name)}::{other.gradients.forward}" == forward.kernel:
            yield f"'kernel: {name}'"


@op_rule("G511", needs=("kernel", "gradient_of", *TENSORS), blames=("gradient_of",), turn=1)
def gradient_of_other_tensor(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor of a gradient operator is another gradient in the kernel (`kGradientOf`), or lacks
    'gradient_of'."""
    said, forward = _gradients(op, scope), scope.forward_with(*TENSORS)
    if not said or not forward:
        return
    mistaken: list[tuple[Tensor, list[str]]] = []
    for tensors, originals in ((op.inputs, forward.outputs), (op.outputs, forward.inputs)):
        names = [original.name for original in originals]
        for tensor in tensors:
            in_kernel = said.tensors.get(tensor.name, ())
            expected = [name for name in in_kernel if name in names]
            if set(tensor.gradient_of) != set(expected) and (expected or not in_kernel):
                mistaken.append((tensor, expected))
    if mistaken:
        told = [(_mistaken_gradient(*one), one[0].at("gradient_of")) for one in mistaken]
        notes = [Note(*other) for other in told[1:]]
        message, place = told[0]
        yield Finding(f"in kernel {op.kernel} {message}", place, (*notes, _said(op, said)))


def _gradients(op: Op, scope: Scope) -> Gradients | None:
    return _kernel_gradients(scope) if op.gradient_of else None


def _kernel_gradients(scope: Scope) -> Gradients | None:
    return scope.kernel.gradients if scope.kernel and not scope.kernel.faults else None


def _said(op: Op, said: Gradients) -> Note:
    return Note(f"gradients of {op.kernel} ({header_of(op)}): {said.text}", op.at("kernel"))


def _mistaken_gradient(tensor: Tensor, expected: Sequence[str]) -> str:
    if not expected:
        return f"'{tensor.name}' is the gradient of nothing"
    given = f", not of {listing(tensor.gradient_of)}" if tensor.gradient_of else ""
    written = spelling.names(expected)
    return f"'{tensor.name}' is the gradient of {listing(expected)}{given}; write 'gradient_of: {written}'"


@op_rule("G501", needs=("gradient_of",))
def unknown_forward(op: Op, scope: Scope) -> Iterator[Finding]:
    """The operator that another is the gradient of does not exist."""
    names = scope.document.drafts_by_name
    if op.gradient_of and op.gradient_of not in names and scope.document.all_have_names:
        hint = did_you_mean(op.gradient_of, names, but=op.name)
        yield Finding(f"there is no operator '{op.gradient_of}'{hint}", op.at("gradient_of"))


@op_rule("G502", needs=("gradient_of", "name"), blames=("gradient_of",))
def circular_gradient(op: Op, scope: Scope) -> Iterator[Finding]:
    """An operator is its own gradient, directly or through others."""
    circle = scope.document.gradient_circles.get(op.name)
    if circle:
        message = f"operator '{op.name}' is the gradient of itself: {chains.text(circle)}"
        yield Finding(message, op.at("gradient_of"))


@op_rule("G503", needs=(*TENSORS, "gradient_of"))
def gradient_in_forward(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor is a gradient, or the kernel computes one (`kGradientOf`), and the operator has no
    'gradient_of'."""
    if op.gradient_of:
        return
    gradients = [tensor for tensor in scope.tensors if tensor.gradient_of]
    said = _kernel_gradients(scope) if "kernel" not in scope.draft.broken else None
    lacks = f"operator '{op.name}' lacks 'gradient_of', and"
    if gradients:
        note = Note(f"'{gradients[0].name}' is a gradient", gradients[0].at("gradient_of"))
        hint = _forward_of(op, said, scope) if said else ""
        yield Finding(f"{lacks} has gradients{hint}", op.span, (note,))
    elif said:
        hint = _forward_of(op, said, scope) or "; write 'gradient_of' and an operator with that kernel"
        computes = f"kernel {op.kernel} computes the gradient of kernel {family(op.kernel)}::{said.forward}"
        yield Finding(f"{lacks} {computes}{hint}", op.span, (_said(op, said),))


def _forward_of(op: Op, said: Gradients, scope: Scope) -> str:
    """Which operator of the schema it may be the gradient of."""
    kernel = f"{family(op.kernel)}::{said.forward}"
    meant = [draft.op.name for draft in scope.document.drafts if draft.op.kernel == kernel]
    return f"; did you mean 'gradient_of: {meant[0]}'?" if meant else ""


@op_rule("G504", needs=(*TENSORS, "gradient_of"), blames=("gradient_of",))
def unknown_gradient_of(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input is the gradient of no output of the forward operator, or an output that of no input."""
    forward = scope.forward_with(*TENSORS)
    if not forward:
        return
    for tensors, candidates, role in (
        (op.inputs, forward.outputs, "output"),
        (op.outputs, forward.inputs, "input"),
    ):
        names = [candidate.name for candidate in candidates]
        for name, place in [gradient for tensor in tensors for gradient in tensor.gradients]:
            if name not in names:
                message = f"operator '{forward.name}' has no {role} '{name}'{did_you_mean(name, names)}"
                yield Finding(message, place)


@op_rule("G505", needs=(*TENSORS, "gradient_of"), blames=("gradient_of",))
def foreign_input(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input of a gradient operator is neither the gradient of a forward output nor a tensor of the forward
    operator."""
    forward = scope.forward_with(*TENSORS)
    if not forward:
        return
    names = [tensor.name for tensor in forward.inputs + forward.outputs]
    for tensor in op.inputs:
        if not tensor.gradient_of and not tensor.shape_of and tensor.name not in names:
            of = {f"d{one.name}": one.name for one in forward.outputs}.get(tensor.name)
            lacks = f"'gradient_of: {of}'" if of else f"'gradient_of'{did_you_mean(tensor.name, names)}"
            what = f"is no input or output of operator '{forward.name}'"
            message = f"input '{tensor.name}' {what}, nor has it {lacks}"
            yield Finding(message, tensor.span, (Note("the forward operator", forward.span),))


@op_rule("G506", needs=("rows", "types", "gradient_of"))
def row_without_forward(op: Op, scope: Scope) -> Iterator[Finding]:
    """A gradient operator has a row that its forward operator lacks."""
    forward = scope.forward_with("rows", "types")
    if not forward or forward.rows is op.rows:
        return
    for row in op.rows:
        types = dict(row.types)
        if not any(
            all(types.get(name, bound) is bound for name, bound in known.types) for known in forward.rows
        ):
            combination = ", ".join(f"{name} = {bound.value}" for name, bound in row.types)
            note = Note(f"the rows of '{forward.name}'", forward.rows[0].span)
            message = f"operator '{forward.name}' has no row {combination}, whose gradient this would be"
            yield Finding(message, row.span, (note,))


@op_rule("G507", needs=(*SHAPES, "types", "gradient_of"), blames=("types", "dims"))
def different_type_or_shape(op: Op, scope: Scope) -> Iterator[Finding]:
    """A gradient, or a tensor that is passed on, differs in type or shape from the forward operator's, or one
    of them is a list."""
    forward = scope.forward_with(*SHAPES, "types")
    if not forward:
        return
    inputs = {tensor.name: tensor for tensor in forward.inputs}
    outputs = {tensor.name: tensor for tensor in forward.outputs}
    either = inputs | outputs
    passed = [tensor for tensor in op.inputs if not tensor.shape_of]
    pairs = [(t, outputs[t.gradient_of[0]] if t.gradient_of else either[t.name]) for t in passed]
    pairs += [(t, inputs[name]) for t in op.outputs for name in t.gradient_of]
    renaming = _Renaming(pairs)
    differing: set[str] = set()
    told: set[str] = set()  # the gradient of several inputs may differ from each of them
    for tensor, original in pairs:
        whose = f"'{original.name}' of '{forward.name}'"
        notes: tuple[Note, ...] = ()
        if tensor.name in told:
            continue
        if tensor.type != original.type:
            difference, span = f"type {tensor.type}", tensor.at("type")
        elif bool(tensor.list) != bool(original.list):
            differing.add(tensor.name)
            difference, span = "many tensors" if tensor.list else "one tensor", tensor.at("list")
        elif tensor.like not in differing and not renaming.matches(tensor, original):
            differing.add(tensor.name)
            difference = f"shape {tensor.shape_text}"
            span = tensor.at("like" if tensor.like else "shape")
            notes = tuple(renaming.reasons(tensor, original, forward))
        else:
            continue
        told.add(tensor.name)
        each = " each, a list" if original.list else ""
        note = Note(f"{whose} is {original.type} {original.shape_text}{each}", original.span)
        yield Finding(f"'{tensor.name}' has {difference}, unlike {whose}", span, (note, *notes))
        if notes:  # which of the tensors is at fault nobody knows, and all others would be told of it as well
            return


@op_rule("G512", needs=(*TENSORS, "types", "rows", "gradient_of"), blames=("types",))
def gradient_of_no_number(op: Op, scope: Scope) -> Iterator[Finding]:
    """A gradient has an element type that is not floating: only what is not differentiated may have one."""
    expected = f"expected {either([data_type.value for data_type in FLOATING_TYPES])}"
    fixed = {data_type.value: data_type for data_type in DataType}
    for tensor in scope.tensors if op.gradient_of else ():
        if not tensor.gradient_of:
            continue
        if tensor.type in fixed and not fixed[tensor.type].is_floating:
            message = f"'{tensor.name}' is a gradient of type {tensor.type}; {expected}"
            yield Finding(message, tensor.at("type"))
            return
        for row in op.rows:
            bound = dict(row.types).get(tensor.type)
            if bound and not bound.is_floating:
                message = f"row '{row.name}' makes '{tensor.name}', a gradient, {bound.value}; {expected}"
                yield Finding(message, row.at(tensor.type), (Note("the gradient", tensor.span),))
                return


@op_warning("G513", needs=("rows", "types", "backends", "gradient_of"))
def no_differences(op: Op, scope: Scope) -> Iterator[Finding]:
    """No row of the forward operator has doubles alone on the CPU, in which the generated tests compare a
    gradient with differences: whether it is the right one is not tested."""
    forward = scope.forward_with("rows", "types", "backends")
    if not forward:
        return
    wholes = [_whole_types(row) for row in op.rows]
    of_doubles = [row for row in forward.rows if _has_doubles(row)]
    is_tested = any(_agree(_whole_types(row), whole) for row in of_doubles for whole in wholes)
    if is_tested and Backend.CPU in forward.backends:
        return
    lacks = "does not run on cpu" if is_tested else "has no row in which all floating types are double"
    message = f"no test compares gradient '{op.name}' with differences: operator '{forward.name}' {lacks}"
    place = forward.at("backends" if is_tested else "rows")
    note = Note(f"the {'backends' if is_tested else 'rows'} of '{forward.name}'", place)
    yield Finding(message, op.at("gradient_of"), (note,))


@op_warning("G514", needs=("formulas", "gradient_of"))
def unchecked_formulas(op: Op, scope: Scope) -> Iterator[Finding]:
    """An operator with formulas is called like a gradient, and names no forward operator ('gradient_of'):
    then the formulas are compared with nothing but themselves."""
    name = op.name.removesuffix("Grad")
    says_none = op.at("gradient_of") != op.span
    if name in ("", op.name) or not op.formulas or op.gradient_of or says_none:
        return
    if name in scope.document.drafts_by_name:
        hint = f"did you mean 'gradient_of: {name}'?"
    else:
        hint = f"add the operator '{name}' and 'gradient_of: {name}', or say 'gradient_of: {NO_FORWARD}'"
    message = f"nothing compares the formulas of '{op.name}' with a forward operator's"
    yield Finding(f"{message}; {hint}", op.at("name"))


def _whole_types(row: Row) -> dict[str, DataType]:
    """Those that are not floating, by their parameters."""
    return {name: bound for name, bound in row.types if not bound.is_floating}


def _has_doubles(row: Row) -> bool:
    return all(bound is DataType.DOUBLE or not bound.is_floating for _, bound in row.types)


def _agree(forward: dict[str, DataType], own: dict[str, DataType]) -> bool:
    return all(own.get(name, bound) is bound for name, bound in forward.items())


class _Renaming:
    """The gradient may call symbols otherwise than the forward, if it does so throughout. Tensors that have
    the forward's very symbols say first which are which, then the others in order."""

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self._forward: dict[str, tuple[str, Tensor]] = {}  # what ours stands for, and where that is seen
        self._gradient: dict[str, tuple[str, Tensor]] = {}
        for tensor, original in sorted(pairs, key=lambda pair: pair[0].shape_text != pair[1].shape_text):
            if self.matches(tensor, original):
                for ours, theirs in _symbols_of(tensor, original):
                    self._forward.setdefault(ours, (theirs, tensor))
                    self._gradient.setdefault(theirs, (ours, tensor))

    def matches(self, gradient: Tensor, forward: Tensor) -> bool:
        return _is_alike(gradient, forward) and self._contradiction(gradient, forward) is None

    def reasons(self, gradient: Tensor, forward: Tensor, op: Op) -> Iterator[Note]:
        """Where that is seen by which the symbols of a shape, which else is right, are not the forward's."""
        found = self._contradiction(gradient, forward) if _is_alike(gradient, forward) else None
        if found:
            ours, theirs, where = found
            message = f"in '{where.name}', '{ours}' is what '{op.name}' calls '{theirs}'"
            yield Note(message, where.at("like" if where.like else "shape"))

    def _contradiction(self, gradient: Tensor, forward: Tensor) -> tuple[str, str, Tensor] | None:
        """Two symbols that are the same elsewhere, and not in these shapes; and where."""
        known_ours: dict[str, tuple[str, Tensor]] = dict(self._forward)
        known_theirs: dict[str, tuple[str, Tensor]] = dict(self._gradient)
        for ours, theirs in _symbols_of(gradient, forward):
            stands_for, where = known_ours.setdefault(ours, (theirs, gradient))
            if stands_for != theirs:
                return ours, stands_for, where
            is_called, where = known_theirs.setdefault(theirs, (ours, gradient))
            if is_called != ours:
                return is_called, theirs, where
        return None


def _symbols_of(gradient: Tensor, forward: Tensor) -> list[tuple[str, str]]:
    both = zip(gradient.shape, forward.shape, strict=True)
    return [(ours.symbol, theirs.symbol) for ours, theirs in both if ours.kind is not DimKind.CONSTANT]


def _is_alike(gradient: Tensor, forward: Tensor) -> bool:
    """Its shape is the forward's, whatever symbols are called."""
    if len(gradient.shape) != len(forward.shape):
        return False
    both = zip(gradient.shape, forward.shape, strict=True)
    return all(ours is theirs or _but_for_symbol(ours) == _but_for_symbol(theirs) for ours, theirs in both)


def _but_for_symbol(dim: Dim) -> tuple[object, ...]:
    return (dim.kind, dim.is_list, dim.constant, dim.divisor, dim.condition)


@op_rule("G508", needs=("attributes", "gradient_of"))
def different_attribute(op: Op, scope: Scope) -> Iterator[Finding]:
    """A gradient operator's attribute is not one of the forward operator, or has another type or default."""
    forward = scope.forward_with("attributes")
    if not forward or forward.attributes is op.attributes:
        return
    originals = {attribute.name: attribute for attribute in forward.attributes}
    given = {symbol.given_by for symbol in op.symbols}
    for attribute in op.attributes:
        original = originals.get(attribute.name)
        if not original and attribute.name in given:
            continue  # the dims of an input of the forward operator, which that is given itself
        if not original:
            hint = did_you_mean(attribute.name, originals)
            message = f"operator '{forward.name}' has no attribute '{attribute.name}'{hint}"
            yield Finding(message, attribute.span, (Note("the forward operator", forward.span),))
        elif (original.kind, original.enum) != (attribute.kind, attribute.enum):
            note = Note("the forward's attribute", original.span)
            yield Finding(
                f"attribute '{attribute.name}' has another type than that of '{forward.name}'",
                attribute.at("type"),
                (note,),
            )
        elif original.default != attribute.default:
            note = Note("the forward's default", original.at("default"))
            yield Finding(
                f"attribute '{attribute.name}' has another default than that of '{forward.name}'",
                attribute.at("default"),
                (note,),
            )


@op_rule("G509", needs=(*TENSORS, "gradient_of"))
def no_gradient(op: Op, scope: Scope) -> Iterator[Finding]:
    """No input of a gradient operator is the gradient of an output, or no output that of an input."""
    for tensors, role in ((op.inputs, "input"), (op.outputs, "output")):
        if op.gradient_of and not any(tensor.gradient_of for tensor in tensors):
            message = f"no {role} of operator '{op.name}' says with 'gradient_of' which gradient it is"
            yield Finding(message, op.at(f"{role}s"))


@op_rule("G510", needs=(*TENSORS, "gradient_of"))
def duplicate_gradient(op: Op, scope: Scope) -> Iterator[Finding]:
    """Two inputs, or two outputs, are the gradient of the same tensor."""
    for tensors in (op.inputs, op.outputs):
        first: dict[str, tuple[Tensor, Span]] = {}
        for tensor, (name, place) in [(one, of) for one in tensors for of in one.gradients]:
            known, other = first.setdefault(name, (tensor, place))
            if known is not tensor:
                message = f"{listing([known.name, tensor.name])} are both the gradient of '{name}'"
                yield Finding(message, place, (Note("the other", other),))
