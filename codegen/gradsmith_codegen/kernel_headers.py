"""What each handwritten kernel takes, read from its family's `kernels.h`, where alone it is written.

Read is the form that these headers have: a kernel is a struct with the members Attributes, Inputs and
Outputs, each a struct of fields or another name of such a struct. A struct may derive from another of its
header. The constants kShapes, kTypes, kLimits and kGradientOf say what the arguments must be, or which
kernel's they are. A shape rule is a function, beside which a constant may say what it computes
(rule_formula.py). What is in another form, or contradicts itself, is a fault of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from . import cpp_structs, kernel_terms
from .cpp_structs import Declaration, Struct
from .grammar import family
from .kernel_faults import contradictions
from .kernel_terms import (
    CONSTANTS,
    CPP_TYPES,
    FOREIGN,
    MEMBERS,
    NO_LIMITS,
    OPTIONAL,
    Fields,
    Kernel,
    Rule,
    Unread,
)
from .rule_formula import BadRule, RuleFormula, SharedRule, rule_formula, shared_rule
from .suggestions import instead, nearest

T = TypeVar("T")

_PACKAGE = Path(__file__).resolve().parent
# In the package where that is installed, else beside it: an archive of the sources holds the headers once.
_PLACES = (_PACKAGE / "runtime", _PACKAGE.parents[1] / "runtime")
RUNTIME = next((place for place in _PLACES if place.exists()), _PLACES[0])
HEADER = "kernels.h"
SHARED_RULES = RUNTIME / "core/shape_rules.h"

# The types of attributes' fields, as the schema calls them; an enum is called by its name.
_ATTRIBUTE_TYPES = {"int64_t": "int"} | {cpp: word for word, cpp in CPP_TYPES.items()}
_OPTIONAL_FIELD = re.compile(r"(?:std::)?optional<(.*)>")
_FOREIGN_TYPE = re.compile(
    r"ints|floats|string|(?:(?:bool|char|const|double|float|int|long|short|signed|unsigned)\b ?)+"
    r"|(?:std::)?(?:u?int\w*_t|size_t|ptrdiff_t)"
)
# core/kernel_arguments.h
_REQUIRED = {
    "Inputs": ("RequiredInput", "RequiredInputs"),
    "Outputs": ("RequiredOutput", "RequiredOutputs"),
}
_OPTIONAL = {
    "Inputs": ("const ConstTensorRef*", "ConstTensorRef const*", "std::span<const ConstTensorRef>"),
    "Outputs": ("const TensorRef*", "TensorRef const*", "std::span<const TensorRef>"),
}
_LISTS = ("RequiredInputs", "RequiredOutputs", "std::span<")  # begin the types of lists of tensors
_SPECIFIERS = frozenset(("[", "]", "nodiscard", "inline", "constexpr"))
_TEXT_TYPES = frozenset(("char", "string", "string_view"))
_RUNS = frozenset((kernel_terms.RUNS_ANYWHERE, "RunCpu", "RunCuda"))


class Family:
    """A header's kernels and shape rules."""

    def __init__(self, name: str, path: Path, text: str, library: str, *, is_own: bool = True) -> None:
        """`is_own` is true of families that are not the runtime's, and so in the library's namespace."""
        self.header = path
        self._namespaces = ("gradsmith", library, name)
        header = cpp_structs.read(text, self._namespaces)
        self.fault = header.fault
        self._name = name
        self.namespace = f"{library if is_own else 'gradsmith'}::{name}"  # in which its kernels are to be
        self._structs = {
            f"{name}::{struct.name}": struct for struct in header.structs.values() if _is_kernel(struct)
        }
        self._all_structs = header.structs
        self._read: dict[str, Kernel] = {}
        self.rules: dict[str, Rule] = {}
        texts = _texts(header.declarations)
        for declaration in header.declarations:
            found = _rule(declaration, header.structs)
            if found:
                rule = _with_formula(found[1], texts.get(f"k{found[0]}"), shared_rules())
                self.rules[f"{name}::{found[0]}"] = rule

    @property
    def kernel_names(self) -> list[str]:
        """As ops.yaml has them: conv::ConvGrad."""
        return list(self._structs)

    def namespace_of(self, kernel: str) -> str:
        """In which the kernel is."""
        return self._structs[kernel].namespace

    def kernel(self, name: str) -> Kernel | None:
        if name in self._structs and name not in self._read:
            reader = _KernelReader(self._namespaces, self._structs[name], self._all_structs)
            self._read[name] = reader.kernel(self.rules, self.kernel_names)
        return self._read.get(name)


