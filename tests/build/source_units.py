"""Sources put together for compilers and clang-tidy, which take most of their time for the standard library's headers.

A unit is the text of as many sources as are compiled alike, and of which none declares for itself alone what another
one names, or a header that this includes declares.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from build_tree import REPOSITORY

SOURCES_OF_A_UNIT = 12  # more of them take more memory, and leave less for another processor to do

ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"^(?![ #}/])[^=({;\n]*?(?<!:)\b(\w+)(?= *[=;{(\n])", re.MULTILINE)
NO_NAMES = {"char", "int32_t", "static_assert", "TEST", "TEST_F", "TEST_P"}
OF_THE_FILE = re.compile(r"^(?:#define |extern const .*?|using [\w:]*?)(\w+)(?=[\s(;])", re.MULTILINE)
NO_CODE = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"|^#include.*', re.MULTILINE)
NAMED = re.compile(r"(?<![.>\w:])[A-Za-z_]\w*")  # less members, and what is of another namespace
INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """What sources of a unit have in common: the compiler's command less its files, its folder, and a .clang-tidy."""

    command: tuple[str, ...]
    directory: str
    configuration: Path

    def include_folders(self) -> tuple[Path, ...]:
        folders = (word.removeprefix("-I") for word in self.command if word.startswith("-I"))
        return tuple(Path(self.directory, folder) for folder in folders)


@dataclass(frozen=True)
class Names:
    """What a source declares for itself alone; and what it names, or its headers declare."""

    own: frozenset[str]
    seen: frozenset[str]


@dataclass
class Unit:
    """Sources of one kind, and their names."""

    kind: Kind
    sources: list[Path] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def takes(self, names: Names) -> bool:
        is_full = len(self.sources) == SOURCES_OF_A_UNIT
        return not is_full and self.own.isdisjoint(names.seen) and self.seen.isdisjoint(names.own)

    def add(self, source: Path, names: Names) -> None:
        self.sources.append(source)
        self.own |= names.own
        self.seen |= names.seen

    def write(self, root: Path) -> Path:
        """Writes the unit below a folder of the repository, where clang-tidy finds its configuration."""
        folder = root / self.kind.configuration.parent.relative_to(REPOSITORY)
        folder.mkdir(parents=True, exist_ok=True)
        if folder != root:
            shutil.copyfile(self.kind.configuration, folder / self.kind.configuration.name)
        text = "\n".join(source.read_text() for source in self.sources)
        unit = folder / f"{self.sources[0].stem}_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cc"
        unit.write_text(text)
        return unit


def units_of(commands: Iterable[Mapping[str, str]]) -> list[Unit]:
    """Every source of a list of compiler commands, each in the first unit that takes it."""
    units: list[Unit] = []
    for command in sorted(commands, key=lambda command: command["file"]):
        source = Path(command["file"])
        kind = kind_of(command, source)
        names = names_of(source, kind.include_folders())
        unit = next((unit for unit in units if unit.kind == kind and unit.takes(names)), None)
        if unit is None:
            unit = Unit(kind)
            units.append(unit)
        unit.add(source, names)
    return units


def findings_in(unit: Unit, root: Path, look: Callable[[Path], str]) -> str:
    """What is found in the sources, of which each is looked at by itself where the unit has a finding.

    Names of several may meet in the unit alone.
    """
    if len(unit.sources) > 1 and look(unit.write(root)) == "":
        return ""
    return "".join(map(look, unit.sources))


def kind_of(command: Mapping[str, str], source: Path) -> Kind:
    words = shlex.split(command["command"])
    compiler = next(place for place, word in enumerate(words) if word.endswith(("c++", "g++")))  # after a launcher
    files = {words.index("-o"), words.index("-o") + 1, words.index("-c"), words.index("-c") + 1}
    options = (word for place, word in enumerate(words) if place >= compiler and place not in files)
    return Kind(tuple(options), command["directory"], configuration_of(source))


def configuration_of(source: Path) -> Path:
    """The nearest .clang-tidy; that of what is generated is the repository's."""
    folders = [folder for folder in source.parents if folder.is_relative_to(REPOSITORY)]
    return next((path for folder in folders if (path := folder / ".clang-tidy").exists()), REPOSITORY / ".clang-tidy")


def names_of(source: Path, folders: tuple[Path, ...]) -> Names:
    """Its own are macros, and what anonymous namespaces, using-declarations and those of others' constants hold."""
    text = source.read_text()
    declared = {name for block in ANONYMOUS.findall(text) for name in DECLARED.findall(block)}
    own = {*OF_THE_FILE.findall(text), *declared} - NO_NAMES
    headers = (DECLARED.findall(header.read_text()) for header in headers_of(source, folders))
    return Names(frozenset(own), frozenset(NAMED.findall(NO_CODE.sub("", text))).union(own, *headers))


@cache
def headers_of(source: Path, folders: tuple[Path, ...]) -> frozenset[Path]:
    """The headers of the repository that a file includes, also through others."""
    places = ([folder / name for folder in folders] for name in INCLUDED.findall(source.read_text()))
    headers = [header for among in places if (header := next(filter(Path.exists, among), None)) is not None]
    return frozenset(headers).union(*(headers_of(header, folders) for header in headers))
