"""What differs between two schemas.

Compared is what a call depends on: names, types, shapes, defaults, ranges, rows, backends and, of formulas,
what they give. What a handwritten kernel gives is not: one in the place of another is told, and taken to give
what the other gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .argument_changes import compare_arguments
from .changes import Change, Effect, Findings, renames
from .draft import Document
from .formula_changes import Values
from .formula_tree import asked_for
from .formula_tree import names as names_in
from .model import Backend, Case, Op, Repeatable, Row
from .text import NO_TEXT, plain


def changes(old: Document, new: Document) -> list[Change]:
    """The breaking ones first, each kind in the order of the new file."""
    found = [*_of_file(old, new)]
    olds = {name: draft.op for name, draft in old.drafts_by_name.items()}
    news = {name: draft.op for name, draft in new.drafts_by_name.items()}
    renamed = renames(
        {name: _nameless(op) for name, op in olds.items()}, {n: _nameless(o) for n, o in news.items()}
    )
    for draft in new.drafts:
        op = draft.op
        if op.name in olds:
            found += _of_op(olds[op.name], op, renamed)
        elif op.name not in renamed.values():
            found.append(_added(op))
    found += _gone(old, news, renamed)
    return sorted(found, key=lambda change: change.effect is not Effect.BREAKING)


def _of_file(old: Document, new: Document) -> Iterator[Change]:
    found, first = Findings(), new.files.own.base + 1
    if old.domain != new.domain:
        found.breaking(f"domain is '{new.domain}', was '{old.domain}'", first)
    if old.since_version != new.since_version:
        found.breaking(f"since_version is {new.since_version}, was {old.since_version}", first)
    yield from found.changes


def _added(op: Op) -> Change:
    found = Findings(op.name)
    found.compatible("operator was added", op.line)
    return found.changes[0]


def _gone(old: Document, news: Mapping[str, Op], renamed: Mapping[str, str]) -> list[Change]:
    found: list[Change] = []
    for draft in old.drafts:
        name = draft.op.name
        if name in news:
            continue
        of_op = Findings(name)
        if name in renamed:
            of_op.breaking(f"operator is called '{renamed[name]}' now", news[renamed[name]].line)
        else:
            of_op.breaking("operator is gone", draft.op.line, is_of_old=True)
        found += of_op.changes
    return found


def _nameless(op: Op) -> Op:
    return replace(op, name="", doc=NO_TEXT, line=0)


# ----------------------------------------------------------------------------------------------------
# An operator


def _of_op(old: Op, new: Op, renamed: Mapping[str, str]) -> list[Change]:
    found = Findings(new.name)
    if renamed.get(old.gradient_of, old.gradient_of) != new.gradient_of:
        message = f"gradient_of is '{new.gradient_of}', was '{old.gradient_of}'"
        found.either(not old.gradient_of, message, new.at("gradient_of").line)
    if old.since_version != new.since_version:
        of_file = "the file's"
        message = f"since_version is {new.since_version or of_file}, was {old.since_version or of_file}"
        found.breaking(message, new.at("since_version").line)
    renamed_arguments = compare_arguments(old, new, found)
    _compare_backends(old, new, found)
    _compare_rows(old, new, found)
    _compare_repeatable(old, new, found)
    _compare_cases(old.cases, new.cases, new.at("cases").line, found)
    _compare_what_computes(old, new, renamed_arguments, found)
    for key in ("doc", "history", "seams", "special_values"):
        if getattr(old, key) != getattr(new, key):
            found.compatible(f"{key} changed", new.at(key).line)
    return found.changes


def _compare_backends(old: Op, new: Op, found: Findings) -> None:
    line = new.at("backends").line
    for backend in old.backends:
        if backend not in new.backends:
            found.breaking(f"backend '{backend.value}' is gone", line)
    for backend in new.backends:
        if backend not in old.backends:
            found.compatible(f"backend '{backend.value}' was added", line)


def _compare_rows(old: Op, new: Op, found: Findings) -> None:
    """Rows are told apart by their types, which calls depend on."""
    olds, news = _by_types(old.rows), _by_types(new.rows)
    for types, row in olds.items():
        if types not in news:
            found.breaking(f"row '{row.name}' ({_types(row)}) is gone", row.origin, is_of_old=True)
        elif news[types].name != row.name:
            found.breaking(f"row '{row.name}' is called '{news[types].name}' now", news[types].origin)
    for types, row in news.items():
        if types not in olds:
            found.compatible(f"row '{row.name}' ({_types(row)}) was added", row.origin)


def _by_types(rows: Iterable[Row]) -> dict[frozenset[object], Row]:
    return {frozenset(row.types): row for row in rows}


def _types(row: Row) -> str:
    return ", ".join(f"{parameter} = {data_type.value}" for parameter, data_type in row.types)


_STRENGTH = {Repeatable.NEVER: 0, Repeatable.POLICY: 1, Repeatable.ALWAYS: 2}


def _compare_repeatable(old: Op, new: Op, found: Findings) -> None:
    changed: dict[tuple[Repeatable, Repeatable], list[Backend]] = {}
    for backend in new.backends:
        words = old.repeatable_on(backend), new.repeatable_on(backend)
        if backend in old.backends and words[0] is not words[1]:
            changed.setdefault(words, []).append(backend)
    for (before, after), backends in changed.items():
        names = " and ".join(backend.value for backend in backends)
        message = f"repeatable on {names} is '{after.value}', was '{before.value}'"
        found.either(_STRENGTH[after] > _STRENGTH[before], message, new.at("repeatable").line)


def _compare_cases(old: Sequence[Case], new: Sequence[Case], line: int, found: Findings) -> None:
    """They are tests, which no call depends on."""
    olds = {case.name: case for case in old}
    for case in new:
        if case.name not in olds:
            found.compatible(f"case '{case.name}' was added", case.origin)
        elif case != olds[case.name]:
            found.compatible(f"case '{case.name}' changed", case.origin)
    names = {case.name for case in new}
    for name in [name for name in olds if name not in names]:
        found.compatible(f"case '{name}' is gone", line)


def _compare_what_computes(old: Op, new: Op, renamed: Mapping[str, str], found: Findings) -> None:
    if old.kernel_name != new.kernel_name:
        line = new.at("kernel" if new.kernel else "formulas").line
        found.compatible(f"is computed by {new.kernel_name}, was by {old.kernel_name}", line)
    if old.formulas and new.formulas:
        _compare_formulas(old, new, renamed, found)
    before, after = (op.operations.text if op.operations else NO_TEXT for op in (old, new))
    if before != after:
        found.compatible("operations changed", new.at("operations").line)


def _compare_formulas(old: Op, new: Op, renamed: Mapping[str, str], found: Findings) -> None:
    """What outputs are is what counts; names of parts, brackets and blanks may be others. Of an input that is
    new and optional nobody's call knows: it is absent, which is 0."""
    if [(one.name, one.text) for one in old.formulas] == [(one.name, one.text) for one in new.formulas]:
        return
    known = {renamed.get(one.name, one.name) for one in old.inputs}
    added = [one.name for one in new.inputs if one.optional and one.name not in known]
    values, line = Values(added), new.at("formulas").line
    before = _FormulasOf(old, values, renamed)
    after = _FormulasOf(new, values, {})
    both = [one.name for one in new.outputs if one.name in before.whole]
    others = [name for name in both if before.whole[name] != after.whole[name]]
    for name in others:
        is_own = before.alone[name] != after.alone[name]
        text = f": {after.texts[name]}, was {before.texts[name]}" if is_own else ""
        found.breaking(
            f"output '{name}' is computed otherwise{text or ', by the formulas that it reads'}", line
        )
    if not others:
        names = {**after.texts, **before.texts}
        changed = [name for name in names if before.texts.get(name) != after.texts.get(name)]
        which = f": {', '.join(changed)}" if changed else ""
        read = {
            one.name
            for formula in new.formulas
            for one in (*names_in(formula.tree), *asked_for(formula.tree))
        }
        lacking = [f"'{name}'" for name in added if name in read]
        without = f" without {' and '.join(lacking)}" if lacking else ""
        found.compatible(f"formulas are written otherwise, and give the same{without}{which}", line)


class _FormulasOf:
    """An operator's, by their names, with what they give as a whole and as they stand."""

    def __init__(self, op: Op, values: Values, renamed: Mapping[str, str]) -> None:
        names = {one.name: renamed.get(one.name, one.name) for one in op.formulas}
        whole = values.of_formulas(op.formulas, renamed)
        self.whole = {new: whole[name] for name, new in names.items()}
        self.alone = {names[one.name]: values.of_tree(one, renamed) for one in op.formulas}
        self.texts = {names[one.name]: plain(one.text) for one in op.formulas}
