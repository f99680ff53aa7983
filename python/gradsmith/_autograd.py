"""What `gradsmith.torch` holds: the operators with PyTorch's autograd, by the names of their functions.

That module has nothing else of its own, as an operator may have any name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch.autograd import forward_ad

from . import _arguments, _core, _ops
from ._double_backward import Call, formulas_of
from ._libraries import torch_dtypes
from ._ops import FUNCTIONS, TORCH_SCHEMAS
from ._policy import current, entered_text, of_text
from ._table import Operator, Tensor, gradients_of_inputs, ops
from ._text import PACKAGE, class_name, quoted
from ._torch_lists import flat, grouped, named, of_those_asked, slice_of

NAMESPACE = PACKAGE.rpartition(".")[2]
"""Where torch.ops has the operators."""

_TORCH_OPS = getattr(torch.ops, NAMESPACE)

_IS_GUARDED = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 15)
"""Whether torch.compile looks at context variables before it takes what it compiled."""


class _Registration:
    """One operator, as torch.library knows it."""

    def __init__(self, op: Operator, gradient: Operator | None) -> None:
        self.op = op
        self.gradient = gradient
        self.function = FUNCTIONS[op.name]
        self.result = getattr(_ops, f"{op.name}Result")
        self.outputs = [tensor.name for tensor in op.outputs]
        self.core = _core.ListOp(op.name, tuple) if op.has_lists else _core.Op(op.name, tuple)
        self.torch_op = torch.library.custom_op(
            f"{NAMESPACE}::{op.function}", self._run, mutates_args=(), schema=TORCH_SCHEMAS[op.name]
        )
        self.torch_op.register_fake(self._fake)
        if hasattr(self.torch_op, "register_vmap"):  # since PyTorch 2.5
            self.torch_op.register_vmap(self._map)
        self._formulas = formulas_of(op.kernel.partition("::")[0])
        if gradient is not None:
            self.torch_op.register_autograd(self._backward, setup_context=self._remember)
        elif op.gradient_of and self._formulas:
            self.torch_op.register_autograd(self._double_backward, setup_context=self._remember_all)

    def _run(
        self, /, *inputs: Any, outputs: Sequence[str] | None = None, policies: str | None = None, **attributes: Any
    ) -> Any:
        context = None if policies is None else of_text(policies)
        # What records gradients is the layer above this one.
        with torch.no_grad():
            result = self.function(*inputs, outputs=outputs, context=context, **attributes)
        return self._returned([getattr(result, name) for name in (self.outputs if outputs is None else outputs)])

    def _fake(
        self, /, *inputs: Any, outputs: Sequence[str] | None = None, policies: str | None = None, **attributes: Any
    ) -> Any:
        dims = tuple(_dims_of(given) for given in self._all(inputs))
        shapes = self.core.infer_shapes(dims, tuple(attributes.get(name) for name in self.op.attributes))
        made = dict(zip(self.outputs, shapes, strict=True))
        placed = zip(self.op.inputs, inputs, strict=False)
        tensors = _tensors([given for one, given in placed if not one.may_be_on_host])
        is_channels_last = any(_is_channels_last(tensor) for tensor in tensors)

        def empty(name: str, dims: Any) -> Any:
            if isinstance(dims, list):
                return [empty(name, one) for one in dims]
            return _empty(tensors[0], dims, self._dtype(name, inputs), is_channels_last)

        return self._returned([empty(name, made[name]) for name in (self.outputs if outputs is None else outputs)])

    def _map(self, info: Any, in_dims: Sequence[int | None], /, *inputs: Any, **keywords: Any) -> Any:
        """The rule of torch.vmap: a call for each slice."""
        call = self._torch_function(self.op.name)
        given = list(zip(inputs, in_dims, strict=True))
        slices = [[slice_of(one, dim, place) for one, dim in given] for place in range(info.batch_size)]
        if not slices:  # a call tells dims and dtypes
            slices = [[slice_of(one, dim, None) for one, dim in given]]
        made = [flat(call(*one, **keywords)) for one in slices]
        mapped = [torch.stack(tensors)[: info.batch_size] for tensors in zip(*made, strict=True)]
        names = keywords.get("outputs") or self.outputs
        return tuple(self._returned(grouped(self.op, names, each)) for each in (mapped, [0] * len(mapped)))

    def _returned(self, tensors: list[Any]) -> Any:
        """What has a gradient returns all its outputs; the others a list of those that were asked for, and of the
        tensors of a list."""
        if self.gradient is None:
            return flat(tensors)
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _listed(self, made: Any) -> Sequence[Any]:
        """All outputs from what the operator returned that has a gradient."""
        return (made,) if len(self.outputs) == 1 else made

    def _all(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The inputs with None for those that were left out."""
        return (*inputs, *[None] * (len(self.op.inputs) - len(inputs)))

    def _dtype(self, output: str, inputs: Sequence[Any]) -> Any:
        """Where no input has the type, that of the first row that takes the inputs."""
        wanted = next(tensor.type for tensor in self.op.outputs if tensor.name == output)
        dtypes = torch_dtypes()
        given: dict[str, Any] = {}
        for tensor, passed in zip(self.op.inputs, inputs, strict=False):
            for one in _tensors([passed]):
                given.setdefault(tensor.type, one.dtype)
        if wanted in given or wanted in dtypes:
            return given.get(wanted) or dtypes[wanted]
        rows = [{name: dtypes[bound] for name, bound in row.types.items()} for row in self.op.rows]
        row = next((row for row in rows if all(row.get(name, one) == one for name, one in given.items())), rows[0])
        return row[wanted]

    def _remember(self, ctx: Any, inputs: Any, keyword_only_inputs: dict[str, Any], output: Any) -> None:
        assert self.gradient is not None
        outputs = self._listed(output)
        tensors = dict(zip(self.outputs, outputs, strict=True))
        # An input and an output of one name: the gradient is given what the forward was given.
        tensors |= dict(zip((tensor.name for tensor in self.op.inputs), self._all(inputs), strict=True))
        of_inputs = {tensor.name: tensor.gradient_of for tensor in self.gradient.outputs}
        ctx.held = {
            one.name: tuple(tensors[of_inputs[one.shape_of][0]].shape) for one in self.gradient.inputs if one.shape_of
        }
        kept = [one.name for one in self.gradient.inputs if not one.gradient_of and not one.shape_of]
        ctx.save_for_backward(*flat([tensors[name] for name in kept]))
        ctx.lengths = {name: len(tensors[name]) for name in kept if isinstance(tensors[name], (list, tuple))}
        # The others give dims, as what holds a shape does.
        given = [name for name in self.gradient.attributes if name in keyword_only_inputs]
        ctx.attributes = {name: keyword_only_inputs[name] for name in given}
        ctx.policies = _policies_of(keyword_only_inputs)
        arriving = {tensor.gradient_of[0]: tensor for tensor in self.gradient.inputs if tensor.gradient_of}
        made = dict(zip(self.outputs, outputs, strict=True))
        ctx.mark_non_differentiable(*flat([one for name, one in made.items() if name not in arriving]))
        # The gradient of an output that nothing reads is absent, and zeros where the operator has to be given one.
        ctx.set_materialize_grads(False)
        ctx.required = {name: _outlines(made[name]) for name, tensor in arriving.items() if not tensor.optional}

    def _backward(self, ctx: Any, *gradients: Any) -> Any:
        assert self.gradient is not None
        of_outputs = dict(zip(self.outputs, gradients, strict=True))
        of_inputs = gradients_of_inputs(self.gradient)
        asked = self._needed(ctx)
        wanted = [of_inputs[one.name] for one in self.op.inputs if one.name in asked and one.name in of_inputs]
        needed = list(dict.fromkeys(wanted))  # one may be that of several inputs
        arrived = next((one for one in flat(gradients) if one is not None), None)
        # As where running statistics alone require a gradient, of which there is none, or none arrives.
        if not needed or arrived is None:
            return tuple(of_those_asked(None, asked) for asked in ctx.needs_input_grad)
        saved = iter(ctx.saved_tensors)

        def passed(tensor: Tensor) -> Any:
            if tensor.shape_of:
                return ctx.held[tensor.name]
            if tensor.gradient_of:
                (name,) = tensor.gradient_of
                return of_outputs[name] if tensor.optional else _filled(of_outputs[name], ctx.required[name], arrived)
            length = ctx.lengths.get(tensor.name)
            return next(saved) if length is None else [next(saved) for _ in range(length)]

        inputs = [passed(tensor) for tensor in self.gradient.inputs]
        gradient = self._torch_function(self.gradient.name)
        made = gradient(*inputs, **ctx.attributes, outputs=needed, policies=ctx.policies)
        by_name = dict(zip(needed, grouped(self.gradient, needed, made), strict=True))
        flags = zip(self.op.inputs, ctx.needs_input_grad, strict=False)
        return tuple(
            of_those_asked(by_name.get(of_inputs.get(one.name, "")) if one.name in asked else None, flag)
            for one, flag in flags
        )

    def _remember_all(self, ctx: Any, inputs: Any, keyword_only_inputs: dict[str, Any], output: Any) -> None:
        needed = self._needed(ctx)
        for name in self._formulas.assumed if self._formulas else ():
            if name in needed:
                raise ValueError(
                    f"{self.op.name}: {name} requires a gradient and has none of its own: it is taken to be that of X, "
                    f"whose gradient accounts for it. Give {name}.detach()"
                )
        ctx.save_for_backward(*inputs)
        ctx.attributes = {name: keyword_only_inputs[name] for name in self.op.attributes}
        asked = keyword_only_inputs["outputs"]
        ctx.outputs = self.outputs if asked is None else asked
        ctx.policies = _policies_of(keyword_only_inputs)
        ctx.set_materialize_grads(False)

    def _double_backward(self, ctx: Any, gradients: Sequence[Any]) -> Any:
        call = Call(
            forward=partial(self._torch_function(self.op.gradient_of), policies=ctx.policies),
            gradient=partial(self._torch_function(self.op.name), policies=ctx.policies),
            attributes=ctx.attributes,
            inputs=dict(zip((tensor.name for tensor in self.op.inputs), ctx.saved_tensors, strict=True)),
            given={name: one for name, one in zip(ctx.outputs, gradients, strict=True) if one is not None},
            needed=self._needed(ctx),
        )
        made = self._formulas.gradients_of(call) if self._formulas else {}
        return tuple(made.get(tensor.name) for tensor in self.op.inputs)

    def wanted(self, outputs: Any) -> list[str]:
        """The outputs that a caller asks for, by the rules of the function without autograd."""
        # What those rules are is in C++, which torch.compile cannot follow; usual forms are read without it.
        if outputs is None:
            return list(self.outputs)
        if not isinstance(outputs, (str, list, tuple)) and not isinstance(outputs, Iterable):
            return self.core.wanted(outputs)  # which says what is expected
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        is_usual = names and set(names) <= set(self.outputs) and len(set(names)) == len(names)
        return names if is_usual else self.core.wanted(names)

    def _needed(self, ctx: Any) -> set[str]:
        """The inputs whose gradients are asked for."""
        flags = zip(self.op.inputs, ctx.needs_input_grad, strict=False)
        return {tensor.name for tensor, is_needed in flags if any(flat([is_needed]))}

    @staticmethod
    def _torch_function(op: str) -> Any:
        return getattr(_TORCH_OPS, FUNCTIONS[op].__name__)


