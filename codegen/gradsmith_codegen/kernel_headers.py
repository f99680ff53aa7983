"""What each handwritten kernel takes, read from its family's `kernels.h`, where alone it is written.

Read is the form that these headers have: a kernel is a struct with the members Attributes, Inputs and
Outputs, each a struct of fields or another name of such a struct. A struct may derive from another of its
header. What is written in another form is known to the compiler alone (None). The constant kShapes says what
shapes the arguments must have, or which kernel's they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import grammar
from .grammar import family
from .model import Shape, ShapeRule

_PACKAGE = Path(__file__).resolve().parent
# In the package where that is installed, else beside it: an archive of the sources holds the headers once.
_PLACES = (_PACKAGE / "runtime", _PACKAGE.parents[1] / "runtime")
RUNTIME = next((place for place in _PLACES if place.exists()), _PLACES[0])
HEADER = "kernels.h"

# The types of attributes' fields, as the schema calls them; an enum is called by its name.
_ATTRIBUTE_TYPES = {"std::int64_t": "int", "int64_t": "int", "double": "float", "IntList": "ints"}
_REQUIRED = frozenset(("RequiredInput", "RequiredOutput"))  # core/kernel_arguments.h
_OPTIONAL = frozenset(("const ConstTensorRef*", "const TensorRef*"))

_MEMBERS = ("Attributes", "Inputs", "Outputs")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"\bstruct (\w+)(?: final)? \{")
_DERIVED = re.compile(r"\bstruct (\w+)(?: final)? : (?:public )?(?:(\w+)::)?(\w+) \{")
_ALIAS = re.compile(r"\busing (\w+) = ([\w:]+);")
_FIELD = re.compile(r"\s*([\w:]+(?:\s+[\w:]+)*[*&]?)\s+(\w+)\s*(?:=.*|\{.*\})?", re.DOTALL)
_SHAPES = re.compile(r'\bkShapes\s*=\s*(?:(\w+)::kShapes|((?:"[^"]*"\s*)+));')
_SHAPE = re.compile(r"(\w+) \[([^\[\]]*)\](?:, |$)")
_COMPUTED = re.compile(r"(\w+) = ([\w:]+\([^()]*\))(?:, |$)")
_RUN = re.compile(r"\b(Run\w+)\(")
_RULE = re.compile(r"\bResult<Dims>\s+(\w+)\((?:const (?:\w+::)?(\w+)&)?")

Fields = Mapping[str, str]  # C++ types by name


@dataclass(frozen=True, slots=True)
class Shapes:
    """What kShapes says: "X [N, C, *D], Y [N, C, *O], O = conv::OutputSpatial(D, K)"."""

    text: str
    tensors: Mapping[str, Shape]  # of inputs and outputs, by their names
    rules: Mapping[str, ShapeRule]  # by the names of symbols
    unread: str = ""  # where the text is in another form: what begins with the first such place


@dataclass(frozen=True, slots=True)
class Kernel:
    """What an operator may bind."""

    attributes: Fields | None  # types as the schema calls them: int, float, ints, AutoPad
    inputs: Mapping[str, bool] | None  # whether each must be there
    outputs: Mapping[str, bool] | None
    runs: frozenset[str]  # RunCpu, RunCuda
    shapes: Shapes | None = None


@dataclass(frozen=True)
class Family:
    header: Path
    kernels: Mapping[str, Kernel]  # by the names that ops.yaml has: conv::ConvGrad
    rules: Mapping[str, Fields | None]  # the attributes that each takes, by names such as conv::OutputSpatial


class KernelHeaders:
    """The families below some folders, each read when it is first asked for."""

    def __init__(self, folders: Sequence[Path] = (RUNTIME,)) -> None:
        self._folders = folders
        self._families: dict[str, Family | None] = {}

    @cached_property
    def headers(self) -> dict[str, Path]:
        """Of each family; of two of the same name the first counts."""
        found = [path for folder in self._folders for path in sorted(folder.glob(f"*/{HEADER}"))]
        return {path.parent.name: path for path in reversed(found)}

    def family_of(self, function: str) -> Family | None:
        name = family(function)
        if name not in self._families:
            header = self.headers.get(name)
            self._families[name] = read_header(name, header) if header else None
        return self._families[name]

    def kernel(self, name: str) -> Kernel | None:
        found = self.family_of(name)
        return found.kernels.get(name) if found else None

    def kernel_names(self) -> list[str]:
        """Those of every family."""
        families = [self.family_of(name) for name in sorted(self.headers)]
        return [kernel for one in families if one for kernel in one.kernels]


def read_header(name: str, header: Path) -> Family:
    text = _with_bases(name, _COMMENT.sub("", header.read_text(encoding="utf-8", errors="replace")))
    structs = dict(_structs(text))
    kernels = {
        f"{name}::{struct}": _kernel(name, body, structs)
        for struct, body in structs.items()
        if all(re.search(rf"\b(?:struct|using) {member}\b", body) for member in _MEMBERS)
    }
    rules = {f"{name}::{rule}": _attributes(structs.get(taken)) for rule, taken in _RULE.findall(text)}
    return Family(header, kernels, rules)


def _attributes(body: str | None) -> Fields | None:
    """Fields with types as the schema calls them."""
    fields = _fields(body)
    return fields and {field: _ATTRIBUTE_TYPES.get(kind, kind) for field, kind in fields.items()}


def _with_bases(name: str, text: str) -> str:
    """The text in which structs hold what the header's structs have that they derive from."""
    start = 0
    while match := _DERIVED.search(text, start):
        base = dict(_structs(text)).get(match[3]) if match[2] in (None, name) else None
        if base is not None:
            text = f"{text[: match.start()]}struct {match[1]} {{{base}{text[match.end() :]}"
        start = match.start() + 1
    return text