class KernelHeaders:
    """The families below some folders, each read when it is first asked for. Those that are not the runtime's
    are in the namespace of a library. Without folders nothing is known of kernels, nor found wrong with
    them."""

    def __init__(self, folders: Sequence[Path] = (RUNTIME,), library: str = "gradsmith") -> None:
        self._folders = folders
        self._library = library
        self._families: dict[str, Family | None] = {}

    @property
    def has_folders(self) -> bool:
        return bool(self._folders)

    @cached_property
    def headers(self) -> dict[str, Path]:
        """Of each family; of two of the same name the first counts."""
        found = [path for folder in self._folders for path in sorted(folder.glob(f"*/{HEADER}"))]
        return {path.parent.name: path for path in reversed(found)}

    @property
    def files(self) -> list[Path]:
        """All that is read."""
        return [*self.headers.values(), SHARED_RULES]

    @cached_property
    def own_families(self) -> frozenset[str]:
        """Those that are not the runtime's."""
        return frozenset([name for name, path in self.headers.items() if path.parents[1] != RUNTIME])

    def family_of(self, function: str) -> Family | None:
        name = family(function)
        if name not in self._families:
            header = self.headers.get(name)
            is_own = name in self.own_families
            self._families[name] = read_header(name, header, self._library, is_own=is_own) if header else None
        return self._families[name]

    def kernel(self, name: str) -> Kernel | None:
        found = self.family_of(name)
        return found.kernel(name) if found else None

    def rule_formula(self, rule: str) -> RuleFormula | None:
        """What a shape rule computes, where its header says it."""
        found = self.family_of(rule)
        return found.rules[rule].formula if found and rule in found.rules else None

    def says_nothing_of(self, rule: str) -> bool:
        """Whether a shape rule is there and its header, which reads, does not say what it computes."""
        found = self.family_of(rule)
        return bool(found and not found.fault and rule in found.rules and not found.rules[rule].text)

    def kernel_names(self) -> list[str]:
        """Those of every family."""
        families = [self.family_of(name) for name in sorted(self.headers)]
        return [kernel for one in families if one for kernel in one.kernel_names]

    def rule_names(self) -> list[str]:
        """Those of every family."""
        families = [self.family_of(name) for name in sorted(self.headers)]
        return [rule for one in families if one for rule in one.rules]


def read_header(name: str, header: Path, library: str = "gradsmith", *, is_own: bool = True) -> Family:
    return Family(name, header, header.read_text(encoding="utf-8", errors="replace"), library, is_own=is_own)


# ----------------------------------------------------------------------------------------------------
# Fields


def _rule(declaration: Declaration, structs: Mapping[str, Struct]) -> tuple[str, Rule] | None:
    """Name and parameters of `Result<Dims> Rule(const Attributes& attributes, const Dims& D)`."""
    lexemes = _unqualified([lexeme for lexeme in declaration if lexeme not in _SPECIFIERS])
    if lexemes[:4] != ["Result", "<", "Dims", ">"] or lexemes[5:6] != ["("]:
        return None
    parameters = " ".join(lexemes[6:]).partition(" )")[0].split(" , ")
    taken = "".join([word for word in parameters[0].partition(" &")[0].split() if word.isidentifier()][-1:])
    symbols = tuple([parameter.partition(" & ")[2] for parameter in parameters[1:]])
    return lexemes[4], Rule(_attributes(structs.get(taken)), taken, symbols)


def _with_formula(rule: Rule, text: str | None, shared: Mapping[str, SharedRule]) -> Rule:
    """The rule with what its text says, if it has one."""
    if text is None:
        return rule
    rule = replace(rule, text=text)
    if rule.attributes is None:
        return rule
    try:
        return replace(rule, formula=rule_formula(text, rule.symbols, rule.attributes, shared))
    except BadRule as bad:
        return replace(rule, fault=str(bad))