def _policies() -> str | None:
    """The text of the surrounding policies. torch.compile compiles anew where it has changed; before PyTorch 2.15 it
    could not know, and what it compiles runs under what surrounds it then."""
    return None if torch.compiler.is_compiling() and not _IS_GUARDED else entered_text.get()


def _policies_of(keywords: dict[str, Any]) -> str | None:
    """The policies of a call, for its backward pass."""
    told: str | None = keywords["policies"]
    return current().text if told is None and not torch.compiler.is_compiling() else told


def _dims_of(given: Any) -> Any:
    """An input's dims, or those of each tensor of a list; what is given for one that holds a shape are the dims that it
    holds."""
    if isinstance(given, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in given):
        return [_dims_of(one) for one in given]
    return tuple(given.shape) if isinstance(given, torch.Tensor) else given


def _outlines(made: Any) -> Any:
    """What zeros in the place of a tensor are made of; of a list of tensors a list."""
    return [_outlines(one) for one in made] if isinstance(made, (list, tuple)) else (made.shape, made.dtype)


def _filled(gradient: Any, outlines: Any, other: Any) -> Any:
    """The gradient of an output, with zeros where there is none, on the device of `other`."""
    if isinstance(outlines, list):
        absent = [None] * len(outlines)
        return [_filled(one, its, other) for one, its in zip(gradient or absent, outlines, strict=True)]
    dims, dtype = outlines
    return other.new_zeros(dims, dtype=dtype) if gradient is None else gradient


