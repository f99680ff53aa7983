"""The entry of an operator of which only its formulas are given: its tensors, their shapes and its cases are
worked out from these, and from the forward operator's entry where it is the gradient of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from . import scalars, spelling
from .data_types import FLOATING_TYPES
from .diagnostics import format_text
from .formula_parser import Unparsed, parse
from .formula_tree import CONSTANTS, Apply, Bit, Index, Name, Reduce, Tree, asked_for, names, parts
from .grammar import MAX_RANK
from .loader import source_of
from .model import Attribute, Case, Layout, Op, Tensor
from .new_roles import Roles, refuse_word
from .spans import Span
from .verbs import Refused

_OPTION = "--formula"

Rows = Sequence[tuple[str, dict[str, str]]]

_CASES = (("vectors", "[4, 16]", ""), ("odd", "[3, 5, 7]", ""))
_REDUCED_CASES = (("vectors", "[3, 5, 16]", ""), ("first_axis", "[7, 3]", "0"))
_LETTERS = "DPQSLMNVWXYZABCEFGHIJKORTU"  # names of symbols that are not wanted ones
_ROW_NAMES = {"MLFloat16": "half", "BFloat16": "bf16"}


@dataclass(frozen=True, slots=True)
class GivenFormula:
    name: str
    text: str


class FormulaEntry:
    """`forward` is the operator that it is the gradient of, where there is one. Refused where its formulas do
    not say enough."""

    def __init__(
        self,
        name: str,
        doc: str,
        formulas: Sequence[GivenFormula],
        attributes: Sequence[tuple[str, str]],
        forward: Op | None,
    ) -> None:
        self._name = name
        self._doc = doc
        self._formulas = formulas
        self._given = dict(attributes)
        self._forward = forward
        self._trees = _trees(formulas, forward)
        defined = [formula.name for formula in formulas]
        read = {one.name: None for tree in self._trees.values() for one in names(tree)}
        self._outputs = [one for one in defined if one not in read]
        of_forward = {attribute.name for attribute in forward.attributes} if forward else set()
        free = [one for one in read if one not in defined and one not in CONSTANTS]
        self._attributes = [one for one in free if one in self._given or one in of_forward]
        self._inputs = self._ordered([one for one in free if one not in self._attributes])
        self._roles = Roles(list(self._trees.values()), self._inputs)
        taken = {*self._inputs, *self._attributes, *defined}
        self._parameter = next(one for one in ("T", "T1", "T2", *_LETTERS) if one not in taken)
        self._refuse(attributes)

    def _refuse(self, attributes: Sequence[tuple[str, str]]) -> None:
        given = [name for name, _ in attributes]
        twice = [name for name in self._given if given.count(name) > 1]
        if twice:
            raise Refused(f"the attribute '{twice[0]}' is given twice")
        unread = [name for name in self._given if name not in self._attributes]
        if unread:
            raise Refused(f"no formula reads the attribute '{unread[0]}'")
        if not self._outputs:
            raise Refused("no formula is an output's: each is read by another")
        known = {one.name for one in self._tensors_of_forward()}
        for name in self._inputs:
            if name not in known:
                refuse_word(name)
        if not self._inputs:
            raise Refused("the formulas read no input; every name that is no attribute is one")

    def text(self, rows_alias: Callable[[Rows], str]) -> str:
        """The lines, not indented."""
        shapes = self._of_forward(self._forward) if self._forward else self._of_dims()
        lines = [f"- name: {self._name}", f"  doc: {spelling.text(self._doc or self._what_it_is())}"]
        if self._forward:
            lines.append(f"  gradient_of: {self._forward.name}")
        lines += ["  formulas:"]
        lines += [f"    {spelling.text(one.name)}: {spelling.expression(one.text)}" for one in self._formulas]
        lines += ["  backends: [cpu, cuda]", *shapes.lines()]
        rows = self._rows()
        alias = rows_alias(rows)
        if alias:
            lines.append(f"  rows: *{alias}")
        else:
            lines += ["  rows:", *[f"    {name}: {spelling.flow(types)}" for name, types in rows]]
        lines += ["  cases:", *[f"    - {case}" for case in shapes.cases]]
        return "".join([f"{line}\n" for line in lines])

    def _what_it_is(self) -> str:
        if self._forward:
            return f"Gradient of {self._forward.name}."
        return "; ".join([f"{one.name} = {' '.join(one.text.split())}" for one in self._formulas]) + "."

    # -- What is known without a forward operator ---

    def _of_dims(self) -> _Shapes:
        """All inputs have the same dims: any, or those of which formulas reduce or index one. Labels have the
        others, and tables that one alone."""
        roles, parameter = self._roles, self._parameter
        roles.refuse()
        taken = {*self._inputs, *self._attributes, *(one.name for one in self._formulas), *roles.dims}
        dims = roles.dims or (_free_names("C", taken) if roles.tables else [])
        lead = spelling.text(roles.lead())
        axis = "axis" if "axis" not in {*taken, *dims} else _free_names("along", {*taken, *dims})[0]
        if not dims:
            any_dims = next(iter(roles.bits.values()), "") or _free_names("D", taken)[0]
            whole, rest = [f"*{any_dims}"], [f"*{any_dims}"]
            symbols, attributes = {any_dims: spelling.flow({"length": f"[0, {MAX_RANK}]"})}, {}
        else:
            before, behind = _free_names("B F", {*taken, *dims})
            whole, rest = [f"*{before}", dims[0], f"*{behind}"], [f"*{before}", f"*{behind}"]
            lengths = {before: axis, behind: f"[0, {MAX_RANK - 1}]"}
            symbols = {name: spelling.flow({"length": length}) for name, length in lengths.items()}
            attributes = {axis: spelling.flow({"type": "int", "default": "-1", "axis_of": lead})}
        shapes = dict.fromkeys(self._inputs, whole)
        shapes |= dict.fromkeys(roles.of_rows, rest) if dims else {}
        shapes |= dict.fromkeys(roles.tables, dims)
        shapes |= {name: [f"ceil({bits} / 32)"] for name, bits in roles.bits.items()}
        inputs = {
            name: {"type": roles.type_of(name) or parameter, "shape": spelling.shape(shapes[name])}
            | ({"optional": "true"} if name in roles.asked else {})
            for name in self._inputs
        }
        outputs = {
            name: {
                "type": parameter,
                **({"like": lead} if self._is_whole(name) else {"shape": spelling.shape(rest)}),
            }
            for name in self._outputs
        }
        attributes |= {name: _given_attribute(name, self._given[name]) for name in self._attributes}
        cases = [
            spelling.flow({"name": name, lead: given} | ({axis: number} if number else {}))
            for name, given, number in (_REDUCED_CASES if dims else _CASES)
        ]
        return _Shapes(inputs, outputs, symbols, attributes, cases)

    def _is_whole(self, output: str) -> bool:
        """It has all dims, as its formula reads something that is not reduced."""
        known: dict[str, bool] = {}
        for name, tree in self._trees.items():
            known[name] = any(self._reads_whole(tree, known))
        return known[output]

    def _reads_whole(self, tree: Tree, known: dict[str, bool]) -> Iterator[bool]:
        if isinstance(tree, Name):
            yield self._roles.is_whole(tree.name) or known.get(tree.name, False)
        elif isinstance(tree, Index | Bit):
            yield True
        elif isinstance(tree, Apply):
            for argument in tree.arguments:
                yield from self._reads_whole(argument, known)

    def _rows(self) -> Rows:
        """Every floating type; of a gradient what the forward operator has."""
        if not self._forward:
            bound = [(one.value, {self._parameter: one.value}) for one in FLOATING_TYPES]
            return [(_ROW_NAMES.get(name, name), types) for name, types in bound]
        kept = {tensor.type for tensor in self._tensors_of_forward()}
        rows: dict[tuple[str, ...], tuple[str, dict[str, str]]] = {}
        for row in self._forward.rows:
            types = {parameter: of.value for parameter, of in row.types if parameter in kept}
            rows.setdefault(tuple(types.values()), (row.name, types))
        return list(rows.values())

    # -- What the forward operator says ---

    def _tensor(self, name: str) -> Tensor | None:
        """The forward operator's tensor that one is or is the gradient of."""
        forward = self._forward
        if not forward:
            return None
        tensors = {tensor.name: tensor for tensor in (*forward.outputs, *forward.inputs)}
        if name in tensors:
            return tensors[name]
        meant = (name[1:], name[1:2].lower() + name[2:]) if name.startswith("d") else ()
        return next((tensors[one] for one in meant if one in tensors), None)

    def _tensors_of_forward(self) -> list[Tensor]:
        found = [self._tensor(name) for name in (*self._inputs, *self._outputs)]
        return [tensor for tensor in found if tensor]

    def _ordered(self, inputs: list[str]) -> list[str]:
        """A gradient's incoming gradients come first."""
        if not self._forward:
            return inputs
        outputs = {tensor.name for tensor in self._forward.outputs}
        tensors = {name: self._tensor(name) for name in inputs}

        def is_gradient(name: str) -> bool:
            tensor = tensors[name]
            return tensor is not None and tensor.name in outputs and tensor.name != name

        return sorted(inputs, key=lambda name: not is_gradient(name))

    def _of_forward(self, forward: Op) -> _Shapes:
        tensors = {name: self._known_tensor(name, forward) for name in self._inputs}
        shaped = {name: self._known_tensor(name, forward) for name in self._outputs}
        bound = frozenset().union(*[tensor.shape.always for tensor in tensors.values()])
        unbound = [tensor for tensor in shaped.values() if tensor.shape.symbols - bound]
        tensors |= {tensor.name: tensor for tensor in unbound}
        inputs = {name: _entries(name, tensor, ()) for name, tensor in tensors.items()}
        for tensor in unbound:  # it tells the shape of its gradient
            inputs[tensor.name]["shape_only"] = "true"
        asked = [one.name for tree in self._trees.values() for one in asked_for(tree)]
        for name in inputs.keys() & asked:
            inputs[name]["optional"] = "true"
        outputs = {name: _entries(name, tensor, inputs) for name, tensor in shaped.items()}
        used = frozenset().union(*[tensor.shape.symbols for tensor in tensors.values()])
        symbols = {one.name: spelling.symbol(one) for one in forward.symbols if one.name in used}
        attributes = self._attributes_of(forward, used, tensors)
        return _Shapes(
            inputs,
            outputs,
            {name: text for name, text in symbols.items() if text != "{}"},
            attributes,
            [_case(case, tensors, attributes) for case in forward.cases[:2]],
        )

    def _known_tensor(self, name: str, forward: Op) -> Tensor:
        tensor = self._tensor(name)
        if not tensor:
            raise Refused(
                f"'{name}' is no tensor or attribute of {forward.name}, nor called like the gradient of one: "
                f"dX is that of X. By its name {self._name} is the gradient of {forward.name}"
            )
        return tensor

    def _attributes_of(
        self, forward: Op, symbols: frozenset[str], tensors: dict[str, Tensor]
    ) -> dict[str, str]:
        """The forward operator's that formulas read or shapes need, and those that are given besides."""
        by_name = {attribute.name: attribute for attribute in forward.attributes}
        needed = [
            name
            for one in forward.symbols
            if one.name in symbols
            for name in (one.length_axis, one.multiple_of, one.given_by)
        ]
        needed += [
            one.length_if.attribute for one in forward.symbols if one.name in symbols and one.length_if
        ]
        conditions = [tensor.shape.condition for tensor in tensors.values()]
        needed += [condition.attribute for condition in conditions if condition]
        wanted = {*needed, *self._attributes}
        of_forward = {
            name: spelling.attribute(self._with_axis(one, tensors))
            for name, one in by_name.items()
            if name in wanted
        }
        return of_forward | {
            name: _given_attribute(name, self._given[name])
            for name in self._attributes
            if name not in by_name
        }

    def _with_axis(self, attribute: Attribute, tensors: dict[str, Tensor]) -> Attribute:
        """An axis of one of the inputs, where the forward operator's is of a tensor that is none of them."""
        of = self._tensor(attribute.axis_of)
        alike = [name for name, one in tensors.items() if of and one.shape == of.shape]
        if not attribute.axis_of or attribute.axis_of in tensors or not alike:
            return attribute
        return replace(attribute, axis_of=alike[0])


