"""The files of a schema: its own, and those that it includes.

A file is made nodes of before what it includes is read, for it says what that is; and once more after that,
when it is known how many lines come before its own.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

from . import faults, grammar
from . import loader as nodes
from .diagnostics import Diagnostic, Note, Source, has_errors
from .loader import Anchor, Composed, Node, Scalar, compose, read_source, shifted_diagnostic, unused_anchors
from .source_files import SourceFile, SourceFiles
from .spans import Span
from .text import Text


@dataclass(eq=False, slots=True)
class LoadedFile:
    """A file as nodes."""

    source: Source
    name: str  # as the schema's own file would include it
    root: Node | None = None
    anchors: dict[str, Anchor] = field(default_factory=dict)
    included: dict[str, LoadedFile] = field(default_factory=dict)  # by what references call them


Located = TypeVar("Located", Diagnostic, Note)
_Fault = Callable[[Span], Diagnostic]


class FileLoader:
    """Loads a schema's file and what it includes, each once."""

    def __init__(self, parser: Any) -> None:
        self.files: list[LoadedFile] = []  # in the order of their lines
        self.diagnostics: list[Diagnostic] = []
        self.failed = False  # something cannot be read, so that there is no saying what it lacks
        self._parser = parser
        self._open: list[
            tuple[str, str]
        ] = []  # real paths and names of those whose inclusions are being read
        self._by_path: dict[str, LoadedFile] = {}
        self._lines = 0  # of the files that are loaded

    def load(self, source: Source, name: str) -> LoadedFile:
        self._open.append((_real(source.path), name))
        source = replace(source, base=self._lines)
        composed = compose(source, self._parser)
        found = [self._included(one.value, source, name) for one in _inclusions(composed.root)]
        if source.base != self._lines:
            source = replace(source, base=self._lines)
            composed = compose(source, self._parser)
        path, _ = self._open.pop()
        file = self._add(LoadedFile(source, name, composed.root, composed.anchors), path)
        self._report(composed.diagnostics, is_fatal=composed.root is None)
        self._name(file, zip(_inclusions(composed.root), found, strict=True))
        if not self._open:
            self.diagnostics += unused_anchors(_own_anchors(composed))
        return file

    def _included(self, text: str, source: Source, name: str) -> LoadedFile | _Fault:
        path = os.path.join(os.path.dirname(source.path), text)  # noqa: PTH118, PTH120 - shown as it is written
        included, diagnostics = read_source(Path(path))
        if diagnostics and diagnostics[0].span is None:
            reason = diagnostics[0].message.partition(": ")[2]
            return partial(faults.unreadable_inclusion, text=text, reason=reason)
        real = _real(path)
        circle = [other for other_path, other in self._open if other_path == real]
        if circle:
            names = [other for _, other in self._open]
            return partial(faults.circular_inclusion, names=[*names[names.index(circle[0]) :], circle[0]])
        if real in self._by_path:
            return self._by_path[real]
        full_name = _name_of(text, name)
        if not diagnostics:
            return self.load(replace(included, path=path), full_name)
        self._report([shifted_diagnostic(one, self._lines) for one in diagnostics], is_fatal=True)
        return self._add(LoadedFile(replace(included, path=path, base=self._lines), full_name), real)

    def _add(self, file: LoadedFile, path: str) -> LoadedFile:
        self.files.append(file)
        self._by_path[path] = file
        self._lines += len(file.source.lines) + 1
        return file

    def _name(self, file: LoadedFile, found: Iterable[tuple[Scalar, LoadedFile | _Fault]]) -> None:
        """Gives what is included the names by which its parts are referred to."""
        for node, one in found:
            name = PurePath(node.value).stem
            if not isinstance(one, LoadedFile):
                self._report([one(node.span)], is_fatal=True)
            elif not grammar.FILE_NAME.match(name):
                self._report([faults.bad_inclusion_name(node.span, node.value, "")], is_fatal=False)
            elif file.included.setdefault(name, one) is not one:
                other = file.included[name].name
                self._report([faults.bad_inclusion_name(node.span, node.value, other)], is_fatal=False)

    def _report(self, diagnostics: Sequence[Diagnostic], is_fatal: bool) -> None:
        self.diagnostics += diagnostics
        self.failed |= is_fatal and has_errors(diagnostics)

    # -- Of what was loaded ---

    def source_files(self) -> SourceFiles:
        return SourceFiles(
            tuple(
                SourceFile(
                    Text(one.name),
                    one.source.path,
                    one.source.base,
                    has_shared=_value_of(one.root, "shared") is not None,
                )
                for one in self.files
            )
        )

    def located(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """The same, with lines as their files have them."""
        if len(self.files) <= 1:
            return diagnostics
        sources = {file.source.base: file.source for file in self.files}
        files, own = self.source_files(), self.files[-1].source

        def moved(one: Located) -> Located:
            if one.span is None:
                return one
            source = sources[files.at(one.span.line).base]
            span = nodes.shifted(one.span, -source.base)
            return replace(one, span=span, source=None if source is own else source)

        return [replace(moved(one), notes=tuple(map(moved, one.notes))) for one in diagnostics]


def _real(path: str) -> str:
    """What tells files apart; a path that no file can have is itself."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _name_of(text: str, includer: str) -> str:
    """As the schema's own file would include it; of what is included by an absolute path, its mere name."""
    if PurePath(text).is_absolute():
        return PurePath(text).name
    return posixpath.normpath(posixpath.join(posixpath.dirname(includer), text))


def _inclusions(root: Node | None) -> list[Scalar]:
    """What `include` names, as far as it is in order: the reader tells what is not."""
    node = _value_of(root, "include")
    return [one for one in node.items if isinstance(one, Scalar) and one.value] if _is_list(node) else []


def _is_list(node: Any) -> bool:
    return isinstance(node, nodes.Sequence)


def _value_of(root: Node | None, name: str) -> Any:
    items = root.items if isinstance(root, nodes.Mapping) else []
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, Scalar) and key.value == name:
            return value
    return None


def _own_anchors(composed: Composed) -> dict[str, Anchor]:
    """Without those of parts that are there for others."""
    shared = _value_of(composed.root, "shared")
    if shared is None:
        return composed.anchors
    first, last = shared.line, shared.line + shared.end.line - shared.start.line
    return {n: one for n, one in composed.anchors.items() if not first <= one.span.line <= last}