def _tensors(inputs: Sequence[Any]) -> list[Any]:
    return [one for one in flat(inputs) if isinstance(one, torch.Tensor)]


def _is_channels_last(tensor: Any) -> bool:
    """As python/src/operands.cc has it: by the strides of dims that have more than one element."""
    if tensor.dim() < 3 or tensor.numel() == 0:
        return False
    return _lies_as(tensor, (0, *range(2, tensor.dim()), 1)) and not _lies_as(tensor, tuple(range(tensor.dim())))


def _lies_as(tensor: Any, order: tuple[int, ...]) -> bool:
    """Whether the elements are dense with the axes in this order, outermost first."""
    stride = 1
    for axis in reversed(order):
        if tensor.shape[axis] > 1 and tensor.stride(axis) != stride:
            return False
        stride *= tensor.shape[axis]
    return True


def _empty(like: Any, dims: tuple[int, ...], dtype: Any, is_channels_last: bool) -> Any:
    if not is_channels_last or len(dims) < 3:
        return like.new_empty(dims, dtype=dtype)
    return like.new_empty((dims[0], *dims[2:], dims[1]), dtype=dtype).movedim(-1, 1)


def _refuse_tangents(op: Operator, inputs: Sequence[Any], keywords: dict[str, Any]) -> None:
    """PyTorch would take the derivative along a tangent for zero, without a word."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    positional = zip((tensor.name for tensor in op.inputs), inputs, strict=False)
    for name, given in (*positional, *keywords.items()):
        if any(forward_ad.unpack_dual(one).tangent is not None for one in _tensors([given])):
            raise NotImplementedError(
                f"{op.name}: {name} has a tangent: there are no derivatives in forward mode; expected a tensor "
                "without one (torch.autograd.grad and backward() work)"
            )


def _fault(op: Operator, signature: inspect.Signature, core: Any, inputs: Any, keywords: Any) -> Exception | None:
    """What is wrong with arguments that PyTorch has refused, in the library's words; None where nothing is."""
    if unknown := [name for name in keywords if name not in signature.parameters]:
        return _arguments.unknown(op.name, signature, unknown)
    try:
        given = signature.bind(*inputs, **keywords).arguments
    except TypeError as error:
        return TypeError(f"{op.name}: {error}; expected {op.function}{signature}")
    for tensor in op.inputs:
        value = given.get(tensor.name)
        if tensor.shape_of:
            continue  # which the core reads as it reads attributes
        for name, one in named(tensor, value):
            if not isinstance(one, torch.Tensor) and not (tensor.optional and one is None):
                told = f"{op.name}: {name} is {quoted(one)} ({class_name(one)})"
                return TypeError(f"{told}; expected a torch.Tensor")
    tensors = [given.get(tensor.name) for tensor in op.inputs]
    try:
        dims = tuple(_dims_of(one) for one in tensors)
        core.infer_shapes(dims, tuple(given.get(name) for name in op.attributes))
    except (TypeError, ValueError) as error:
        return error
    return None


