"""Sources put together for compilers and clang-tidy, which take most of their time for the standard library's headers.

A unit is the text of as many sources as are compiled alike. What a source declares for itself alone is renamed in it;
where it cannot be, by its text, no other source of the unit names it, and no header that they include declares it.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path

from build_tree import REPOSITORY

SOURCES_OF_A_UNIT = 24  # more of them take more memory, and leave less for another processor to do

SHORTEST_RENAMED = 5  # modernize-use-auto heeds no type whose name is shorter, and would heed it renamed

ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"^(?![ #}/])[^=({;\n]*?(?<!:)\b(\w+)(?= *[=;{(\n])", re.MULTILINE)
NO_NAMES = {"alignas", "bool", "char", "double", "int32_t", "int64_t", "static_assert", "TEST", "TEST_F", "TEST_P"}
BASES = re.compile(r"^((?:class|struct) \w+)(?: final)?(?: : [^{]*)?(?= \{)", re.MULTILINE)
CLASS = re.compile(r"^(?:class|struct) (\w+)(?: final)?(?: : [^{;]*)? \{", re.MULTILINE)
OVERRIDING = re.compile(r"(\w+)\([^;{]*\) (?:const )?(?:noexcept )?override")
DEFINE = re.compile(r"^#define (\w+)", re.MULTILINE)
OF_THE_FILE = re.compile(r"^(?:#define |extern const .*?|using (?=\w+ =))(\w+)(?=[\s(;])", re.MULTILINE)
BROUGHT_IN = re.compile(r"^using ([\w:]*?(\w+));$", re.MULTILINE)
ERROR_OF_CPP = re.compile(r": (?:fatal )?error: (?!.*,-warnings-as-errors\]$)", re.MULTILINE)
NO_CODE = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"|^#include.*', re.MULTILINE)
NAMED = re.compile(r"(?<![.>\w:])[A-Za-z_]\w*")  # less members, and what is of another namespace
MEMBER = re.compile(r"(?:[.>]|::)(\w+)")  # or of another namespace
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
    """What a source declares for itself alone, and may be renamed or not; what it names, or its headers
    declare; what it brings in from other namespaces; and which header defines which class."""

    renamed: frozenset[str]
    own: frozenset[str]
    seen: frozenset[str]
    brought: Mapping[str, str]
    defined: Mapping[tuple[str, str], Path]

    def rename(self, text: str, suffix: str) -> str:
        if not self.renamed:
            return text
        whole = re.compile(rf"(?<![\w.>:])({'|'.join(sorted(self.renamed))})\b")
        lines = text.splitlines()
        return "\n".join(line if line.startswith("#include") else whole.sub(rf"\1{suffix}", line) for line in lines)


@dataclass
class Unit:
    """Sources of one kind, and their names."""

    kind: Kind
    sources: list[Path] = field(default_factory=list)
    names: list[Names] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    brought: dict[str, str] = field(default_factory=dict)
    defined: dict[tuple[str, str], Path] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def takes(self, names: Names) -> bool:
        if len(self.sources) == SOURCES_OF_A_UNIT:
            return False
        apart = self.own.isdisjoint(names.seen) and self.seen.isdisjoint(names.own)
        apart &= not meets_another(self.brought, names.defined) and not meets_another(names.brought, self.defined)
        apart &= all(self.brought.get(name, of) == of for name, of in names.brought.items())
        return apart and all(self.defined.get(name, header) == header for name, header in names.defined.items())

    def add(self, source: Path, names: Names) -> None:
        self.sources.append(source)
        self.names.append(names)
        self.own |= names.own
        self.brought |= names.brought
        self.defined |= names.defined
        self.seen |= names.seen

    def write(self, root: Path) -> Path:
        """Writes the unit below a folder of the repository, where clang-tidy finds its configuration."""
        folder = root / self.kind.configuration.parent.relative_to(REPOSITORY)
        folder.mkdir(parents=True, exist_ok=True)
        if folder != root:
            shutil.copyfile(self.kind.configuration, folder / self.kind.configuration.name)
        text = "\n".join(self.texts())
        unit = folder / f"{self.sources[0].stem}_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cc"
        unit.write_text(text)
        return unit

    def texts(self) -> list[str]:
        pairs = enumerate(zip(self.sources, self.names, strict=True))
        return [names.rename(source.read_text(), f"Of{at}") for at, (source, names) in pairs]

    def sources_of(self, findings: str) -> list[Path]:
        """Those in whose lines of the unit the findings are; all where one is elsewhere, or is an error of C++."""
        places = re.findall(r"^\S*?(?:_[0-9a-f]{16}\.cc:(\d+)|:\d+):\d+: (?:error|warning): ", findings, re.MULTILINE)
        if not places or "" in places or re.search(ERROR_OF_CPP, findings):
            return self.sources
        ends = list(accumulate(text.count("\n") + 1 for text in self.texts()))
        return [self.sources[at] for at in sorted({bisect_left(ends, int(line)) for line in places})]


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
    """What is found in the sources, of which those are looked at by themselves in which the unit has a finding.

    Names of several may meet in the unit alone, and a check may see more of a function that another source defines.
    """
    if len(unit.sources) == 1:
        return look(unit.sources[0])
    found = look(unit.write(root))
    return "".join(map(look, unit.sources_of(found))) if found else ""


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
    """Its own are macros, aliases, others' constants, and what anonymous namespaces hold.

    Of the last, those are renamed that nothing has the name of that is written as a member.
    """
    text = source.read_text()
    code = NO_CODE.sub("", text)
    brought = {name: of for of, name in BROUGHT_IN.findall(text)}
    blocks = [BASES.sub(r"\1", BROUGHT_IN.sub("", block)) for block in ANONYMOUS.findall(text)]
    declared = {name for block in blocks for name in DECLARED.findall(block)} - NO_NAMES
    fixed = set(OF_THE_FILE.findall(ANONYMOUS.sub("", text))) | set(DEFINE.findall(text))
    headers: set[str] = set().union(*(DECLARED.findall(header.read_text()) for header in headers_of(source, folders)))
    others = {*headers, *brought, *MEMBER.findall(code), *OVERRIDING.findall(code)}
    renamed = {name for name in declared - fixed - others if len(name) >= SHORTEST_RENAMED}
    own = fixed | (declared - renamed)
    seen = {*NAMED.findall(code), *own} - renamed | headers
    defined = {name: header for header in headers_of(source, folders) for name in classes_of(header)}
    return Names(frozenset(renamed), frozenset(own), frozenset(seen), brought, defined)


def meets_another(brought: Mapping[str, str], defined: Iterable[tuple[str, str]]) -> bool:
    """Whether what is brought in has the name of a class that is defined in another namespace."""
    return any(not f"::{space}::{name}".endswith(f"::{brought.get(name, name)}") for space, name in defined)


@cache
def classes_of(header: Path) -> tuple[tuple[str, str], ...]:
    """Those that a header defines, each with the header's namespace."""
    text = header.read_text()
    namespace = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
    return tuple((namespace[1] if namespace else "", name) for name in CLASS.findall(text))


@cache
def headers_of(source: Path, folders: tuple[Path, ...]) -> frozenset[Path]:
    """The headers of the repository that a file includes, also through others."""
    places = ([folder / name for folder in folders] for name in INCLUDED.findall(source.read_text()))
    headers = [header for among in places if (header := next(filter(Path.exists, among), None)) is not None]
    return frozenset(headers).union(*(headers_of(header, folders) for header in headers))