@dataclass(frozen=True, slots=True)
class _Shapes:
    """What an entry says of tensors, by name, and its cases."""

    inputs: dict[str, dict[str, str]]
    outputs: dict[str, dict[str, str]]
    symbols: dict[str, str]
    attributes: dict[str, str]
    cases: list[str]

    def lines(self) -> Iterator[str]:
        for key, tensors in (("inputs", self.inputs), ("outputs", self.outputs)):
            yield f"  {key}:"
            for name, entries in tensors.items():
                yield f"    {spelling.text(name)}: {spelling.flow(entries)}"
        for key, entries in (("dims", self.symbols), ("attributes", self.attributes)):
            if entries:
                yield f"  {key}:"
                yield from (f"    {spelling.text(name)}: {text}" for name, text in entries.items())


def _trees(formulas: Sequence[GivenFormula], forward: Op | None) -> dict[str, Tree]:
    """Read twice: what one formula reduces over is a dim in all of them, and `max(x, A)` may be a maximum of
    two values or one over a dim."""
    known = forward.symbols if forward else ()
    dims = {name for symbol in known for name in (symbol.name, *symbol.split)}
    enums = {one.name for one in forward.attributes if one.choices} if forward else set()
    for formula in formulas:
        for part in parts(_parsed(formula, dims, enums)):
            dims |= {dim.name for dim in part.dims} if isinstance(part, Reduce) else set()
    return {formula.name: _parsed(formula, dims, enums) for formula in formulas}


