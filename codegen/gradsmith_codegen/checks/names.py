"""Names: what C++ can be generated from, and what would collide there."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from .. import grammar
from ..cpp_names import snake_case
from ..cpp_words import CPP_KEYWORDS
from ..diagnostics import Note
from ..draft import Document
from ..model import Op
from ..spans import Located
from ..vocabulary import CASE, TYPES
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule, schema_rule

# What namespace gradsmith holds already.
RUNTIME_NAMES = frozenset(
    """Allocator Attribute AttributeKind AttributeSpec AttributeValue AutoPad BFloat16 Backend BasicList
    BasicTensorRef BuiltinTable CacheFile CachedChoice CachedChoices Call ChannelsLastStrides CheckDevice
    ClearCache ConstTensorRef Context ContextOptions ContiguousStrides ConvAddresses ConvAlgorithm
    ConvAlgorithms ConvAttempt ConvGeometry ConvPrimitive CutToOdd DataType DecisionCache Device
    DeviceBuffer DimSpec Dims DispatchTable ExportCache FloatList ImportCache InferShapes IntList Internal
    InvalidArgument IsFloating Kernel LargestWorkspace LossReduction MLFloat16 NumElements OpSchema
    OutOfMemory RegisterAll Registry Repeatable RequiredInput RequiredInputs RequiredOutput RequiredOutputs
    Result Row RunFunction SearchMode SearchProgress SetWarningHandler ShapeRule SizeOf Status StatusCode
    Strides SymbolSpec Synchronize TensorRef TensorSpec TensorView ThreadPool ToString Unsupported
    WorkspaceArena WorkspaceLimit""".split()
)

# Names of the structs that an operator has, by what their fields are.
_STRUCTS = {
    "attributes": ("Attributes",),
    "inputs": ("Inputs", "InputDims"),
    "outputs": ("Outputs", "OutputDims"),
}
_DERIVED_SUFFIXES = tuple(suffix for suffixes in _STRUCTS.values() for suffix in suffixes)


@functools.lru_cache(maxsize=4096)  # most operators use the same names
def _identifier_problem(name: str) -> str:
    if not grammar.is_identifier(name):
        return "expected a letter, then letters, digits and '_'"
    if "__" in name or name.endswith("_"):
        return "C++ keeps names with '__' to itself, and a '_' at the end means a member"
    if name in CPP_KEYWORDS:
        return "it is a keyword of C++"
    return f"it has more than {grammar.MAX_NAME} characters" if len(name) > grammar.MAX_NAME else ""


@op_rule("G101", needs=("name",))
def op_name(op: Op, scope: Scope) -> Iterator[Finding]:
    """An operator's name is not CamelCase, or longer than 36 characters."""
    if op.name and not grammar.OP_NAME.match(op.name):
        yield Finding(f"'{op.name}' is no operator name; expected CamelCase letters and digits", op.span)
    elif len(op.name) > grammar.MAX_NAME:
        yield Finding(f"operator name '{op.name}' has more than {grammar.MAX_NAME} characters", op.span)


@op_rule("G102")
def identifiers(op: Op, scope: Scope) -> Iterator[Finding]:
    """The name of a tensor, an attribute, a symbol, a type parameter or a choice cannot be one in C++."""
    for kind, name, noun, key in _identifiers(op, scope):
        problem = _identifier_problem(name)
        if problem:
            yield Finding(f"'{name}' cannot name {_a(kind)}: {problem}", noun.at(key))


def _identifiers(op: Op, scope: Scope) -> Iterator[tuple[str, str, Located, str]]:
    """What each is, its name, and the noun and the key in the noun's entry where it stands."""
    for tensor in op.inputs:
        yield "input", tensor.name, tensor, ""
    for tensor in op.outputs:
        yield "output", tensor.name, tensor, ""
    bound = {name for row in op.rows for name, _ in row.types}
    for tensor in scope.tensors:
        if tensor.type in bound and tensor.type not in TYPES:
            yield "type parameter", tensor.type, tensor, "type"
    for symbol in scope.draft.declared.values():
        yield "symbol", symbol.name, symbol, ""
    for attribute in op.attributes:
        yield "attribute", attribute.name, attribute, ""
        for choice in attribute.choices:
            yield "choice", choice, attribute, "choices"


@op_rule("G103")
def row_and_case_names(op: Op, scope: Scope) -> Iterator[Finding]:
    """The name of a row or a case is not of the form `half_float_stats`, which names tests."""
    for kind, nouns in (("row", op.rows), ("case", op.cases)):
        for noun in nouns:
            problem = _lower_name_problem(kind, noun.name)
            if problem:
                yield Finding(problem, noun.span)