def _texts(declarations: Sequence[Declaration]) -> dict[str, str]:
    """What constants such as `inline constexpr std::string_view kRule = "D"` say, by their names."""
    found = {}
    for declaration in declarations:
        name = cpp_structs.variable(declaration)
        text = cpp_structs.text_of(declaration[len(cpp_structs.head(declaration)) + 1 :]) if name else None
        if text is not None:
            found[name] = text
    return found


@cache
def shared_rules() -> Mapping[str, SharedRule]:
    """The rules that those of families may end in. They are the runtime's."""
    text = SHARED_RULES.read_text(encoding="utf-8") if SHARED_RULES.exists() else ""
    header = cpp_structs.read(text, ("gradsmith", "internal"))
    return dict([shared_rule(text) for text in _texts(header.declarations).values()])


def _unqualified(lexemes: Sequence[str]) -> list[str]:
    """Without `gradsmith::`."""
    kept: list[str] = []
    for lexeme in lexemes:
        if lexeme == "::" and kept[-1:] == ["gradsmith"]:
            kept.pop()
        else:
            kept.append(lexeme)
    return kept


def _fields(struct: Struct | None) -> Fields | None:
    """None where a declaration is in no form that is read."""
    if struct is None:
        return None
    fields: dict[str, str] = {}
    for one in struct.lineage():
        if one.derives and not one.base:
            return None
        for declaration in one.declarations:
            if "static" in declaration:
                continue
            found = _field(declaration)
            if found is None or found[1] in fields:
                return None
            fields[found[1]] = found[0]
    return fields


def _field(declaration: Declaration) -> tuple[str, str] | None:
    """Type and name of `IntList pads = {}` or `double epsilon{0.5}`."""
    end = len(cpp_structs.head(declaration))
    *kind, name = declaration[:end] or ("",)
    words = [lexeme for lexeme in kind if lexeme not in ("::", "*", "&", "<", ">")]
    if not words or not all(map(str.isidentifier, [*words, name])) or _has_comma(declaration[end:]):
        return None
    text = " ".join(kind).replace(" :: ", "::").replace(" *", "*").replace(" &", "&")
    return text.replace(" < ", "<").replace(" >", ">").replace("gradsmith::", ""), name


def _has_comma(value: Declaration) -> bool:
    """Another field follows the value of the first."""
    depth = 0
    for lexeme in value:
        depth += (lexeme == "(") - (lexeme == ")")
        if lexeme == "," and depth == 0:
            return True
    return False


def _attributes(struct: Struct | None) -> Fields | None:
    """Fields with types as the schema calls them."""
    fields = _fields(struct)
    return fields and {name: _attribute_type(kind) for name, kind in fields.items()}


def _attribute_type(kind: str) -> str:
    optional = _OPTIONAL_FIELD.fullmatch(kind)
    if optional:
        return f"{OPTIONAL}{_attribute_type(optional[1])}"
    foreign = FOREIGN if _FOREIGN_TYPE.fullmatch(kind) else ""
    return _ATTRIBUTE_TYPES.get(kind, f"{foreign}{kind}")


def _arguments(struct: Struct, member: str) -> Mapping[str, bool] | None:
    fields, required = _fields(struct.member(member)), _REQUIRED[member]
    if fields is None or not {*required, *_OPTIONAL[member]}.issuperset(fields.values()):
        return None
    return {name: kind in required for name, kind in fields.items()}


def _lists(struct: Struct) -> frozenset[str]:
    """The arguments that are lists of tensors."""
    fields = [_fields(struct.member(member)) or {} for member in _REQUIRED]
    return frozenset([name for one in fields for name, kind in one.items() if kind.startswith(_LISTS)])


# ----------------------------------------------------------------------------------------------------
# Kernels


def _is_kernel(struct: Struct) -> bool:
    """It has the members, or may have those that it lacks from a base that is not read."""
    has_member = [member in struct.members or member in struct.inherited for member in MEMBERS]
    names = {name for one in struct.lineage() for name in one.variables}
    is_meant = any(has_member) or not names.isdisjoint(CONSTANTS)
    return all(has_member) or (struct.has_unread_base and is_meant)


