"""What is no YAML, said in one way: libyaml and PyYAML each have words of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from . import faults, lookalikes
from .diagnostics import Diagnostic, Source
from .spans import Span

# A line up to the text that it gives a key, where that is documentation; and a pair without a blank.
_STRUCTURE = re.compile(r"(?:(?!doc\W|#).)*")
_QUALIFIED = re.compile(r"\bkernel: +(\w+::) +(\w+)", re.ASCII)
_PAIR = re.compile(r"(\s*(?:- +)*)([A-Za-z_]\w*):([^\s:,\[\]{}#][^#]*)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """What libyaml and PyYAML say, each in its own words (the pattern), and what we say."""

    pattern: str
    message: str
    at_context: bool = False  # the fault is where the construct starts, not where the parser gave up
    note: str = ""  # of where the construct starts


SYNTAX_PROBLEMS = (
    SyntaxProblem(r"cannot start any token", "{character} cannot start a value; quote the text"),
    SyntaxProblem(r"simple key.*':'", "expected ':' after this key", at_context=True),
    SyntaxProblem(r"mapping values", "':' is not allowed here; check the indentation, or quote the text"),
    SyntaxProblem(r"sequence entries", "'- ' is not allowed here; check the indentation, or quote the text"),
    SyntaxProblem(r"mapping keys", "'? ' is not allowed here; quote the text"),
    SyntaxProblem(r"plain scalar.*unexpected ':'", "':' needs a space after it, or quotes around the text"),
    SyntaxProblem(r"flow mapping", "expected ',' or '}}'", note="in the mapping that starts here"),
    SyntaxProblem(r"flow sequence", "expected ',' or ']'", note="in the list that starts here"),
    SyntaxProblem(r"flow node|block node", "expected a value"),
    SyntaxProblem(
        r"block (mapping|collection)|document start",
        "this does not line up with what is around it",
        note="which starts here",
    ),
    SyntaxProblem(
        r"quoted scalar.*(end of stream|indicator)", "this quoted text has no end", at_context=True
    ),
    SyntaxProblem(r"escape", "unknown escape sequence in this quoted text", at_context=True),
    SyntaxProblem(r"scanning an anchor", "expected a name after '&'", at_context=True),
    SyntaxProblem(
        r"scanning an alias", "expected a name after '*'; quote the text to mean an asterisk", at_context=True
    ),
    SyntaxProblem(
        r"block scalar", "'|' and '>' start a block of text on the next line; quote the text", at_context=True
    ),
    SyntaxProblem(r"directive", "bad YAML directive", at_context=True),
    SyntaxProblem(r"(scanning|parsing) a tag|parsing a node", "bad YAML tag", at_context=True),
)


def syntax_error(error: yaml.MarkedYAMLError, source: Source) -> Diagnostic:
    """What a parser found, in our words; in the parser's where we have none."""
    context = error.context_mark or error.problem_mark
    place, start = _place(error.problem_mark or context, source), _place(context, source)
    misspelt = _misspelt(source, sorted({max(1, place.line - 1), place.line, start.line}))
    if misspelt:
        return misspelt
    character = source.lines[place.line - 1][place.column - 1 : place.column]
    if character == "\t":
        return faults.syntax(place, "a tab stands here; indent with spaces")
    words = f"{error.context}: {error.problem}"
    known = next((problem for problem in SYNTAX_PROBLEMS if re.search(problem.pattern, words)), None)
    if known is None:
        return faults.syntax(place, str(error.problem))
    diagnostic = faults.syntax(
        start if known.at_context else place, known.message.format(character=f"'{character}'")
    )
    return diagnostic.noting(known.note, start) if known.note and start != place else diagnostic


def _misspelt(source: Source, lines: list[int]) -> Diagnostic | None:
    """What YAML stumbles over later, on the next line or at the line's end: a character that only looks right
    where no documentation stands, or a ':' without a blank after it."""
    for line in lines:
        text = source.lines[line - 1]
        structure = _STRUCTURE.match(text)
        place = lookalikes.first(structure[0]) if structure else -1
        if place >= 0:
            looks = lookalikes.seen(text[place]) or " "
            instead = "a blank" if looks == " " else f"`{looks}`"
            problem = f"{lookalikes.named(text[place])} stands here, which only looks right; write {instead}"
            return faults.syntax(Span(line, place + 1), problem)
        name = _QUALIFIED.search(text)
        if name:
            problem = f"a name has no blank after its '::'; write `{name[1]}{name[2]}`"
            return faults.syntax(Span(line, name.start(1) + 1, name.end() - name.start(1)), problem)
        pair = _PAIR.match(text)
        if pair:
            problem = f"':' needs a blank after it; write `{pair[2]}: {pair[3]}`"
            return faults.syntax(Span(line, len(pair[1]) + 1, len(pair[2]) + 1), problem)
    return None


def _place(mark: Any, source: Source) -> Span:
    """The mark's place. The parsers differ on where the end of the text is; we take its last character."""
    line, column = mark.line, mark.column
    rest = (source.lines[line][column:], *source.lines[line + 1 :]) if line < len(source.lines) else ()
    if not any(text.strip() for text in rest):
        line = max((i for i, text in enumerate(source.lines) if text.strip()), default=0)
        column = len(source.lines[line].rstrip())
    return Span(line + 1, column + 1)
