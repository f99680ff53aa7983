"""What `ops.yaml` says, as frozen dataclasses.

The reader builds these from the YAML nodes, the checks look at them, the plan and the templates read them.
Every noun knows the text it came from, so that any later finding can point at it. Nothing here parses, prints
or knows of C++.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from . import formula_tree
from .data_types import ELEMENT_TYPES, DataType
from .formula_tree import Tree
from .shapes import Condition, Dim, Shape, ShapeRule
from .source_files import SourceFiles
from .spans import Located, Origin, Passage, Span, Spanned
from .text import NO_TEXT, Text


class Backend(Enum):
    CPU = "cpu"
    CUDA = "cuda"


class Repeatable(Enum):
    """Whether two calls of a row give the same bits."""

    ALWAYS = "always"
    POLICY = "policy"  # where the context is deterministic
    NEVER = "never"  # a deterministic context refuses the row


class Layout(Enum):
    """How a case lays its tensors out in memory."""

    CONTIGUOUS = "contiguous"
    CHANNELS_LAST = "channels_last"
    STRIDED = "strided"  # gaps between the elements of every dimension
    BROADCAST = "broadcast"  # the incoming gradient has zero strides


# What a lookup makes of an integer that is no place of the table.
IGNORED, REFUSED = "ignored", "refused"


@dataclass(frozen=True, slots=True)
class Tensor(Located):
    """An input or an output. `shape` of one declared with `like` is that of the tensor it is like; of one
    declared with `shape_of` that of the output whose dims it holds."""

    name: str
    type: str  # a type parameter, or the name of a DataType
    shape: Shape
    dim_places: Sequence[Spanned] = field(compare=False, repr=False)  # one for each dim
    origin: Origin = field(compare=False, repr=False)
    doc: Text = NO_TEXT
    optional: bool = False
    like: str = ""
    gradient_of: tuple[str, ...] = ()  # the forward operator's tensor, or the inputs that share it
    gradient_places: Sequence[Spanned] = field(default=(), compare=False, repr=False)  # one for each of these
    in_place_of: str = ""
    shape_only: bool = False  # an input whose data are never read
    shape_of: str = ""  # the output whose dims an input holds, as integers on the host
    list: str = ""  # what the length is called of a list of tensors; empty of one tensor
    may_be_on_host: bool = False  # an input, a number, that may lie on the host on every backend
    outside: str = ""  # of an input of integers: what a lookup makes of one that is no place of the table
    may_lack_dims: bool = False  # an input of formulas, some of whose dims are not there in every call

    @property
    def is_mask(self) -> bool:
        """Its elements are truth values."""
        return bool(self.type == DataType.BOOL.value)

    @property
    def refuses_outside(self) -> bool:
        """An integer by which nothing can be looked up is an error."""
        return self.outside.startswith(REFUSED)

    @property
    def never_refused(self) -> str:
        """The attribute with the one integer that is no error, be it a place or not; empty where there is
        none."""
        return self.outside.removeprefix(f"{REFUSED} unless ") if " " in self.outside else ""

    @property
    def tells_dims(self) -> bool:
        """Of an input: each call has it, and it has all its dims."""
        return not self.optional and not self.may_lack_dims

    @property
    def shape_source(self) -> str:
        """The tensor whose shape stands for its own; empty where it has one."""
        return self.like or self.shape_of

    @property
    def shape_text(self) -> str:
        return self.shape.text

    @property
    def own_dims(self) -> Iterable[tuple[Dim, Spanned]]:
        """What its own entry says of its shape, and where each of it stands."""
        return () if self.shape_source else zip(self.shape, self.dim_places, strict=True)

    @property
    def gradients(self) -> Iterable[tuple[str, Span]]:
        """The tensors of the forward operator that it is the gradient of, and where each is named."""
        places = [place.span for place in self.gradient_places]
        return zip(self.gradient_of, places, strict=True)

    def shaped_like(self, other: Tensor) -> Tensor:
        return Tensor(
            self.name, self.type, other.shape, other.dim_places, self.origin, self.doc, self.optional,
            self.like, self.gradient_of, self.gradient_places, self.in_place_of, self.shape_only,
            self.shape_of, self.list, self.may_be_on_host, self.outside,
        )  # fmt: skip


OUTPUTS = "outputs"  # in the place of an attribute that gives dims: the outputs that the caller passes


@dataclass(frozen=True, slots=True)
class LengthIf:
    """How many dims a list symbol has where a bool attribute is true."""

    attribute: str
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Symbol(Located):
    """A name that shapes share. Scalars need no entry under `dims`; lists do."""

    name: str
    is_list: bool
    origin: Origin = field(compare=False, repr=False)
    min_length: int = 0
    max_length: int = 8
    length_if: LengthIf | None = None  # in the place of these, where its attribute is true
    length_of: str = ""  # the list symbol whose length this one has
    length_axis: str = ""  # the attribute, an axis, before which its dims stand
    broadcast_to: str = ""  # the list symbol that its dims broadcast to
    given_by: str = ""  # the ints attribute that gives its dims where it has any, a scalar's int, or OUTPUTS
    multiple_of: str = ""  # the int attribute that a scalar must be a multiple of
    split: tuple[str, ...] = ()  # the two dims that a scalar is to formulas, the first of `multiple_of`
    rule: ShapeRule | None = None
    doc: Text = NO_TEXT
    of_each: bool = False  # only lists of tensors have it: the tensors at each place have one of their own

    def lengths(self, condition: bool) -> tuple[int, int]:
        """How many dims a list has at least and at most where the attribute of `length_if` has this value."""
        given = self.length_if if condition else None
        return (given.minimum, given.maximum) if given else (self.min_length, self.max_length)

    def fixed_length(self, condition: bool) -> int | None:
        """How many dims a list then has, where there is no choice."""
        least, most = self.lengths(condition)
        return least if least == most else None

    @property
    def all_lengths(self) -> tuple[int, int]:
        """How many dims a list has at least and at most whatever attributes are."""
        either = [self.lengths(condition) for condition in (False, True)]
        return min(least for least, _ in either), max(most for _, most in either)


class AttributeKind(Enum):
    INT = "int"
    FLOAT = "float"
    INTS = "ints"
    ENUM = "enum"
    BOOL = "bool"
    FLOATS = "floats"
    STRING = "string"

    @property
    def is_list(self) -> bool:
        return self in (AttributeKind.INTS, AttributeKind.FLOATS)

    @property
    def is_real(self) -> bool:
        """Its numbers are doubles."""
        return self in (AttributeKind.FLOAT, AttributeKind.FLOATS)


@dataclass(frozen=True, slots=True)
class LengthRule:
    """`2 * D`: a list attribute that is not empty has `factor` entries for each dim of `symbol`."""

    factor: int
    symbol: str


AttributeValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Attribute(Located):
    name: str
    kind: AttributeKind
    default: AttributeValue | None  # None where it is optional
    origin: Origin = field(compare=False, repr=False)
    minimum: float | None = None  # None: any finite number
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    enum: str = ""  # the C++ enum, for kind ENUM
    length: LengthRule | None = None
    axis_of: str = ""  # the input that it is an axis of
    doc: Text = NO_TEXT

    @property
    def is_optional(self) -> bool:
        """It has no default, and its absence means something."""
        return self.default is None


@dataclass(frozen=True, slots=True)
class Row(Located):
    """A named type combination: one type for each type parameter, in the op's order."""

    name: str
    types: tuple[tuple[str, DataType], ...]
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Case(Located):
    """A test case: the shapes of some inputs and the attributes that differ from their defaults."""

    name: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    attributes: tuple[tuple[str, AttributeValue], ...]
    layout: Layout
    origin: Origin = field(compare=False, repr=False)
    # Shapes of every input and output, worked out from the above; filled in by the checks' shape evaluation
    # (cases.py), empty where that was not possible.
    all_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Formula(Located):
    """What an output is, or what a name stands for in the formulas after it; or how many operations there
    are."""

    name: str
    text: Text
    tree: Tree
    passage: Passage = field(compare=False, repr=False)
    origin: Origin = field(compare=False, repr=False)

    def place(self, tree: Tree) -> Span:
        """Where a part of its tree stands."""
        return self.passage.part(tree.start, tree.end)


