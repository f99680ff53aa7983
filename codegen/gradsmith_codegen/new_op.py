"""A new operator's entry: copied from another's or made from formulas, and put behind the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import spelling
from .diagnostics import Source
from .layout import Kind, Piece, Place, between, lines_with_ends, pieces_of
from .loader import source_of
from .model import Op, Schema
from .new_formulas import FormulaEntry, GivenFormula
from .suggestions import did_you_mean
from .verbs import Refused

_Edit = tuple[Place, Place, str]  # from where to where, and what stands there instead


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for: one of `like` and `formulas` is there."""

    name: str
    doc: str = ""
    like: str = ""
    formulas: Sequence[tuple[str, str]] = ()  # names and expressions
    attributes: Sequence[tuple[str, str]] = ()  # and their defaults


class SchemaText:
    """A schema without faults, and its text."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self.source = source
        self.schema = schema
        self.ops_by_name = {op.name: op for op in schema.ops}
        self._root = pieces_of(source)
        ops = self._root.value("ops")
        if not ops or ops.kind is not Kind.LIST or ops.is_flow:
            line = (ops or self._root).start.line + 1
            raise Refused(f"{source.path}:{line}: 'ops' must be a list with a '- ' before each operator")
        self._ops: Piece = ops

    def entry(self, wish: Wish) -> str:
        """The new operator's, indented as the others are."""
        if wish.name in self.ops_by_name:
            where = self._where(self.ops_by_name[wish.name])
            raise Refused(f"{where}: there is an operator '{wish.name}' already")
        if wish.like:
            return self._copy(wish)
        formulas = [GivenFormula(*formula) for formula in wish.formulas]
        lines = FormulaEntry(wish.name, wish.doc, formulas, wish.attributes, self._forward(wish.name))
        return _indented(lines.text(self._rows_alias), self._ops.start.column)

    def with_entry(self, entry: str) -> tuple[Source, int]:
        """The text with an entry behind the others, and the line on which that stands."""
        lines = lines_with_ends(self.source)
        at = self._behind_the_last()
        line_end = _line_end(lines[0])
        new = ["", *entry.rstrip("\n").split("\n")]
        if _line_end(lines[at - 1]):
            added = "".join([line + line_end for line in new])
        else:  # the last line has no end, nor will it have one
            added = line_end + line_end.join(new)
        text = "".join([*lines[:at], added, *lines[at:]])
        return source_of(self.source.path, text), at + 2

    def _behind_the_last(self) -> int:
        """The number of lines up to the end of the last operator, with comments indented as its keys are."""
        at = self._ops.items[-1].end.line + 1
        lines, column = self.source.lines, self._ops.start.column
        while at < len(lines) and lines[at].lstrip().startswith("#") and _indent(lines[at]) > column:
            at += 1
        return at

    def _where(self, op: Op) -> str:
        files = self.schema.files
        return f"{files.at(op.line).path}:{files.line(op.line)}"

    # -- From another operator ---

    def _copy(self, wish: Wish) -> str:
        piece = self._piece(wish.like)
        edits = [*self._names(piece, wish), *self._aliases(piece), *self._history(piece)]
        column = self._ops.start.column
        text = self._edited(Place(piece.start.line, column), piece.end, edits)
        return " " * column + text + "\n"

    def _piece(self, like: str) -> Piece:
        op = self.ops_by_name.get(like)
        if not op:
            hint = did_you_mean(like, list(self.ops_by_name))
            raise Refused(f"{self.source.path}: there is no operator '{like}'{hint}")
        for piece in self._ops.items:
            name = piece.value("name") if piece.kind is Kind.MAPPING else None
            if name and name.word == like:
                return piece
        where = self._where(op)
        if self.schema.files.at(op.line) is not self.schema.files.own:
            raise Refused(
                f"{where}: '{like}' stands in an included file; only entries of the schema's own are copied"
            )
        raise Refused(f"{where}: the entry of '{like}' has no 'name' of its own, so that it cannot be copied")

    def _names(self, piece: Piece, wish: Wish) -> list[_Edit]:
        """The new name in place of the old one, in documentation as well."""
        edits = []
        own_name, own_doc = piece.value("name"), piece.value("doc")
        for key, value in [pair for part in piece.parts() for pair in _pairs(part)]:
            if value is own_name:
                edits.append((value.start, value.end, wish.name))
            elif value is own_doc and wish.doc:
                edits.append((value.start, value.end, spelling.text(wish.doc)))
            elif key.word == "doc" and value.kind is Kind.SCALAR:
                new = re.sub(rf"\b{re.escape(wish.like)}\b", wish.name, value.text)
                if new != value.text and not value.anchor:
                    edits.append((value.start, value.end, new))
        return edits

    def _aliases(self, piece: Piece) -> list[_Edit]:
        """An alias in place of each part with an anchor, of which there can be one."""
        if piece.anchor:
            raise Refused(
                f"{self.source.path}:{piece.start.line + 1}: the entry has the anchor '&{piece.anchor}', so "
                "that it cannot be copied"
            )
        return [(part.start, self._end(part), f"*{part.anchor}") for part in piece.parts() if part.anchor]

    def _history(self, piece: Piece) -> list[_Edit]:
        """A new operator has none; its lines go, and in braces what is up to the next entry."""
        lines, pairs = self.source.lines, piece.pairs
        at = next((at for at, (key, _) in enumerate(pairs) if key.word == "history"), None)
        if at is None:
            return []
        key, value = pairs[at]
        if at + 1 < len(pairs) and (piece.is_flow or at == 0):
            return [(key.start, pairs[at + 1][0].start, "")]
        if piece.is_flow:
            return [(pairs[at - 1][1].end, value.end, "")]
        before = key.start.line - 1
        return [(Place(before, len(lines[before])), Place(value.end.line, len(lines[value.end.line])), "")]

    def _end(self, part: Piece) -> Place:
        """With the comment behind the last line of a block, which is about that line."""
        line = self.source.lines[part.end.line]
        is_block = bool(part.items) and not part.is_flow
        has_comment = line[part.end.column :].lstrip().startswith("#")
        return Place(part.end.line, len(line)) if is_block and has_comment else part.end

    def _edited(self, start: Place, end: Place, edits: list[_Edit]) -> str:
        """The text between two places. Of edits within each other the outer one counts."""
        pieces, at = [], start
        for begin, stop, new in sorted(edits, key=lambda edit: (edit[0], (-edit[1][0], -edit[1][1]))):
            if begin >= at:
                pieces += [between(self.source, at, begin), new]
                at = stop
        pieces.append(between(self.source, at, end))
        return "".join(pieces)

    # -- From formulas ---

    def _forward(self, name: str) -> Op | None:
        """The operator whose gradient one of this name is."""
        return self.ops_by_name.get(name.removesuffix("Grad")) if name.endswith("Grad") else None

    def _rows_alias(self, rows: Sequence[tuple[str, dict[str, str]]]) -> str:
        """An alias of rows that another operator has; empty where none has them."""
        wanted = {name: tuple(types.items()) for name, types in rows}
        for piece in self._ops.items:
            own = piece.value("rows") if piece.kind is Kind.MAPPING else None
            name = piece.value("name") if own and own.anchor else None
            op = self.ops_by_name.get(name.word) if name else None
            if own and op:
                has = {row.name: tuple((key, of.value) for key, of in row.types) for row in op.rows}
                if has == wanted:
                    return own.anchor
        return ""


def _pairs(piece: Piece) -> list[tuple[Piece, Piece]]:
    return piece.pairs if piece.kind is Kind.MAPPING else []


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _indented(text: str, column: int) -> str:
    return "".join([" " * column + line for line in text.splitlines(keepends=True)])
