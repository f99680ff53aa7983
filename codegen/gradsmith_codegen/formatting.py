"""A schema's text in one style: the order of keys, one line for each tensor, attribute, row and case, and the
indentation. Comments, anchors, aliases and the spelling of values stay, and so does what is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from . import spelling
from .comments import Comments, Gap
from .diagnostics import Source
from .layout import Kind, Piece, between, lines_with_ends, pieces_of
from .loader import source_of
from .reader import read_document
from .text import printable
from .verbs import Refused

_STEP = 2  # columns of a level


@dataclass(frozen=True, slots=True)
class Form:
    """How what stands in a place is written."""

    order: tuple[str, ...] = ()  # of a mapping's keys; others come before the last of these
    is_block: bool = False  # a line for each entry
    stays_flow: bool = False  # though it is a block, where it is written in { } on a line
    keys: dict[str, Form] = field(default_factory=dict)
    each: Form | None = None  # of all others, and of a list's items
    is_apart: bool = False  # blank lines between its items


_LEAF = Form()
_TENSOR = Form(
    ("type", "list", "shape", "like", "shape_of", "shape_only", "may_be_on_host", "in_place_of", "optional",
     "outside", "gradient_of", "doc"),
)  # fmt: skip
_SYMBOL = Form(("length", "length_if", "rule", "broadcast_to", "given_by", "multiple_of", "split", "doc"))
_ATTRIBUTE = Form(
    ("type", "enum", "choices", "default", "optional", "min", "max", "length", "axis_of", "doc")
)
_CASE = Form(("name", "layout"))
_REVISION = Form(("version", "change"))
_SEAM = Form(("at", "gives"))
_SPECIAL_VALUE = Form(("what", "test"))


def _named(each: Form) -> Form:
    return Form(is_block=True, stays_flow=True, each=each)


_OP = Form(
    ("name", "doc", "gradient_of", "since_version", "history", "kernel", "formulas", "seams",
     "special_values", "repeatable", "backends", "inputs", "outputs", "dims", "attributes", "rows", "cases",
     "operations"),
    is_block=True,
    keys={
        "formulas": _named(_LEAF),
        "seams": Form(is_block=True, each=_SEAM),
        "inputs": _named(_TENSOR),
        "outputs": _named(_TENSOR),
        "dims": _named(_SYMBOL),
        "attributes": _named(_ATTRIBUTE),
        "rows": _named(_LEAF),
        "cases": Form(is_block=True, each=_CASE),
        "history": Form(is_block=True, each=_REVISION),
        "special_values": Form(is_block=True, each=_SPECIAL_VALUE),
    },
)  # fmt: skip
_SCHEMA = Form(
    ("schema_version", "include", "domain", "since_version", "shared", "ops"),
    is_block=True,
    keys={
        "shared": Form(is_block=True, each=Form(is_block=True, stays_flow=True)),
        "ops": Form(is_block=True, each=_OP, is_apart=True),
    },
)
ORDERS = {"schema": _SCHEMA, "operator": _OP, "tensor": _TENSOR, "symbol": _SYMBOL, "attribute": _ATTRIBUTE,
          "case": _CASE, "revision": _REVISION, "seam": _SEAM, "special value": _SPECIAL_VALUE}  # fmt: skip


def formatted(source: Source) -> str:
    """The text of a schema that reads, in the style; Refused where it cannot be brought into that."""
    writer = _Writer(source)
    text = writer.text()
    new = source_of(source.path, text)
    lost = writer.comments.lost_in(new)
    if lost:
        line, comment = lost
        raise Refused(
            f"{source.path}:{line}: {printable(comment)} stands where a formatted file has no place for it"
        )
    if not _is_alike(source, new):
        raise Refused(f"{source.path}: would mean something else when it is formatted; it stays as it is")
    return text


def _is_alike(old: Source, new: Source) -> bool:
    """Both are loaded: they have the same operators, made of the same anchors and aliases."""
    old_document, _ = read_document(old)
    new_document, _ = read_document(new)
    if not old_document or not new_document:
        return False
    documents = [
        (
            (document.domain, document.since_version),
            [(replace(draft.op, line=0), draft.declared) for draft in document.drafts],
            sorted(
                (part.kind.value, part.anchor, part.text if part.kind is Kind.ALIAS else "") for part in parts
            ),
        )
        for document, parts in (
            (old_document, pieces_of(old).parts()),
            (new_document, pieces_of(new).parts()),
        )
    ]
    return documents[0] == documents[1]


class _Writer:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._root = pieces_of(source)
        self.comments = Comments(source, self._root)
        self._lines: list[str] = []

    def text(self) -> str:
        """The whole, with line ends as those of the first line."""
        self._lines += self._head()
        begin = self._root.start
        self._gap(self.comments.before(begin.line), begin.column, 0)  # that of the file stays at its begin
        self._mapping(self._root, _SCHEMA, 0, placed=(self._root.items[0],))
        self._gap(self.comments.after(self._root.end.line), 0, 0)
        lines = lines_with_ends(self._source)
        line_end = "\r\n" if lines[0].endswith("\r\n") else "\n"
        while not self._lines[-1]:
            self._lines.pop()
        return "".join([line + line_end for line in self._lines])

    def _head(self) -> list[str]:
        """Up to the mark where the document begins, where there is one."""
        lines = self._source.lines[: self._root.start.line]
        marks = [number for number, line in enumerate(lines) if line.startswith("---")]
        return [line.rstrip() for line in lines[: marks[-1] + 1]] if marks else []

    # -- Comments and blank lines ---

    def _gap(self, gap: Gap, old_column: int, column: int) -> None:
        """What stands before an entry: comments that are indented deeper belong to what is before them."""
        deep = 0
        for number, (at, comment) in enumerate(gap):
            if comment and at <= old_column:
                break
            deep = number + 1 if comment else deep
        last = self._lines[-1] if self._lines else ""
        self._comments(gap[:deep], max(column + _STEP, len(last) - len(last.lstrip(" "))))
        self._comments(gap[deep:], column)

    def _comments(self, gap: Gap, column: int) -> None:
        """Of blank lines in a row one is enough."""
        for _, comment in gap:
            if comment:
                self._lines.append(" " * column + comment)
            elif self._lines and self._lines[-1]:
                self._lines.append("")

    # -- Pieces ---

    def _value(self, piece: Piece, form: Form, place: _Place) -> None:
        anchor = f"&{piece.anchor} " if piece.anchor else ""
        comment = self.comments.behind(piece)
        if self._is_written_as_block(piece, form, place.line):
            if place.begin:
                self._put(f"{place.begin}{anchor}".rstrip(), self.comments.on(place.line))
            self._block(piece, form, place.column)
        elif self._has_to_stay(piece, place.line):
            first, *others = between(self._source, piece.start, piece.end).split("\n")
            self._lines.append(place.begin + first.rstrip())
            self._lines += [_shifted(line, place.column - _STEP - place.old_column) for line in others]
            self._put(self._lines.pop(), comment)
        else:
            self._put(f"{place.begin}{anchor}{_flow(piece, form)}".rstrip(), comment)

    def _put(self, line: str, comment: str) -> None:
        self._lines.append(f"{line}  {comment}" if comment else line)

    def _is_written_as_block(self, piece: Piece, form: Form, header: int) -> bool:
        if not piece.items:
            return False
        has_to_stay = self._has_to_stay(piece, header)
        if not piece.is_flow:
            return form.is_block or has_to_stay
        stays = form.stays_flow and piece.start.line == piece.end.line
        return form.is_block and not stays and not has_to_stay

    def _has_to_stay(self, piece: Piece, header: int) -> bool:
        """In { } there is no place for what is within."""
        has_long_text = any("\n" in part.text for part in piece.parts())
        return has_long_text or self.comments.are_within(piece, header)

    def _block(self, piece: Piece, form: Form, column: int) -> None:
        if piece.kind is Kind.LIST:
            self._list(piece, form, column)
        else:
            self._mapping(piece, form, column)

    def _list(self, piece: Piece, form: Form, column: int) -> None:
        each = form.each or _LEAF
        for index, item in enumerate(piece.items):
            line = item.start.line
            old_column = self.comments.column_of_line(line)
            self._gap(self.comments.before(line), old_column, column)
            is_block = item.kind is Kind.MAPPING and self._is_written_as_block(item, each, line)
            placed = self._first_placed(item, each, column) if is_block and not item.is_flow else ()
            if form.is_apart and index:
                self._set_apart(column)
            dash = f"{' ' * column}- "
            if is_block and not item.anchor:
                at = len(self._lines)
                self._mapping(item, each, column + _STEP, placed)
                self._lines[at] = dash + self._lines[at][column + _STEP :]
            else:
                self._value(item, each, _Place(dash, column + _STEP, old_column, line))

    def _first_placed(self, item: Piece, form: Form, column: int) -> tuple[Piece, ...]:
        """The keys whose comments stand before the dash: the first as it was, and the first as it will be."""
        first = _in_order(item, form)[0][0]
        if first is not item.items[0] and not item.anchor:
            self._gap(self.comments.before(first.start.line), first.start.column, column)
        return first, item.items[0]

    def _set_apart(self, column: int) -> None:
        """A blank line before the comments of what comes next."""
        at = len(self._lines)
        while self._lines[at - 1].startswith(f"{' ' * column}#"):
            at -= 1
        if self._lines[at - 1]:
            self._lines.insert(at, "")

    def _mapping(self, piece: Piece, form: Form, column: int, placed: tuple[Piece, ...] = ()) -> None:
        """Of keys that are `placed`, what stands before them is written."""
        for key, value in _in_order(piece, form):
            if key not in placed and not piece.is_flow:
                self._gap(self.comments.before(key.start.line), key.start.column, column)
            anchor = f"&{key.anchor} " if key.anchor else ""
            begin = f"{' ' * column}{anchor}{key.text}: "
            form_of_value = form.keys.get(key.word, form.each or _LEAF)
            self._value(value, form_of_value, _Place(begin, column + _STEP, key.start.column, key.end.line))


class _Place(NamedTuple):
    """Where a value is written."""

    begin: str  # its key or its dash
    column: int  # of what is below it
    old_column: int  # of its key or its dash
    line: int  # of these, from 0


def _shifted(line: str, by: int) -> str:
    stripped = line.lstrip(" ")
    return " " * max(0, len(line) - len(stripped) + by) + stripped if stripped else ""


def _flow(piece: Piece, form: Form) -> str:
    """On a line."""
    if piece.kind is Kind.LIST:
        return f"[{', '.join([_anchored(item, form.each or _LEAF) for item in piece.items])}]"
    if piece.kind is Kind.MAPPING:
        entries = [
            f"{_anchored(key, _LEAF)}: {_anchored(value, form.keys.get(key.word, form.each or _LEAF))}"
            for key, value in _in_order(piece, form)
        ]
        return "{" + ", ".join(entries) + "}"
    return piece.text


def _anchored(piece: Piece, form: Form) -> str:
    """Within [ ] or { }, where some texts need quotes that need none elsewhere."""
    anchor = f"&{piece.anchor} " if piece.anchor else ""
    is_plain = piece.kind is Kind.SCALAR and piece.text[:1] not in ("'", '"')
    if is_plain and any(mark in piece.text for mark in ",[]{}"):
        return anchor + spelling.quoted(piece.text)
    return anchor + _flow(piece, form)


def _in_order(piece: Piece, form: Form) -> list[tuple[Piece, Piece]]:
    """A mapping's entries as the form has them; as they are where an alias would come before its anchor."""
    pairs = piece.pairs
    if not form.order:
        return pairs
    rank = {key: index for index, key in enumerate(form.order)}
    others = len(form.order) - 1.5  # before the last one
    ordered = sorted(pairs, key=lambda pair: -1 if pair[0].word == "<<" else rank.get(pair[0].word, others))
    return ordered if _anchors_come_first(ordered) else pairs


def _anchors_come_first(pairs: Iterable[tuple[Piece, Piece]]) -> bool:
    parts = list(_parts(pairs))
    own = {part.anchor for part in parts if part.anchor}
    seen: set[str] = set()
    for part in parts:
        if part.kind is Kind.ALIAS and part.text[1:] in own - seen:
            return False
        seen.add(part.anchor)
    return True


def _parts(pairs: Iterable[tuple[Piece, Piece]]) -> Iterator[Piece]:
    for key, value in pairs:
        yield from key.parts()
        yield from value.parts()
