"""What is wrong with a schema, as values; and how such a value reads on a terminal or in JSON.

A fault is found anywhere between the loader and the checks, becomes a `Diagnostic` and travels up in a list.
Every kind of fault has a stable id, registered as a `Rule` together with the sentence that docs/schema.md
shows for it.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from .spans import Span
from .text import printable

_USED_BY = "used by operator "


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of fault: its id for good, and what it means to someone who looks it up."""

    id: str
    severity: Severity
    doc: str


RULES: dict[str, Rule] = {}


def register(rule_id: str, severity: Severity, doc: str | None) -> Rule:
    """Adds a rule; its documentation is the docstring of the function that states it."""
    if rule_id in RULES or not (doc or sys.flags.optimize > 1):  # python -OO strips docstrings
        raise ValueError(f"rule {rule_id} is registered twice or has no docstring")
    rule = RULES[rule_id] = Rule(rule_id, severity, " ".join((doc or "").split()))
    return rule


@dataclass(frozen=True, slots=True)
class Note:
    """A second place that a diagnostic speaks of."""

    message: str
    span: Span
    source: Source | None = None  # where that is another than the schema's own


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault. `span` is absent where the fault is the file's as a whole."""

    id: str
    severity: Severity
    message: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    source: Source | None = None  # where that is another than the schema's own

    def noting(self, message: str, span: Span) -> Diagnostic:
        return replace(self, notes=(*self.notes, Note(message, span)))

    def used_by(self, operator: str, span: Span) -> Diagnostic:
        """As an operator meets it that repeats the place by alias."""
        return self.noting(f"{_USED_BY}'{operator}'", span)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text. `path` is as the user gave it; `lines` are split where YAML splits them."""

    path: str
    text: str
    lines: Sequence[str] = field(default=(), repr=False)
    base: int = 0  # how many lines of the files that it includes come before its first


# What differs in what is said of one place for several operators: who they are, and what they have instead.
_OF_OPERATOR = re.compile(r"operator '[^']*'|kernel [\w:]+|; (?:did you mean|expected) .*")
_NAMED_USERS = 3  # as many are named where an alias is repeated by more
_SEVERAL = (
    3  # where more of a kind are found in what an alias repeats, the alias is at fault: the first is shown
)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By position. What is said of one place for several operators is said once: aliases meet it for each.
    Of many alike in what operators repeat by alias, and which are right where they stand, the first tells."""
    alike: dict[object, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        said = _OF_OPERATOR.sub("", diagnostic.message)
        alike.setdefault((diagnostic.id, diagnostic.span, said), []).append(diagnostic)
    at_fault: list[Diagnostic] = []
    repeated: list[Diagnostic] = []
    for found in alike.values():
        (repeated if all(map(_users, found)) else at_fault).append(_said_once(found))
    return sorted([*at_fault, *_first_of_many(repeated)], key=_position)


def _users(diagnostic: Diagnostic) -> tuple[Note, ...]:
    return tuple(note for note in diagnostic.notes if note.message.startswith(_USED_BY.rstrip()))


def _first_of_many(repeated: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    by_users: dict[object, list[Diagnostic]] = {}
    for diagnostic in sorted(repeated, key=_position):
        by_users.setdefault((diagnostic.id, _users(diagnostic)), []).append(diagnostic)
    for found in by_users.values():
        first, span = found[0], found[0].span
        if len(found) <= _SEVERAL or span is None:
            yield from found
        else:
            yield first.noting(
                f"{len(found) - 1} more like this in what is repeated; is another alias meant?", span
            )


def _said_once(found: Sequence[Diagnostic]) -> Diagnostic:
    """The first, with one note of the operators that repeat the place."""
    users = {note.message: note for one in found for note in _users(one)}
    return _with_users(found[0], list(users.values())) if users else found[0]


def _with_users(diagnostic: Diagnostic, users: Sequence[Note]) -> Diagnostic:
    notes = tuple(note for note in diagnostic.notes if not note.message.startswith(_USED_BY))
    names = [note.message.removeprefix(_USED_BY) for note in users]
    if len(names) > _NAMED_USERS + 1:
        names[_NAMED_USERS:] = [f"{len(names) - _NAMED_USERS} others"]
    *head, last = names
    told = f"used by operators {', '.join(head)} and {last}" if head else f"{_USED_BY}{last}"
    return replace(diagnostic, notes=(*notes, Note(told, users[0].span)))


def _position(diagnostic: Diagnostic) -> tuple[int, int, str, str]:
    span = diagnostic.span or Span(0, 0)
    return (span.line, span.column, diagnostic.id, diagnostic.message)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)


# ----------------------------------------------------------------------------------------------------
# Text

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;35m", "note": "\x1b[1;36m", "path": "\x1b[1m"}
_RESET = "\x1b[0m"
_TAB_WIDTH = 8
_MAX_WIDTH = 160  # of a shown source line; longer ones are cropped around the caret
_MAX_MESSAGE = 1000  # characters
MAX_SHOWN = 100  # diagnostics


def format_text(diagnostics: Sequence[Diagnostic], source: Source, colour: bool = False) -> str:
    """The diagnostics with their source lines and carets, MAX_SHOWN of them at most and errors first, and a
    line that counts all; empty for none."""
    if not diagnostics:
        return ""
    printer = _Printer(source, colour)
    for diagnostic in _shown(diagnostics):
        label = diagnostic.severity.value
        printer.entry(diagnostic, label, f"{label}[{diagnostic.id}]")
        for note in diagnostic.notes:
            printer.entry(note, "note", "note")
    hidden = len(diagnostics) - MAX_SHOWN
    counts = summary(diagnostics) + (f"; {hidden} of them are not shown" if hidden > 0 else "")
    return "\n".join([*printer.out, counts]) + "\n"


def _shown(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    if len(diagnostics) <= MAX_SHOWN:
        return diagnostics
    by_severity = sorted(range(len(diagnostics)), key=lambda i: diagnostics[i].severity is not Severity.ERROR)
    return [diagnostics[i] for i in sorted(by_severity[:MAX_SHOWN])]


def counted(count: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """For example "2 errors and 1 warning"."""
    parts = []
    for severity in Severity:
        count = sum(diagnostic.severity is severity for diagnostic in diagnostics)
        if count:
            parts.append(counted(count, severity.value))
    return " and ".join(parts)


def _shortened(message: str) -> str:
    """Messages quote the schema, which may be long."""
    if len(message) <= _MAX_MESSAGE:
        return message
    return f"{message[: _MAX_MESSAGE // 2]} ... {message[-_MAX_MESSAGE // 2 :]}"


class _Printer:
    def __init__(self, source: Source, colour: bool) -> None:
        self.out: list[str] = []
        self._source = source
        self._colour = colour

    def entry(self, what: Diagnostic | Note, style: str, label: str) -> None:
        span, source = what.span, what.source or self._source
        path = printable(source.path)
        place = f"{path}:{span.line}:{span.column}:" if span else f"{path}:"
        said = printable(_shortened(what.message))
        self.out.append(f"{self._paint('path', place)} {self._paint(style, label + ':')} {said}")
        if span and span.line <= len(source.lines):
            shown, before, width = _excerpt(source.lines[span.line - 1], span)
            self.out.append(f"{span.line:5} | {shown}".rstrip())
            self.out.append(f"{'':5} | {' ' * before}{self._paint(style, '^' + '~' * (width - 1))}")

    def _paint(self, style: str, text: str) -> str:
        return f"{_COLOURS[style]}{text}{_RESET}" if self._colour else text


def _excerpt(line: str, span: Span) -> tuple[str, int, int]:
    """The line as terminals show it, how many cells stand before the caret, and how many it underlines. Of a
    long line only what is shown is looked at: many faults may be on it."""
    crop = _crop_start(line, span.column - 1)
    lead = "..." if crop else ""
    piece = line[crop : crop + _MAX_WIDTH]
    cells: list[str] = []  # one string for each character: what is shown of it
    used = len(lead)
    for character in piece:
        cell = _cell(character, used)
        used += _width(cell)
        if used > _MAX_WIDTH:
            break
        cells.append(cell)
    start = min(span.column - 1 - crop, len(cells))
    end = max(start, min(start + span.length, len(cells)))
    before = len(lead) + sum(map(_width, cells[:start]))
    trail = "..." if crop + len(cells) < len(line) else ""
    return lead + "".join(cells) + trail, before, max(1, sum(map(_width, cells[start:end])))


def _crop_start(line: str, start: int) -> int:
    """The first character to show, so that what the caret points at is on a line of bearable length."""
    if len(line) <= _MAX_WIDTH or start <= _MAX_WIDTH // 2:
        return 0
    return start - _MAX_WIDTH // 2


def _cell(character: str, column: int) -> str:
    if character == "\t":
        return " " * (_TAB_WIDTH - column % _TAB_WIDTH)
    return character if character.isprintable() or unicodedata.combining(character) else "\ufffd"


def _width(cell: str) -> int:
    if cell.isascii():
        return len(cell)
    if unicodedata.combining(cell):
        return 0
    return 2 if unicodedata.east_asian_width(cell) in "WF" else 1


# ----------------------------------------------------------------------------------------------------
# JSON


def format_json(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    """A list of objects; lines and columns count from 1, `end_column` is the first one after the span."""
    return json.dumps([_json(diagnostic, source.path) for diagnostic in diagnostics], indent=2) + "\n"


def format_json_error(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    """All diagnostics as one error: an object on a line, with `error` (or `warning`) and `faults`."""
    kind = Severity.ERROR if has_errors(diagnostics) else Severity.WARNING
    faults = [_json(diagnostic, source.path) for diagnostic in diagnostics]
    return json.dumps({kind.value: f"{source.path}: {summary(diagnostics)}", "faults": faults}) + "\n"


def _json(diagnostic: Diagnostic, path: str) -> dict[str, object]:
    return {
        **_json_place(diagnostic, path),
        "id": diagnostic.id,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "notes": [{**_json_place(note, path), "message": note.message} for note in diagnostic.notes],
    }


def _json_place(what: Diagnostic | Note, path: str) -> dict[str, object]:
    span, path = what.span, what.source.path if what.source else path
    if span is None:
        return {"file": path, "line": None, "column": None, "end_column": None}
    return {"file": path, "line": span.line, "column": span.column, "end_column": span.column + span.length}