class _KernelReader:
    def __init__(self, namespaces: Sequence[str], struct: Struct, structs: Mapping[str, Struct]) -> None:
        self._namespaces = namespaces
        self._family = namespaces[-1]
        self._struct = struct
        self._structs = structs
        self._faults: list[str] = []
        self._says: dict[str, str] = {}
        self._mistyped: set[str] = set()  # the constants that others' names are like

    def kernel(self, rules: Mapping[str, Rule], kernels: Sequence[str]) -> Kernel:
        struct = self._struct
        if struct.has_unread_base:
            base = struct.lineage()[0].name
            self._faults.append(f"{base} derives from what is no one struct of the header before it")
        self._note_other_texts()
        kernel = Kernel(
            _attributes(struct.member("Attributes")),
            _arguments(struct, "Inputs"),
            _arguments(struct, "Outputs"),
            frozenset(run for one in struct.lineage() for found in one.declarations for run in _runs(found)),
            self._read("kShapes", kernel_terms.read_shapes),
            self._read("kTypes", kernel_terms.read_types),
            self._read("kLimits", kernel_terms.read_limits) or NO_LIMITS,
            self._read("kGradientOf", kernel_terms.read_gradients),
            tuple(self._says.items()),
            lists=_lists(struct),
        )
        forward = f"{self._family}::{kernel.gradients.forward}" if kernel.gradients else ""
        if forward and forward not in kernels:
            self._faults.append(
                f"kGradientOf is of no kernel of its header: {forward}{instead(forward, kernels)}"
            )
        return replace(kernel, faults=tuple(self._faults or contradictions(kernel, rules)))

    def _note_other_texts(self) -> None:
        """A constant's name may be mistyped: then what it says would hold for nothing."""
        for one in self._struct.lineage():
            for declaration in one.declarations:
                name = cpp_structs.variable(declaration)
                if name and name not in CONSTANTS and _is_text(declaration):
                    self._mistyped.add(nearest(name, CONSTANTS))
                    self._faults.append(f"it has no use for the text {name}{instead(name, CONSTANTS)}")

    def _read(self, constant: str, read: Callable[[str], T]) -> T | None:
        value = _constant(self._struct, constant, self._structs, self._namespaces)
        can_be_any = constant in ("kShapes", "kTypes")
        if value is None:
            if can_be_any and constant not in self._mistyped:
                self._faults.append(f"it has no {constant}")
            return None
        text = cpp_structs.text_of(value)
        if text is None:
            self._faults.append(f"{constant} is neither text nor another kernel's {constant}")
            return None
        self._says[constant] = text
        if can_be_any and text == kernel_terms.ANY:
            return None
        try:
            return read(text)
        except Unread as unread:
            rest, form = unread.args
            self._faults.append(f"its {constant} does not read from '{rest}' on; {form}")
            return None


def _runs(declaration: Declaration) -> list[str]:
    return [name for name, following in pairwise(declaration) if name in _RUNS and following == "("]


def _constant(
    struct: Struct, name: str, structs: Mapping[str, Struct], namespaces: Sequence[str]
) -> Sequence[str] | None:
    """The lexemes of its value: a kernel's own come after those of what it derives from."""
    seen: set[int] = set()
    while id(struct) not in seen:
        value = _value(struct, name)
        if value is None:
            return () if seen else None
        seen.add(id(struct))
        path = [lexeme for lexeme in value if lexeme != "::"]
        while len(path) > 2 and path[0] in namespaces:
            del path[0]
        if len(path) != 2 or path[1] != name or path[0] not in structs:
            return value
        struct = structs[path[0]]
    return ()


def _value(struct: Struct, name: str) -> Sequence[str] | None:
    """What a struct gives a constant, or what it derives from."""
    for one in reversed(struct.lineage()):
        for declaration in one.declarations:
            head = cpp_structs.head(declaration)
            if name in head:
                return declaration[len(head) + 1 :]
    return None


def _is_text(declaration: Declaration) -> bool:
    head = cpp_structs.head(declaration)
    value = declaration[len(head) + 1 :]
    is_anothers = len(value) > 1 and value[-2] == "::" and value[-1] in CONSTANTS
    return not _TEXT_TYPES.isdisjoint(head) or cpp_structs.text_of(value) is not None or is_anothers
