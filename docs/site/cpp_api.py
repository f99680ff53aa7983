"""Pages of the C++ interface, from the comments of its headers.

Read is the form that these have: `///` above a declaration at the left margin, a class's `private:` last. Bodies are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_LEFT_OUT = ("foreign_macros_off.h", "foreign_macros_on.h", "language.h", "gradsmith.h")
_NAME = re.compile(
    r"(?:struct|class|enum class|enum|using)\s+(?:\[\[\w+\]\]\s*)?(\w+)|(\w+|operator\S+?)\s*\(|(\w+)\s*(?:=|;|\{)"
)
_SPECIFIERS = re.compile(r"^(template\s*<[^;{]*?>\s*\n)")


@dataclass(frozen=True)
class Declaration:
    name: str  # empty of what is said of the whole header
    comment: str  # Markdown
    code: str


def page(header: Path) -> str:
    """Empty of a header that declares nothing for callers."""
    found = list(declarations(header.read_text(encoding="utf-8")))
    if not found:
        return ""
    lines = [f"# gradsmith/{header.name}", "", "```cpp", f"#include <gradsmith/{header.name}>", "```", ""]
    for name, group in _grouped(found):
        lines += [f"## {name}", ""] if name else []
        for one in group:
            lines += [one.comment, "", *(["```cpp", one.code, "```", ""] if name else [])]
    return "\n".join(lines)


def index(names: Iterable[str]) -> str:
    """The page that leads to those of the headers, whose paths are given."""
    links = [f"- [gradsmith/{Path(name).stem}.h]({Path(name).name})" for name in names]
    return "\n".join(
        [
            "# The C++ interface",
            "",
            "What the headers declare for callers, and their comments. `#include <gradsmith/gradsmith.h>` has all of",
            "them, and the typed functions, structs and attributes of every",
            "[operator](../generated/docs/README.md).",
            "",
            *links,
            "",
        ]
    )


def headers(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.h")) if path.name not in _LEFT_OUT]


def _grouped(found: list[Declaration]) -> Iterator[tuple[str, list[Declaration]]]:
    """Overloads together, where the first stands."""
    groups: dict[str, list[Declaration]] = {}
    for one in found:
        groups.setdefault(one.name, []).append(one)
    yield from groups.items()


def declarations(text: str) -> Iterator[Declaration]:
    """Those with a comment, but of `internal`."""
    text = _without_internal(re.sub(r"^#(?:.*\\\n)*.*\n", "", text, flags=re.MULTILINE))
    for found in re.finditer(r"((?:^///.*\n)+)", text, re.MULTILINE):
        rest = text[found.end() :]
        is_of_file = rest.startswith("namespace")
        code = "" if is_of_file else _declaration(rest)
        name = _name_of(code)
        if name or is_of_file:
            yield Declaration(name, _markdown(found[0]), code)


def _without_internal(text: str) -> str:
    found = re.search(r"^namespace internal \{$", text, re.MULTILINE)
    while found:
        end = _end_of_braces(text, found.end() - 1)
        text = text[: found.start()] + text[end:]
        found = re.search(r"^namespace internal \{$", text, re.MULTILINE)
    return text


def _markdown(comment: str) -> str:
    """Its lines; those that are indented are code, in which `<` stands for itself."""
    lines = [line[3:].removeprefix(" ") for line in comment.splitlines()]
    return "\n".join([line if line.startswith("    ") else line.replace("<", "\\<") for line in lines])


def _name_of(code: str) -> str:
    head = _SPECIFIERS.sub("", code).split("\n///")[0]
    found = _NAME.search(re.sub(r"\[\[\w+\]\]\s*", "", head))
    return next((one for one in found.groups() if one), "") if found else ""


def _declaration(text: str) -> str:
    """From its first word to its end, without bodies."""
    end = _end_of_head(text)
    head = text[:end]
    if text[end : end + 1] != "{":
        return f"{head.strip()};" if end < len(text) else ""
    is_type = re.match(r"(template\s*<[^{;]*>\s*)?(struct|class|enum|union)\b", head)
    if not is_type:
        return f"{_without_initializers(head)};"
    return f"{head}{_class_body(text[end : _end_of_braces(text, end)])};"


def _end_of_head(text: str) -> int:
    """Where its semicolon or its body stands; a brace in a list of parameters is of a default."""
    depth = 0
    for place, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if mark in ";{" and depth == 0:
            return place
    return len(text)


def _without_initializers(head: str) -> str:
    head = re.sub(r"\)\s*:\s.*", ")", head, flags=re.DOTALL)
    return re.sub(r"\s*=\s*$", "", head.rstrip())


def _end_of_braces(text: str, start: int) -> int:
    """Behind the brace that closes that at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place + 1
    return len(text)


def _end_of_function(text: str, start: int) -> int:
    """Behind its body; a brace before that is of an initializer."""
    end = _end_of_braces(text, start)
    while re.match(r"\s*[),]", text[end:]):
        end = _end_of_braces(text, text.index("{", end))
    return end


def _class_body(body: str) -> str:
    """Its public part, whose functions end where their bodies begin."""
    body = re.sub(r"\n+ private:\n.*", "\n}", body, flags=re.DOTALL)
    made, place = "{", 1
    while place < len(body):
        mark = re.compile(r"//.*|[;{}]").search(body, place)
        if not mark:
            break
        statement = body[place : mark.start()]
        if mark[0] == "{" and "(" in statement and not statement.rstrip().endswith("="):
            made += f"{_without_initializers(statement)};"
            place = _end_of_function(body, mark.start())
        elif mark[0] == "{":
            end = _end_of_braces(body, mark.start())
            made += body[place:end]
            place = end
        else:
            made += body[place : mark.end()]
            place = mark.end()
    return made + body[place:]
