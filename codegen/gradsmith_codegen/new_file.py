"""A schema that has no operators of its own yet: what stands before the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from .diagnostics import Diagnostic, Source
from .layout import Kind, Piece, lines_with_ends, pieces_of
from .loader import source_of
from .model import Schema
from .new_formulas import FormulaEntry, GivenFormula
from .new_op import Wish
from .verbs import Refused
from .vocabulary import SCHEMA_VERSION

_HEAD = {"schema_version": str(SCHEMA_VERSION), "domain": "com.example", "since_version": "1"}
_FAULTS = ("G004", "G009", "G010", "G023")  # of a file that is empty or lacks keys or operators
_INDENT = "  "


class NewSchemaText:
    """The text of a schema without operators of its own. `schema` has those of included files."""

    def __init__(self, source: Source, schema: Schema | None) -> None:
        self._source = source
        self._included = {op.name: op for op in schema.ops} if schema else {}
        lines = lines_with_ends(source) if source.text else []
        self._line_end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += self._line_end
        root = _root(source)
        given = {key.word: (key, value) for key, value in root.pairs} if root else {}
        if "ops" in given:
            key, value = given["ops"]
            line = source.lines[key.start.line]
            rest = line[value.end.column :] if value.end.line == key.start.line else ""
            lines[key.start.line] = f"{line[: value.start.column].rstrip()}{rest.rstrip()}{self._line_end}"
            self._ops_line = key.start.line
        else:
            self._ops_line = len(lines)
            lines.append(f"ops:{self._line_end}")
        at = root.start.line if root else self._ops_line
        head = [f"{key}: {value}{self._line_end}" for key, value in _HEAD.items() if key not in given]
        self._lines = [*lines[:at], *head, *lines[at:]]
        self._ops_line += len(head)

    def entry(self, wish: Wish) -> str:
        """As SchemaText has it."""
        if wish.like:
            raise Refused(f"{self._source.path}: there is no operator '{wish.like}', nor any to copy")
        formulas = [GivenFormula(*formula) for formula in wish.formulas]
        forward = self._included.get(wish.name.removesuffix("Grad")) if wish.name.endswith("Grad") else None
        lines = FormulaEntry(wish.name, wish.doc, formulas, wish.attributes, forward)
        return "".join([_INDENT + line for line in lines.text(lambda _: "").splitlines(keepends=True)])

    def with_entry(self, entry: str) -> tuple[Source, int]:
        """The text with the entry, and the line on which that stands."""
        added = [line + self._line_end for line in entry.splitlines()]
        at = self._ops_line + 1
        return source_of(self._source.path, "".join([*self._lines[:at], *added, *self._lines[at:]])), at + 1


def lacks_operators(source: Source, diagnostics: Sequence[Diagnostic]) -> bool:
    """Whether all that is wrong with a schema may be that it has no operators of its own, and no head."""
    if any(one.id not in _FAULTS for one in diagnostics):
        return False
    root = _root(source)
    if root is None:
        return True
    if root.kind is not Kind.MAPPING or root.is_flow:
        return False
    ops = root.value("ops")
    return ops is None or _is_nothing(ops)


def _root(source: Source) -> Piece | None:
    """None of a text without anything but comments."""
    has_text = any(line.strip() and not line.lstrip().startswith("#") for line in source.lines)
    return pieces_of(source) if has_text else None


def _is_nothing(ops: Piece) -> bool:
    is_null = ops.kind is Kind.SCALAR and ops.text in ("", "~", "null")
    return not ops.anchor and (is_null or (ops.kind is Kind.LIST and ops.is_flow and not ops.items))
