"""What the handwritten kernel takes, against what the operator gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..diagnostics import Note
from ..grammar import family
from ..kernel_headers import HEADER
from ..kernel_terms import CPP_TYPES, FOREIGN, OPTIONAL, RUNS_ANYWHERE, Kernel
from ..model import Attribute, Op, Tensor
from ..suggestions import did_you_mean, either, instead, listing
from .registry import TENSORS, Finding, Scope, op_rule


@op_rule("G408", needs=("kernel", "attributes"), blames=("attributes",), turn=1)
def attribute_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute is none of the kernel's, or is of another type there."""
    taken = scope.kernel.attributes if scope.kernel else None
    if taken is None:
        return
    for attribute in op.attributes:
        given, expected = attribute.enum or attribute.kind.value, taken.get(attribute.name)
        if expected is None:
            yield _unknown(op, "attribute", attribute, taken)
        elif given != expected.removeprefix(OPTIONAL):
            right = CPP_TYPES.get(given, "an enum")
            takes = f"{expected}, not {right}" if expected.startswith(FOREIGN) else expected
            message = f"attribute '{attribute.name}' is of type {given}; kernel {op.kernel} takes {takes}"
            place = attribute.at("enum" if attribute.enum else "type")
            yield Finding(message, place, (_offer(op, "attribute", taken),))
        elif attribute.is_optional and not expected.startswith(OPTIONAL):
            field = f"its field is a {CPP_TYPES[given]}, and no std::optional of it"
            message = f"attribute '{attribute.name}' must have a default for kernel {op.kernel}: {field}"
            yield Finding(message, attribute.at("optional"), (_offer(op, "attribute", taken),))


@op_rule("G701", needs=("kernel",), blames=("kernel",), turn=0)
def unknown_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """A kernel is no struct of its family's `kernels.h`."""
    known = scope.kernels.family_of(op.kernel)
    if op.kernel and scope.kernels.has_folders and not scope.kernel and not (known and known.fault):
        message = (
            f"there is no kernel {op.kernel} in {header_of(op)}{instead(op.kernel, known.kernel_names)}"
            if known
            else f"there is no kernel {op.kernel}, for neither runtime nor any --kernels has {header_of(op)}"
            f"{did_you_mean(op.kernel, scope.kernels.kernel_names())}"
        )
        yield Finding(message, op.at("kernel"))


@op_rule("G702", needs=("kernel", *TENSORS), blames=TENSORS)
def tensor_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input or an output is none of the kernel's."""
    for role, tensors, taken in _arguments(op, scope.kernel):
        for tensor in tensors:
            if tensor.name not in taken:
                yield _unknown(op, role, tensor, taken)


@op_rule("G703", needs=("kernel", *TENSORS))
def tensor_that_the_kernel_needs(op: Op, scope: Scope) -> Iterator[Finding]:
    """The kernel needs an input or an output that the operator does not have, or that may be left out."""
    for role, tensors, taken in _arguments(op, scope.kernel):
        given = {tensor.name: tensor for tensor in tensors}
        for name, is_required in taken.items():
            if is_required and name not in given:
                message = (
                    f"kernel {op.kernel} needs an {role} '{name}', which operator '{op.name}' does not have"
                )
                yield Finding(message, op.at(f"{role}s"), (_offer(op, role, taken),))
            elif is_required and given[name].optional:
                message = f"{role} '{name}' must not be optional: kernel {op.kernel} needs it"
                yield Finding(message, given[name].at("optional"), (_offer(op, role, taken),))


@op_rule("G704", needs=("kernel", "backends"), blames=("backends",))
def backend_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """The kernel does not run on a backend of the operator."""
    for backend in op.backends:
        run = f"Run{backend.value.capitalize()}"
        if scope.kernel and run not in scope.kernel.runs and not scope.kernel.runs_anywhere:
            message = (
                f"kernel {op.kernel} does not run on {backend.value}: "
                f"it has neither {run} nor {RUNS_ANYWHERE} in {header_of(op)}"
            )
            yield Finding(message, op.at("backends"))


@op_rule("G706", needs=("kernel",), blames=("kernel",), turn=0)
def faulty_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """A `kernels.h` does not read, or what it says of a kernel contradicts the kernel's fields: then nothing
    says what the kernel takes."""
    known = scope.kernels.family_of(op.kernel)
    if known and known.fault:
        if _is_first(op, scope, lambda other: family(other.kernel) == family(op.kernel)):
            yield Finding(f"{header_of(op)} does not read: {known.fault}", op.at("kernel"))
    elif scope.kernel and _is_first(op, scope, lambda other: other.kernel == op.kernel):
        for fault in scope.kernel.faults:
            yield Finding(f"kernel {op.kernel} in {header_of(op)}: {fault}", op.at("kernel"))


def _is_first(op: Op, scope: Scope, is_alike: Callable[[Op], bool]) -> bool:
    return next(draft.op for draft in scope.document.drafts if is_alike(draft.op)) is op