@functools.lru_cache(maxsize=4096)
def _lower_name_problem(kind: str, name: str) -> str:
    if not grammar.LOWER_NAME.match(name):
        return f"'{name}' is no {kind} name; expected lower-case words joined by '_'"
    return (
        f"{kind} name '{name}' has more than {grammar.MAX_NAME} characters"
        if len(name) > grammar.MAX_NAME
        else ""
    )


@schema_rule("G104")
def duplicate_op(document: Document) -> Iterator[Finding]:
    """Two operators have the same name."""
    first: dict[str, Op] = {}
    for draft in document.drafts:
        op = draft.op
        known = first.setdefault(op.name, op)
        if op.name and known is not op:
            note = Note("first declared here", known.span)
            yield Finding(f"operator '{op.name}' is declared twice", op.span, (note,))


@schema_rule("G105")
def colliding_ops(document: Document) -> Iterator[Finding]:
    """Two operators differ in name, and the names generated from theirs do not: a header's file name, a
    page's where case does not count, a struct."""
    ops = {
        draft.op.name: draft.op for draft in reversed(document.drafts) if grammar.OP_NAME.match(draft.op.name)
    }
    headers: dict[str, Op] = {}
    pages: dict[str, Op] = {}
    for op in reversed(ops.values()):
        header, page = snake_case(op.name), op.name.lower()
        for files, name, shared in (
            (headers, header, f"share the header {header}.h"),
            (pages, page, "share a page where case does not tell files apart"),
        ):
            known = files.setdefault(name, op)
            if known is not op:
                note = Note("the other operator", known.span)
                yield Finding(f"operators '{known.name}' and '{op.name}' would {shared}", op.span, (note,))
                break
        for suffix in _DERIVED_SUFFIXES:
            owner = ops.get(op.name.removesuffix(suffix)) if op.name.endswith(suffix) else None
            if owner:
                note = Note("which this operator has", owner.span)
                yield Finding(
                    f"'{op.name}' is the name of a struct of operator '{owner.name}'", op.span, (note,)
                )


@op_rule("G106", needs=(*SHAPES, "attributes"))
def clashes(op: Op, scope: Scope) -> Iterator[Finding]:
    """Two things of one operator have a name that the generated C++, or a test case, could not tell apart."""
    tensors = {tensor.name: tensor for tensor in reversed(scope.tensors)}
    parameters = {tensor.type: tensor for tensor in tensors.values()}
    symbols = {symbol.name: symbol for symbol in op.symbols}
    enums = {attribute.enum: attribute for attribute in op.attributes if attribute.enum}
    of_attributes: Rivals = (("tensor", tensors, ""), ("symbol", symbols, ""), ("enum", enums, "enum"))
    of_tensors: Rivals = (("type parameter", parameters, "type"),)
    yield from _clashes("attribute", scope.attributes, of_attributes)
    yield from _clashes("tensor", tensors, of_tensors)
    for key, suffixes in _STRUCTS.items() if op.name else ():
        structs = {op.name + suffix for suffix in suffixes}
        for noun in getattr(op, key):
            if noun.name in structs:
                message = f"no field can be called '{noun.name}', which is the struct that has it"
                yield Finding(message, noun.span)


# Kinds of things whose names another thing may not have, and the key of their entry where the name stands.
Rivals = tuple[tuple[str, Mapping[str, Located], str], ...]


def _clashes(kind: str, nouns: Mapping[str, Located], rivals: Rivals) -> Iterator[Finding]:
    taken = set(CASE.all).union(*[others for _, others, _ in rivals])
    for name in nouns:
        if name in CASE:
            yield Finding(f"no {kind} can be called '{name}', which is a key of every case", nouns[name].span)
        elif name in taken:
            rival_kind, others, key = next(rival for rival in rivals if name in rival[1])
            note = Note(f"the {rival_kind}", others[name].at(key))
            yield Finding(f"{kind} '{name}' has the name of {_a(rival_kind)}", nouns[name].span, (note,))


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


@op_rule("G107", needs=TENSORS)
def shared_tensor_name(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input and an output have the same name, and the output is not written in place of the input."""
    inputs = {tensor.name: tensor for tensor in op.inputs}
    for tensor in op.outputs:
        if tensor.name in inputs and tensor.in_place_of != tensor.name:
            note = Note("the input", inputs[tensor.name].span)
            message = (
                f"output '{tensor.name}' has the name of an input, and lacks 'in_place_of: {tensor.name}'"
            )
            yield Finding(message, tensor.span, (note,))


@op_rule("G108", needs=("name",))
def runtime_name(op: Op, scope: Scope) -> Iterator[Finding]:
    """An operator has the name of something that the runtime's namespace holds already."""
    if op.name in RUNTIME_NAMES:
        yield Finding(f"operator '{op.name}' would collide with gradsmith::{op.name} of the runtime", op.span)