def _kernel(name: str, body: str, structs: Mapping[str, str]) -> Kernel:
    return Kernel(
        _attributes(_member(name, "Attributes", body, structs)),
        _arguments(_fields(_member(name, "Inputs", body, structs))),
        _arguments(_fields(_member(name, "Outputs", body, structs))),
        frozenset(_RUN.findall(body)),
        _shapes(body, structs),
    )


def _shapes(body: str, structs: Mapping[str, str]) -> Shapes | None:
    # A kernel's own come after those of what it derives from.
    match = next(reversed(list(_SHAPES.finditer(body))), None)
    if match and match[1]:
        others = {name: text for name, text in structs.items() if text is not body}
        return _shapes(others[match[1]], others) if match[1] in others else None
    return read_shapes("".join(re.findall(r'"([^"]*)"', match[2]))) if match else None


def _shape(text: str) -> Shape | None:
    return grammar.shape(tuple(entry.strip() for entry in text.split(","))) if text else Shape()


def read_shapes(text: str) -> Shapes:
    tensors: dict[str, Shape] = {}
    rules: dict[str, ShapeRule] = {}
    start = 0
    while start < len(text):
        given, computed = _SHAPE.match(text, start), _COMPUTED.match(text, start)
        shape = _shape(given[2]) if given else None
        rule = grammar.shape_rule(computed[2]) if computed else None
        if given and shape is not None and len(shape.lists) <= 1:
            tensors[given[1]], start = shape, given.end()
        elif computed and rule:
            rules[computed[1]], start = rule, computed.end()
        else:
            break
    return Shapes(text, tensors, rules, text[start:])


def _member(name: str, member: str, body: str, structs: Mapping[str, str]) -> str | None:
    """The body of a kernel's struct of that name, its own or one that it gives the name to."""
    own = dict(_structs(body))
    target = dict(_ALIAS.findall(body)).get(member)
    if target is None:
        return own.get(member)
    *kernel, struct = target.removeprefix(f"{name}::").split("::")
    if not kernel:
        return structs.get(struct)
    others = {other: text for other, text in structs.items() if other != kernel[0]}
    return _member(name, struct, structs[kernel[0]], others) if kernel[0] in structs else None


def _structs(text: str) -> Iterator[tuple[str, str]]:
    """The structs that are not in another, each with what its braces hold."""
    end = 0
    for match in _STRUCT.finditer(text):
        if match.start() >= end:
            end = _closing(text, match.end())
            yield match[1], text[match.end() : end]


def _closing(text: str, start: int) -> int:
    """Where the braces end that are open at `start`."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(text)


def _fields(body: str | None) -> Fields | None:
    """None where one of the declarations is in no form that is read."""
    if body is None:
        return None
    *declarations, rest = body.split(";")
    found = [_FIELD.fullmatch(declaration) for declaration in declarations]
    if rest.strip() or not all(found):
        return None
    return {match[2]: " ".join(match[1].split()).replace("gradsmith::", "") for match in found if match}


def _arguments(fields: Fields | None) -> Mapping[str, bool] | None:
    if fields is None or not _REQUIRED.union(_OPTIONAL).issuperset(fields.values()):
        return None
    return {name: kind in _REQUIRED for name, kind in fields.items()}