def _parsed(formula: GivenFormula, dims: set[str], enums: set[str]) -> Tree:
    try:
        return parse(formula.text, dims, enums)
    except Unparsed as fault:
        source = source_of(_OPTION, f"{formula.name}: {formula.text}")
        begin = len(formula.name) + 2
        span = Span(1, begin + fault.start + 1, fault.end - fault.start)
        shown = format_text([fault.diagnose(span)], source).rsplit("\n", 2)[0]
        raise Refused(f"a formula does not read\n{shown}") from None


def _entries(name: str, tensor: Tensor, inputs: Collection[str]) -> dict[str, str]:
    """Of the forward operator's tensor, or of its gradient; it may be like one of the inputs."""
    shape = spelling.shape(dim.text for dim in tensor.shape)
    source = {"like": tensor.name} if tensor.name in inputs else {"shape": shape}
    gradient = {"gradient_of": tensor.name} if tensor.name != name else {}
    return {"type": tensor.type, **source, **gradient}


def _case(case: Case, tensors: dict[str, Tensor], attributes: Collection[str]) -> str:
    """One of the forward operator's, with the shapes of all inputs."""
    shapes = dict(case.all_shapes)
    entries = {"name": case.name}
    entries |= {
        name: str(list(shapes[tensor.name])) for name, tensor in tensors.items() if tensor.name in shapes
    }
    entries |= {key: spelling.value(of) for key, of in case.attributes if key in attributes}
    if case.layout is not Layout.CONTIGUOUS:
        entries["layout"] = case.layout.value
    return spelling.flow(entries)


def _free_names(wanted: str, taken: set[str]) -> list[str]:
    """The wanted names of symbols, or others where they are taken."""
    others = iter([one for one in _LETTERS if one not in {*taken, *wanted.split()}])
    return [name if name not in taken else next(others) for name in wanted.split()]


def _given_attribute(name: str, default: str) -> str:
    infinite = re.fullmatch(r"([+-]?)\.?inf(?:inity)?", default, re.IGNORECASE)
    if infinite:
        number, bound = ("-.inf", "min") if infinite[1] == "-" else (".inf", "max")
        return spelling.flow({"type": "float", "default": number, bound: number})
    if default in CONSTANTS:
        default = repr(CONSTANTS[default])
    if not scalars.is_number(default) and scalars.is_real(default):
        default = scalars.plain_decimal(default)
    if default in ("true", "false"):
        kind = "bool"
    elif scalars.is_number(default):
        kind = "float" if "." in default else "int"
    else:
        raise Refused(
            f"attribute '{name}' has the default '{default}', which is no number and no truth value: "
            "formulas read no other"
        )
    return spelling.flow({"type": kind, "default": default})