@dataclass(frozen=True, slots=True)
class Seam(Located):
    """A place where a formula chooses between sides, or gives other than its functions would, and what it
    gives there. Where all elements of the inputs are so, the outputs' are; a sum is one of such terms."""

    places: tuple[Formula, ...]  # by inputs, in numbers, attributes and the inputs that are not among them
    gives: tuple[Formula, ...]  # by outputs, in inputs and attributes
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Revision(Located):
    """A version of an operator, and what it brought that calls of those before it need not know."""

    version: int
    change: Text
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SpecialValue(Located):
    """What comes of NaN, infinities, ties or empty rows, and the test that holds it."""

    what: Text
    test: Text
    origin: Origin = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Op(Located):
    name: str
    doc: Text
    origin: Origin = field(compare=False, repr=False)
    line: int  # of the op's entry: where its `- ` stands
    kernel: str  # "conv::ConvGrad"; empty where there are formulas instead
    backends: tuple[Backend, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    symbols: tuple[Symbol, ...]  # in order of first use in the shapes of inputs, then outputs
    attributes: tuple[Attribute, ...]
    rows: tuple[Row, ...]
    cases: tuple[Case, ...]
    gradient_of: str = ""
    since_version: int = 0  # 0: the schema's
    repeatable: tuple[tuple[Backend, Repeatable], ...] = ()  # as the entry says
    formulas: tuple[Formula, ...] = ()  # in the order in which they are computed
    operations: Formula | None = None  # how many operations of arithmetic a call makes
    seams: tuple[Seam, ...] = ()
    history: tuple[Revision, ...] = ()  # the versions that there were, from the first on; none where untold
    special_values: tuple[SpecialValue, ...] = ()  # what formulas alone do not show
    # What the kernel's header says of it, by constant (kShapes, ...); filled in by the checks, which compare.
    kernel_says: tuple[tuple[str, str], ...] = ()
    runs_anywhere: bool = False  # whether the kernel has one function for all backends; likewise

    @property
    def type_parameters(self) -> tuple[str, ...]:
        """In order of first use by inputs, then outputs."""
        types = dict.fromkeys([tensor.type for tensor in self.inputs + self.outputs])
        return tuple([name for name in types if name not in ELEMENT_TYPES])

    @property
    def length_condition(self) -> str:
        """The bool attribute on which lengths of list symbols hang; empty where there is none."""
        return next((one.length_if.attribute for one in self.symbols if one.length_if), "")

    @property
    def condition(self) -> Condition | None:
        """On which it hangs whether dims are there; None where none do."""
        conditions = (tensor.shape.condition for tensor in self.inputs + self.outputs)
        return next((one for one in conditions if one), None)

    @property
    def has_lists(self) -> bool:
        return any(tensor.list for tensor in self.inputs + self.outputs)

    @property
    def scalars(self) -> list[Attribute]:
        """The attributes that formulas read."""
        read = {name.name for formula in self.formulas for name in formula_tree.names(formula.tree)}
        return [attribute for attribute in self.attributes if attribute.name in read]

    @property
    def read_inputs(self) -> list[Tensor]:
        """The inputs whose data are read."""
        return [tensor for tensor in self.inputs if not tensor.shape_only]

    @property
    def masks(self) -> list[Tensor]:
        """The inputs that formulas read as truth values."""
        return [tensor for tensor in self.read_inputs if tensor.is_mask]

    @property
    def bits(self) -> list[Tensor]:
        """The inputs of words of which formulas read bits."""
        trees = [part for one in self.formulas for part in formula_tree.parts(one.tree)]
        words = {part.words.name for part in trees if isinstance(part, formula_tree.Bit)}
        return [tensor for tensor in self.read_inputs if tensor.name in words]

    @property
    def givens(self) -> list[str]:
        """The inputs and attributes of which formulas ask whether they are there."""
        asked = [name.name for formula in self.formulas for name in formula_tree.asked_for(formula.tree)]
        return list(dict.fromkeys(asked))

    def types_of(self, tensor: Tensor) -> list[DataType]:
        """The element types that the rows give a tensor."""
        if tensor.type in ELEMENT_TYPES:
            return [one for one in DataType if tensor.type in (one.value, one.alias)]
        return list(dict.fromkeys([dict(row.types)[tensor.type] for row in self.rows]))

    def has_types_of(self, tensor: Tensor) -> bool:
        """Whether every row says what its type is; another rule blames a type that is unknown."""
        return tensor.type in ELEMENT_TYPES or all(tensor.type in dict(row.types) for row in self.rows)

    def is_whole(self, tensor: Tensor) -> bool:
        """Its elements are integers or truth values in every row."""
        types = self.types_of(tensor) if self.has_types_of(tensor) else []
        return bool(types) and not any(one.is_floating for one in types)

    @property
    def has_sums(self) -> bool:
        """An output is summed over what it lacks of the inputs' dims."""
        return any(isinstance(formula.tree, formula_tree.Reduce) for formula in self.formulas)

    def repeatable_on(self, backend: Backend) -> Repeatable:
        """What is made of formulas adds up in an order that the dims and strides of a call decide alone."""
        unsaid = Repeatable.ALWAYS if self.formulas else Repeatable.POLICY
        return dict(self.repeatable).get(backend, unsaid)

    @property
    def kernel_name(self) -> str:
        """What computes it, for messages and listings."""
        return self.kernel or f"formulas::{self.name}"

    def checked(
        self, cases: tuple[Case, ...], kernel_says: tuple[tuple[str, str], ...], runs_anywhere: bool
    ) -> Op:
        """With what the checks have worked out."""
        return Op(
            self.name, self.doc, self.origin, self.line, self.kernel, self.backends, self.inputs,
            self.outputs, self.symbols, self.attributes, self.rows, cases, self.gradient_of,
            self.since_version, self.repeatable, self.formulas, self.operations, self.seams, self.history,
            self.special_values, kernel_says, runs_anywhere,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schema:
    files: SourceFiles
    version: int
    domain: str
    since_version: int
    ops: tuple[Op, ...] = field(default=())
    all_ops: tuple[Op, ...] = field(default=())  # with those that were not selected; empty where all were

    @property
    def file(self) -> Text:
        """The name of its own file."""
        return self.files.own.name
