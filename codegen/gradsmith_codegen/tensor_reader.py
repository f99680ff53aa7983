"""The tensors of an operator's entry, from nodes to the model."""

from __future__ import annotations

from . import faults, grammar, vocabulary
from .data_types import TYPE_ALIASES
from .entries import Entries, Entry
from .loader import Node, Scalar, Sequence
from .model import Tensor
from .shapes import Dim, Shape
from .spans import Spanned
from .values import ValueReader, quick_text
from .vocabulary import Keys

PlacedShape = tuple[Shape, list[Node]]  # and the nodes of its dims

_NO_SHAPE: PlacedShape = (Shape(), [])


class TensorReader(ValueReader):
    """Reads inputs and outputs, and their shapes."""

    def inputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once("inputs", node, self._tensors, owner, "input", vocabulary.INPUT)

    def outputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once("outputs", node, self._tensors, owner, "output", vocabulary.OUTPUT)

    def _tensors(self, node: Node, owner: str, role: str, keys: Keys) -> tuple[Tensor, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'{role}s' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, role))
        return tuple([self._tensor(key, value, role, keys) for key, value in entries.values()])

    def _tensor(self, key: Scalar, node: Node, role: str, keys: Keys) -> Tensor:
        owner = f"{role} '{key.value}'"
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self._tensor_keys(entries, owner, key, keys)
        type_name = self.word_at("type", entries, owner)
        alias = TYPE_ALIASES.get(type_name)
        shape, dim_places = self._shape(entries["shape"][1], owner) if "shape" in entries else _NO_SHAPE
        gradient_of = self._gradient_of(entries, owner, role) if "gradient_of" in entries else {}
        return Tensor(
            name=key.value,
            type=alias.value if alias else type_name,
            shape=shape,
            dim_places=dim_places,
            origin=Entry(key, entries),
            doc=self.doc(entries),
            optional=self._flag("optional", entries, owner),
            like=self.word_at("like", entries, owner),
            gradient_of=tuple(gradient_of),
            gradient_places=list(gradient_of.values()),
            in_place_of=self.word_at("in_place_of", entries, owner),
            shape_only=self._flag("shape_only", entries, owner),
            shape_of=self.word_at("shape_of", entries, owner, "the name of an output"),
            list=self._list(entries, owner),
            may_be_on_host=self._flag("may_be_on_host", entries, owner),
            outside=self.word_at("outside", entries, owner, "'ignored' or 'refused'"),
        )

    def _flag(self, key: str, entries: Entries, owner: str) -> bool:
        return key in entries and self.boolean(entries[key][1], f"'{key}' of {owner}")

    def _gradient_of(self, entries: Entries, owner: str, role: str) -> dict[str, Node]:
        """The names, and where each stands. Inputs that are added to each other share a gradient."""
        node, what = entries["gradient_of"][1], f"'gradient_of' of {owner}"
        if role == "output" and type(node) is Sequence:
            if not node.items:
                self.report(faults.nothing_there(node.span, what, "name"))
            return self.once("gradient_of", node, self.words, what)
        expected = "a name" if role == "input" else "a name or a list of names"
        name = self.word_at("gradient_of", entries, owner, expected)
        return {name: node} if name else {}

    def _list(self, entries: Entries, owner: str) -> str:
        """What the list's length is called."""
        expected = "a name for the list's length"
        name = self.word_at("list", entries, owner, expected)
        if name and not grammar.is_identifier(name):
            self.report(
                faults.wrong_kind(entries["list"][1].span, f"'list' of {owner}", expected, f"'{name}'")
            )
        return name

    def _tensor_keys(self, entries: Entries, owner: str, place: Spanned, keys: Keys) -> None:
        absent = self.known_keys(entries, owner, place, keys)
        sources: list[str] = [key for key in ("shape_of", "like", "shape") if key in entries]
        for key in sources[1:]:
            remedy = f"'{sources[0]}' already gives the shape"
            self.report(faults.key_not_for_kind(entries[key][0].span, key, owner, remedy))
        if not sources and not absent & {"shape", "like"} and any(key in keys for key in entries):
            self.report(faults.missing_key(place.span, ["shape"], owner))
        for key in ("shape_only", "gradient_of", "list", "may_be_on_host") if "shape_of" in entries else ():
            if key in entries:
                remedy = "an input with 'shape_of' holds dims, which are read on the host and are no gradient"
                self.report(faults.key_not_for_kind(entries[key][0].span, key, owner, remedy))

    def _shape(self, node: Node, owner: str) -> PlacedShape:
        return self.once("shape", node, self._read_shape, owner)

    def _read_shape(self, node: Node, owner: str) -> PlacedShape:
        """A dim with a fault is left out."""
        items = self.items(node, f"'shape' of {owner}")
        shape = grammar.shape(tuple(map(quick_text, items)))
        if shape is None:
            dims = [self._dim(item, owner) for item in items]
            shape = Shape([dim for dim in dims if dim])
        return shape, items

    def _dim(self, node: Node, owner: str) -> Dim | None:
        if type(node) is Scalar and node.value.isdecimal():
            size = self.integer(node, f"a size in the shape of {owner}")
            text = str(size) if size is not None else ""
        else:
            text = self.text(node, f"an entry in the shape of {owner}", "a symbol or a number")
        if not text:
            return None
        dim = grammar.dim(text)
        if not dim:
            self.report(faults.bad_dim(node.span, text))
        return dim