def _function(registration: _Registration) -> Callable[..., Any]:
    """The operator for callers: its result is the named tuple of the function without autograd."""
    op, result, names = registration.op, registration.result, registration.outputs
    is_single, has_lists = len(names) == 1, op.has_lists
    overload = getattr(_TORCH_OPS, op.function).default

    def call(inputs: Any, attributes: dict[str, Any], **others: Any) -> Any:
        _refuse_tangents(op, inputs, attributes)
        given = {k: v for k, v in attributes.items() if v is not None or k not in op.attributes}
        try:
            return overload(*inputs, **given, **others, policies=_policies())
        except RuntimeError:
            fault = _fault(op, signature, registration.core, inputs, attributes)
            if fault is None:
                raise
            raise fault from None

    def forward(*inputs: Any, **attributes: Any) -> Any:
        made = call(inputs, attributes)
        return result(made) if is_single else result(*made)

    def some(*inputs: Any, outputs: str | Iterable[str] | None = None, **attributes: Any) -> Any:
        wanted = registration.wanted(outputs)
        tensors = call(inputs, attributes, outputs=wanted)
        made = dict(zip(wanted, grouped(op, wanted, tensors) if has_lists else tensors, strict=True))
        return result(*[made.get(name) for name in names])

    function: Any = some if registration.gradient is None else forward
    model = registration.function
    absent = {"out", "context"} if registration.gradient is None else {"out", "context", "outputs"}
    signature = inspect.signature(model)
    kept = [one for name, one in signature.parameters.items() if name not in absent]
    signature = signature.replace(parameters=kept)
    function.__signature__ = signature
    function.__name__ = function.__qualname__ = op.function
    function.__module__ = f"{PACKAGE}.torch"
    function.__doc__ = f"`{PACKAGE}.{op.function}` with autograd and torch.compile. See there."
    named: Callable[..., Any] = function
    return named


def _gradients(operators: Iterable[Operator]) -> dict[str, Operator]:
    """The gradient of each operator that has one: of several that which serves the most inputs, or stands first."""

    def served(op: Operator) -> int:
        return len(gradients_of_inputs(op))

    found: dict[str, Operator] = {}
    for op in operators:
        if op.gradient_of and (op.gradient_of not in found or served(op) > served(found[op.gradient_of])):
            found[op.gradient_of] = op
    return found


def _registrations() -> dict[str, _Registration]:
    gradients = _gradients(ops())
    return {op.name: _Registration(op, gradients.get(op.name)) for op in ops()}


_REGISTRATIONS = _registrations()
WITH_AUTOGRAD = {one.op.function: _function(one) for one in _REGISTRATIONS.values()}
"""The functions that callers have, by their names."""
