"""The functions of a functor of the pattern `rows`, as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .wrapping import COLUMN_LIMIT


@dataclass(frozen=True, slots=True)
class Method:
    """A member function of a functor, within its struct."""

    head: str
    lines: list[str]
    is_template: bool = True

    @property
    def text(self) -> str:
        """Its lines as they are written."""
        if len(self.lines) < 2:
            line = f"  {self.head} {{ {''.join(self.lines)} }}".replace("{  }", "{}")
            if len(line) <= COLUMN_LIMIT and "//" not in "".join(self.lines):
                return line
        first = f"  {self.head} {{"
        end = "}" if not self.lines else ""
        if len(first + end) > COLUMN_LIMIT:
            before, name = self.head.split(" void ", 1)
            first = f"  {before} void\n  {name} {{"
            if len(f"  {name} {{{end}") > COLUMN_LIMIT:
                opening, parameters = self.head.removesuffix(")").split("(", 1)
                each = parameters.replace(", ", ",\n      ")
                first = f"  {opening}(\n      {each}) {{"
        return f"{first}{end}" if end else "\n".join([first, *[f"    {line}" for line in self.lines], "  }"])


def functor_method(name: str, parameters: Sequence[str], lines: list[str]) -> Method:
    """Parameters that the lines do not read have no names."""
    text = " ".join(line for line in lines if not line.startswith("//"))
    shown = []
    for parameter in parameters:
        kind, _, own = parameter.rpartition(" ")
        is_read = any(f"{own}{mark}" in text for mark in (".", "[", " =="))
        shown.append(parameter if is_read else f"{kind} /*{own}*/")
    return Method(f"GRADSMITH_FUNCTOR static void {name}({', '.join(shown)})", lines)


def constant_method(head: str, values: Sequence[int | bool | str], parameter: str = "result") -> Method:
    """A function of a number: of a slot's, or of what else the parameter says."""
    signature = f"GRADSMITH_FUNCTOR static constexpr {head}"
    distinct = list(dict.fromkeys(values)) or [0]
    if len(distinct) == 1:
        return Method(f"{signature}(int /*{parameter}*/)", [f"return {str(distinct[0]).lower()};"], False)
    if isinstance(distinct[0], bool):
        places = [place for place, value in enumerate(values) if value]
        condition = " || ".join(f"{parameter} == {place}" for place in places)
        return Method(f"{signature}(int {parameter})", [f"return {condition};"], False)
    *cases, last = distinct
    lines: list[str] = []
    for value in cases:
        condition = " || ".join(f"{parameter} == {place}" for place, one in enumerate(values) if one == value)
        lines += [f"if ({condition}) {{", f"  return {value};", "}"]
    return Method(f"{signature}(int {parameter})", [*lines, f"return {last};"], False)


def branches(by_phase: Sequence[list[str]]) -> list[str]:
    """The statements of a single phase as they are, else those of each within its own condition."""
    if len(by_phase) == 1:
        return by_phase[0]
    lines: list[str] = []
    filled = [(phase, body) for phase, body in enumerate(by_phase) if body]
    for place, (phase, body) in enumerate(filled):
        is_else = place > 0 and place == len(by_phase) - 1
        condition = (
            "else" if is_else else f"else if (phase == {phase})" if place else f"if (phase == {phase})"
        )
        lines += [f"{'} ' if place else ''}{condition} {{", *[f"  {line}" for line in body]]
    return [*lines, "}"] if lines else []
