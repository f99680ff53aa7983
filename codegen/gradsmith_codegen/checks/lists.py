"""Arguments that are lists of tensors, and numbers that may lie on the host."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Note
from ..model import OUTPUTS, Op, Symbol, Tensor
from ..spans import Span
from ..suggestions import listing
from .kernel_shapes import compare
from .kernels import header_of
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule


@op_rule("G334", needs=SHAPES, blames=("dims",))
def bad_sum(op: Op, scope: Scope) -> Iterator[Finding]:
    """The shape rule `sum` is for a list of dims, or adds up something else than one single dim of which each
    tensor of a list has its own."""
    own = {symbol.name for symbol in op.symbols if symbol.of_each and not symbol.is_list}
    for symbol in op.symbols:
        rule = symbol.rule
        if not rule or not rule.is_sum:
            continue
        if symbol.is_list:
            message = f"'{symbol.name}' is a list of dims, and 'sum' computes a single dim"
            yield Finding(f"{message}; leave out its length", symbol.at("rule"))
        elif len(rule.arguments) != 1:
            message = f"'sum' takes one dim, which it adds up over a list, not {len(rule.arguments)}"
            yield Finding(message, symbol.at("rule"))
        elif rule.arguments[0] not in own:
            message = f"'{rule.arguments[0]}' is no single dim of which each tensor of a list has its own"
            remedy = "one that no other tensor has in its shape"
            yield Finding(f"{message}: {remedy}", symbol.at("rule"))


@op_rule("G335", needs=TENSORS, blames=("dims",))
def two_lengths(op: Op, scope: Scope) -> Iterator[Finding]:
    """Two lists of an operator call their length differently, though all have one; or it is called like a
    symbol of the shapes."""
    lists = [tensor for tensor in scope.tensors if tensor.list]
    symbols = {dim.symbol for tensor in scope.tensors for dim in tensor.shape}
    for tensor in lists:
        if tensor.list != lists[0].list:
            note = Note(f"'{lists[0].name}' is a list of '{lists[0].list}'", lists[0].at("list"))
            message = (
                f"'{tensor.name}' is a list of '{tensor.list}': all lists of an operator have one length"
            )
            yield Finding(message, tensor.at("list"), (note,))
        elif tensor.list in symbols and tensor is lists[0]:
            message = f"'{tensor.list}' is a symbol of the shapes, and so cannot be the length of a list"
            yield Finding(message, tensor.at("list"))


@op_rule("G336", needs=(*SHAPES, "attributes"), blames=("dims",))
def one_of_many(op: Op, scope: Scope) -> Iterator[Finding]:
    """What there is one of in a call hangs on a symbol of which each tensor of a list has its own; or that is
    to come from a rule, an attribute or an axis, of which there is one."""
    own = {symbol.name for symbol in op.symbols if symbol.of_each}
    for symbol in op.symbols if own else ():
        for other, place in _hangs_on(symbol):
            if other in own and not symbol.of_each:
                message = (
                    f"there is one '{symbol.name}' in a call, and one '{other}' for each tensor of a list"
                )
                yield Finding(message, place)
        giver = _giver_of_one(symbol)
        if symbol.of_each and giver:
            message = (
                f"there is one '{symbol.name}' for each tensor of a list, which '{giver[0]}' cannot give"
            )
            yield Finding(message, symbol.at(giver[1]))
    for attribute in op.attributes if own else ():
        if attribute.length and attribute.length.symbol in own:
            message = f"attribute '{attribute.name}' has the length of '{attribute.length.symbol}', of which"
            yield Finding(f"{message} each tensor of a list has its own", attribute.at("length"))


def _hangs_on(symbol: Symbol) -> list[tuple[str, Span]]:
    """Other symbols, and where it is said."""
    found = [(symbol.length_of, symbol.at("length")), (symbol.broadcast_to, symbol.at("broadcast_to"))]
    rule = symbol.rule
    takes_own = rule and (rule.is_sum or (rule.is_broadcast and len(rule.arguments) == 1))
    return found + [(name, symbol.at("rule")) for name in (rule.arguments if rule and not takes_own else ())]


def _giver_of_one(symbol: Symbol) -> tuple[str, str] | None:
    """What gives a symbol once for a call, and at which key."""
    if symbol.rule:
        return symbol.rule.text, "rule"
    if symbol.given_by and symbol.given_by != OUTPUTS:
        return symbol.given_by, "given_by"
    return (symbol.length_axis, "length") if symbol.length_axis else None


@op_rule("G337", needs=TENSORS)
def no_number_on_the_host(op: Op, scope: Scope) -> Iterator[Finding]:
    """An input that may lie on the host (`may_be_on_host`) is no single number, of shape `[]`, or only its
    shape is needed."""
    for tensor in op.inputs:
        if tensor.may_be_on_host and (len(tensor.shape) > 0 or tensor.list or tensor.shape_only):
            what = f"a list of {tensor.shape_text}" if tensor.list else tensor.shape_text
            what = "never read" if tensor.shape_only else what
            message = f"'{tensor.name}' is {what}, and only a number, of shape [], may lie on the host"
            yield Finding(message, tensor.at("may_be_on_host"))


@op_rule("G710", needs=("kernel", *SHAPES, "attributes"), blames=("dims",), turn=1)
def list_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """An argument is a list of tensors and the kernel takes one there, or it is one and the kernel takes a
    list; or the kernel takes a dim for the same in all tensors of a list that each has of its own."""
    kernel = scope.kernel
    if not kernel or kernel.inputs is None or kernel.outputs is None:
        return
    unlike = [
        tensor
        for tensor in scope.tensors
        if tensor.name in kernel.tensors and bool(tensor.list) != (tensor.name in kernel.lists)
    ]
    for tensor in unlike:
        given, taken = ("a list", "one tensor") if tensor.list else ("one tensor", "a list of tensors")
        message = f"'{tensor.name}' is {given}; kernel {op.kernel} takes {taken} there"
        yield Finding(message, tensor.at("list"), (_lists_of(op, kernel.lists),))
    if not unlike and any(tensor.list for tensor in scope.tensors):
        yield from _shared_by_the_kernel(op, scope)


def _shared_by_the_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    comparison, kernel = compare(op, scope), scope.kernel
    if not comparison or not kernel or [*comparison.findings()]:
        return
    own = {symbol.name: symbol for symbol in op.symbols if symbol.of_each}
    shapes = comparison.shapes.tensors
    shared = {dim.symbol for name, shape in shapes.items() if name not in kernel.lists for dim in shape}
    for name in sorted(shared & comparison.dims.keys()):
        for dim in comparison.dims[name]:
            if dim.symbol in own:
                message = f"each tensor of a list has its own '{dim.symbol}'"
                message += f", which kernel {op.kernel} takes for one"
                note = Note(
                    f"shapes of {op.kernel} ({header_of(op)}): {comparison.shapes.text}", op.at("kernel")
                )
                yield Finding(message, _place_of(op, dim.symbol), (note,))


def _place_of(op: Op, symbol: str) -> Span:
    def has(tensor: Tensor) -> bool:
        return symbol in tensor.shape.symbols

    return next(tensor for tensor in op.inputs + op.outputs if tensor.list and has(tensor)).span


def _lists_of(op: Op, lists: frozenset[str]) -> Note:
    said = listing(sorted(lists)) if lists else "none"
    return Note(f"lists of {op.kernel} ({header_of(op)}): {said}", op.at("kernel"))


@op_rule("G711", needs=("kernel", *TENSORS))
def read_on_the_device(op: Op, scope: Scope) -> Iterator[Finding]:
    """The kernel reads an input on its device that may lie on the host (`may_be_on_host`): it does not say
    otherwise in `kLimits`."""
    kernel = scope.kernel
    if not kernel or kernel.shapes is None:
        return
    for tensor in op.inputs:
        limit = kernel.limits.of.get(tensor.name)
        if tensor.may_be_on_host and not (limit and limit.may_be_on_host):
            message = f"kernel {op.kernel} may read '{tensor.name}' on its device: its kLimits"
            yield Finding(f"{message} lack '{tensor.name} may_be_on_host'", tensor.at("may_be_on_host"))
