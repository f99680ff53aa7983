"""From the formulas of shape rules to C++: the structs of a family's `shape_rules.h`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .cpp_lines import assignment
from .cpp_names import header_guard
from .formula_tree import OPERATORS, Apply, Chosen, Function, Given, Kind, Name, Number, Tree
from .kernel_headers import Family, KernelHeaders
from .kernel_terms import Rule
from .library import Library
from .rule_formula import AXIS, DIVIDE, ENTRIES, INT, ROUNDED, Definition, Expectation, RuleFormula, written
from .text import cpp_string
from .wrapping import COLUMN_LIMIT

_MARKS = {function: mark.strip() for mark, function in OPERATORS.items() if function is not DIVIDE} | {
    OPERATORS["and"]: "&&",
    OPERATORS["or"]: "||",
    OPERATORS["not"]: "!",
}
_LONGEST = 70  # characters of a text on a line


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold, and the texts that in a row say that it does not."""

    condition: str  # lines that declare whether it does
    name: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleStruct:
    """A rule along one axis."""

    name: str
    attributes: str  # their type
    symbols: tuple[str, ...]
    fields: tuple[str, ...]  # lines that declare the values
    checks: tuple[Check, ...]

    @property
    def holds(self) -> str:
        """The lines of the function that says whether all checks hold."""
        head, result = (
            "  [[nodiscard]] bool Holds() const {",
            " && ".join([check.name for check in self.checks]),
        )
        line = f"{head} return {result}; }}"
        return line if len(line) <= COLUMN_LIMIT else f"{head}\n    return {result};\n  }}"


@dataclass(frozen=True, slots=True)
class FamilyRules:
    """Those of a family that have formulas, in the order of its header."""

    name: str
    namespace: str
    structs: tuple[RuleStruct, ...]

    @property
    def includes(self) -> list[str]:
        return sorted(["core/shape_rules.h", f"{self.name}/kernels.h"])

    @property
    def guard(self) -> str:
        return header_guard(self.namespace, "shape_rules.h")


def rules_of(headers: KernelHeaders, library: Library) -> tuple[FamilyRules, ...]:
    """Those of the families that belong to a library: the runtime's own library has the runtime's."""
    names = headers.headers if library.is_builtin else headers.own_families
    found = [(name, headers.family_of(f"{name}::")) for name in sorted(names)]
    return tuple([_of_family(name, family, library) for name, family in found if family])


def _of_family(name: str, family: Family, library: Library) -> FamilyRules:
    structs = [
        _Writer(rule, rule.formula, library).struct(function.partition("::")[2])
        for function, rule in family.rules.items()
        if rule.formula
    ]
    return FamilyRules(name, family.namespace, tuple(structs))


class _Writer:
    def __init__(self, rule: Rule, formula: RuleFormula, library: Library) -> None:
        self._rule = rule
        self._formula = formula
        self._library = library

    def struct(self, name: str) -> RuleStruct:
        statements = self._formula.statements
        fields = [self._field(one) for one in statements if isinstance(one, Definition)]
        expected = [one for one in statements if isinstance(one, Expectation)]
        checks = [self._check(number, one) for number, one in enumerate(expected)]
        symbols = self._formula.symbols
        return RuleStruct(name, self._rule.attributes_type, symbols, tuple(fields), tuple(checks))

    def _field(self, definition: Definition) -> str:
        kind = "Extent" if definition.kind is Kind.NUMBER else "bool"
        return assignment(f"  {kind} {definition.name}", self._text(definition.tree))

    def _check(self, number: int, expectation: Expectation) -> Check:
        name = f"holds_{number + 1}"
        texts: list[str] = []
        for place, word in enumerate(expectation.words):
            texts += (
                [self._shown(word)]
                if place % 2
                else [_literal(one, is_first=not texts) for one in _short(word)]
            )
        return Check(assignment(f"  bool {name}", self._text(expectation.tree)), name, tuple(texts))

    def _shown(self, name: str) -> str:
        """A value of a message. What the rule does not take has nothing to show."""
        defined = {one.name for one in self._formula.statements if isinstance(one, Definition)}
        if name == AXIS or name in defined or name in self._formula.symbols:
            return f"RuleText({name})"
        return f"RuleText(attributes.{name})" if name in self._formula.attributes else '"[]"'

    # -- Expressions ---

    def _text(self, tree: Tree) -> str:
        text = written(tree, self._leaf, self._call, _MARKS).replace("!!", "")
        is_choice = isinstance(tree, Apply) and tree.function.name == "where"
        return text[1:-1] if is_choice else text

    def _leaf(self, tree: Tree) -> str:
        if isinstance(tree, Number):
            return str(int(tree.value))
        if isinstance(tree, Given):
            return f"!attributes.{tree.name.name}.empty()"
        if isinstance(tree, Chosen):
            attribute = tree.attribute.name
            enum = f"{self._library.runtime}{self._formula.attributes[attribute]}"
            return f"attributes.{attribute} == {enum}::{tree.value.name}"
        if not isinstance(tree, Name):
            raise NotImplementedError("a leaf that no rule has")
        return self._named(tree.name)

    def _named(self, name: str) -> str:
        if name in self._formula.symbols:
            return f"Extent{{{name}[{AXIS}]}}"
        kind = self._formula.attributes.get(name)
        if kind is None:
            return name
        return f"Extent{{attributes.{name}}}" if kind == INT else f"attributes.{name}"

    def _call(self, function: Function, arguments: list[str]) -> str:
        if function.name in ENTRIES:
            return self._entry(function.name, *arguments)
        if function.name == "where":
            return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
        if function.name in ROUNDED:
            return f"{function.name.capitalize()}Div({arguments[0]})"
        if function is DIVIDE:  # within a call that rounds it
            return ", ".join(arguments)
        return f"std::{function.name}<Extent>({', '.join(arguments)})"

    def _entry(self, function: str, attribute: str, otherwise: str) -> str:
        place = f"{self._formula.symbols[0]}.size() + {AXIS}" if function == "end" else AXIS
        return f"EntryOf({attribute}, {place}, {otherwise})"


def _literal(text: str, *, is_first: bool) -> str:
    """A string begins as one; what is added to it may be a character."""
    return f"'{text}'" if len(text) == 1 and text not in "'\\" and not is_first else cpp_string(text)


def _short(text: str) -> list[str]:
    """Parts of a text that each have room on a line."""
    found = [""]
    for word in re.findall(r"\S*\s*", text):
        if len(found[-1]) + len(word) > _LONGEST:
            found.append("")
        found[-1] += word
    return [one for one in found if one]