@op_rule("G712", needs=("kernel",), turn=0)
def kernel_of_other_namespace(op: Op, scope: Scope) -> Iterator[Finding]:
    """A kernel is not in the namespace of its library and in it the family's: the generated code, which
    declares it there, would not find it."""
    known = scope.kernels.family_of(op.kernel)
    if known and scope.kernel and known.namespace_of(op.kernel) != known.namespace:
        place, expected = known.namespace_of(op.kernel), known.namespace
        if _is_first(op, scope, lambda other: family(other.kernel) == family(op.kernel)):
            library = expected.partition("::")[0]
            other = place.removesuffix(f"::{family(op.kernel)}")
            is_others = place != other and "::" not in other
            hint = f"; '--library {other}' makes it that of library '{other}'" if is_others else ""
            where = f"is in namespace {place}" if place else "is in no namespace"
            message = (
                f"kernel {op.kernel} in {header_of(op)} {where}; expected {expected}, as the library is "
                f"'{library}' and the family '{family(op.kernel)}'{hint}"
            )
            yield Finding(message, op.at("kernel"))


@op_rule("G708", needs=("kernel", *TENSORS, "attributes"), blames=("kernel",), turn=0)
def other_kernel_fits(op: Op, scope: Scope) -> Iterator[Finding]:
    """Several of an operator's tensors and attributes are none of its kernel's, or one is and its tensors do
    not fit, and all are another's of the family."""
    foreign = _foreign(op, scope.kernel) if scope.kernel and not scope.kernel.faults else []
    known = scope.kernels.family_of(op.kernel)
    is_mistyped = len(foreign) == 1 and scope.kernel and has_its_tensors(op, scope.kernel)
    if not foreign or is_mistyped or not known:
        return
    others = [(name, known.kernel(name)) for name in known.kernel_names if name != op.kernel]
    fitting = [
        name for name, other in others if other and has_its_tensors(op, other) and not _foreign(op, other)
    ]
    if fitting:
        message = f"kernel {op.kernel} does not have {listing(foreign)}; did you mean {either(fitting)}?"
        yield Finding(message, op.at("kernel"))


def _foreign(op: Op, kernel: Kernel) -> list[str]:
    """The operator's tensors and attributes that the kernel does not have."""
    taken = kernel.attributes
    tensors = [one for _, given, known in _arguments(op, kernel) for one in given if one.name not in known]
    attributes = [one for one in op.attributes if taken is not None and one.name not in taken]
    return [one.name for one in tensors] + [one.name for one in attributes]


@op_rule("G707", needs=("kernel", *TENSORS))
def in_place_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """An output is in place of an input that the kernel still reads while it writes."""
    shapes = scope.kernel.shapes if scope.kernel else None
    for tensor in op.outputs:
        if shapes and tensor.in_place_of and shapes.in_place.get(tensor.name) != tensor.in_place_of:
            message = f"kernel {op.kernel} does not write '{tensor.name}' in place of '{tensor.in_place_of}'"
            said = ", ".join([f"{output} of {given}" for output, given in shapes.in_place.items()]) or "none"
            note = Note(f"in place in {op.kernel} ({header_of(op)}): {said}", op.at("kernel"))
            yield Finding(message, tensor.at("in_place_of"), (note,))


@op_rule("G709", needs=("kernel", *TENSORS))
def read_by_the_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """The kernel may read the data of an input of which only the shape is needed (`shape_only`): it does not
    say otherwise in `kLimits`."""
    if not scope.kernel or scope.kernel.shapes is None:
        return
    limits = scope.kernel.limits.of
    for tensor in op.inputs:
        if tensor.shape_only and not (tensor.name in limits and limits[tensor.name].shape_only):
            message = f"kernel {op.kernel} may read the data of '{tensor.name}': its kLimits"
            yield Finding(f"{message} lack '{tensor.name} shape_only'", tensor.at("shape_only"))


def has_its_tensors(op: Op, kernel: Kernel) -> bool:
    """The operator's tensors are among the kernel's, and those that it needs are there."""
    return all(
        {name for name, is_required in taken.items() if is_required}
        <= {tensor.name for tensor in tensors}
        <= taken.keys()
        for _, tensors, taken in _arguments(op, kernel)
    )


def _arguments(op: Op, kernel: Kernel | None) -> Iterator[tuple[str, Sequence[Tensor], Mapping[str, bool]]]:
    """The operator's tensors beside the kernel's, where these are known. What holds a shape is not given to
    the kernel, which has the shape from the output."""
    if kernel and kernel.inputs is not None:
        yield "input", [tensor for tensor in op.inputs if not tensor.shape_of], kernel.inputs
    if kernel and kernel.outputs is not None:
        yield "output", op.outputs, kernel.outputs


def _unknown(op: Op, role: str, noun: Attribute | Tensor, taken: Mapping[str, object]) -> Finding:
    message = f"kernel {op.kernel} has no {role} '{noun.name}'{did_you_mean(noun.name, taken)}"
    return Finding(message, noun.span, (_offer(op, role, taken),))


def _offer(op: Op, role: str, taken: Mapping[str, object]) -> Note:
    """What the kernel has of a kind, at the place where the operator names the kernel."""
    offered = ", ".join(taken) or "none"
    return Note(f"{role}s of {op.kernel} ({header_of(op)}): {offered}", op.at("kernel"))


def header_of(op: Op) -> str:
    return f"{family(op.kernel)}/{HEADER}"
