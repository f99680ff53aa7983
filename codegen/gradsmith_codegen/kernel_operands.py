"""The operands of handwritten kernels on CUDA: what `kernels.h` says of a family's kernels, for the header
`operands.h` that its sources include."""

from __future__ import annotations

from dataclasses import dataclass

from .cpp_names import header_guard
from .kernel_headers import Family, KernelHeaders
from .kernel_terms import RUNS_ANYWHERE, Kernel
from .library import Library

_RUNS_ON_CUDA = frozenset(("RunCuda", RUNS_ANYWHERE))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a kernel reads or writes."""

    name: str  # as messages have it: of two called alike, the output is new
    enumerator: str
    meaning: str  # its type and shape, as far as the kernel says them, and whether it may be absent


@dataclass(frozen=True, slots=True)
class KernelOperands:
    """A kernel's operands, first the inputs, and which outputs may be written in an input's memory."""

    name: str  # of the kernel's struct
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    in_place: tuple[tuple[Operand, Operand], ...]

    @property
    def all(self) -> tuple[Operand, ...]:
        return self.inputs + self.outputs


@dataclass(frozen=True, slots=True)
class FamilyOperands:
    """Those of a family's kernels, in the order of its header."""

    name: str
    namespace: str
    kernels: tuple[KernelOperands, ...]

    @property
    def guard(self) -> str:
        return header_guard(self.namespace, "operands.h")


def families_of(headers: KernelHeaders, library: Library) -> tuple[FamilyOperands, ...]:
    """Those of the families that belong to a library: the runtime's own library has the runtime's."""
    names = headers.headers if library.is_builtin else headers.own_families
    found = [(name, headers.family_of(f"{name}::")) for name in sorted(names)]
    return tuple([_of_family(name, family) for name, family in found if family])


def _of_family(name: str, family: Family) -> FamilyOperands:
    kernels = []
    for kernel_name in family.kernel_names:
        kernel = family.kernel(kernel_name)
        if kernel and not kernel.faults and kernel.runs & _RUNS_ON_CUDA:
            kernels.append(_of_kernel(kernel_name.partition("::")[2], kernel))
    return FamilyOperands(name, family.namespace, tuple(kernels))


def _of_kernel(name: str, kernel: Kernel) -> KernelOperands:
    read = [one for one in kernel.inputs or {} if not _is_shape_only(kernel, one)]
    taken: set[str] = set()
    inputs = {one: _operand(kernel, one, one, taken) for one in read}
    outputs = {
        one: _operand(kernel, one, f"new {one}" if one in (kernel.inputs or {}) else one, taken)
        for one in kernel.outputs or {}
    }
    in_place = kernel.shapes.in_place if kernel.shapes else {}
    pairs = [(inputs[source], outputs[output]) for output, source in in_place.items()]
    return KernelOperands(name, tuple(inputs.values()), tuple(outputs.values()), tuple(pairs))


def _is_shape_only(kernel: Kernel, name: str) -> bool:
    limit = kernel.limits.of.get(name)
    return bool(limit and limit.shape_only)


def _operand(kernel: Kernel, field: str, name: str, taken: set[str]) -> Operand:
    enumerator = _enumerator(name)
    while enumerator in taken:  # a_b and aB, for example
        enumerator += "_"
    taken.add(enumerator)
    return Operand(name, enumerator, _meaning(kernel, field))


def _enumerator(name: str) -> str:
    """`kNewRunningMean`."""
    words = name.replace(" ", "_").split("_")
    return "k" + "".join([word[:1].upper() + word[1:] for word in words])


def _meaning(kernel: Kernel, field: str) -> str:
    kind = kernel.types.tensors[field] if kernel.types else "any type"
    shape = kernel.shapes.tensors[field].text if kernel.shapes else "any shape"
    of_list = "a list of " if field in kernel.lists else ""
    absence = "" if kernel.tensors[field] else ", may be absent"
    return f"{of_list}{kind} {shape}{absence}"
