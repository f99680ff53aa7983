"""Text that an author wrote, and the one place where it is escaped for each kind of output.

What the generator writes is made of three things: the templates' own words; names, which the checks hold
to letters, digits and a few marks; and text of any characters, which is `Text`: documentation, and the name
of the schema's file. A `Text` is no str and does not become one by itself, so that a template that forgets to
escape it fails at once.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NoReturn

from .wrapping import wrapped


class Text:
    """Text of any characters. The functions of this module alone make a str of it, each for one kind of
    output."""

    __slots__ = ("_characters",)

    def __init__(self, *parts: str | Text) -> None:
        self._characters: str = "".join(
            [part if isinstance(part, str) else part._characters for part in parts]
        )

    def __bool__(self) -> bool:
        return bool(self._characters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self._characters == other._characters

    def __hash__(self) -> int:
        return hash(self._characters)

    def __repr__(self) -> str:
        return f"Text({self._characters!r})"

    def __str__(self) -> NoReturn:
        raise TypeError("an author's text goes into an output by a function of gradsmith_codegen.text")

    def __format__(self, _: str) -> NoReturn:
        self.__str__()


NO_TEXT = Text()


def printable(text: str) -> str:
    """The text on one line, without what controls a terminal or the direction of writing: such characters,
    and bytes of a file's name that are no UTF-8, are shown by their codes."""
    return text if text.isprintable() else "".join([one if one.isprintable() else _code(one) for one in text])


def _code(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # how Python keeps a byte that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _joined(parts: tuple[str | Text, ...]) -> str:
    """What is shown of the parts in a row."""
    return printable(Text(*parts)._characters)


# ----------------------------------------------------------------------------------------------------
# Terminals and JSON


@cache
def plain(*parts: str | Text) -> str:
    """A line of a terminal, or a string of JSON."""
    return _joined(parts)


# ----------------------------------------------------------------------------------------------------
# C++


@cache
def cpp_string(*parts: str | Text) -> str:
    """A string literal. All its escapes are those that messages of static_assert may have as well."""
    text = _joined(parts).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"(?<=\?)\?", r"\\?", text) + '"'  # without trigraphs


@cache
def cpp_comment(*parts: str | Text) -> str:
    """A comment that is a line, however long."""
    return _commented(f"// {_joined(parts)}")


@cache
def doxygen(indent: int, *parts: str | Text) -> str:
    """A Doxygen comment, wrapped as clang-format would."""
    return _commented(wrapped(_joined(parts), " " * indent + "/// "))


_CONTINUATION = re.compile(r"(\\|\?\?/)[ \t]*$", re.MULTILINE)


def _commented(lines: str) -> str:
    """A backslash at a line's end, or the trigraph of one, would take the next line into the comment."""
    return _CONTINUATION.sub(lambda end: "&#92;" if end[1] == "\\" else "??&#47;", lines)


# ----------------------------------------------------------------------------------------------------
# Python


@cache
def py_string(*parts: str | Text) -> str:
    """A string literal, in the quotes that need the fewest escapes."""
    text = _joined(parts).replace("\\", "\\\\")
    return f"'{text}'" if '"' in text and "'" not in text else '"' + text.replace('"', '\\"') + '"'


@cache
def py_comment(*parts: str | Text) -> str:
    """A comment that is a line; it never declares the file's encoding (PEP 263)."""
    return "# " + re.sub("(?<=coding)[:=]", lambda mark: f"\\x{ord(mark[0]):02x}", _joined(parts))


@cache
def docstring_text(indent: int, *parts: str | Text) -> str:
    """Text within a docstring, wrapped; its first line is indented already."""
    escaped = re.sub(r'\\|"(?="|\Z)', r"\\\g<0>", _joined(parts).rstrip())
    lines = wrapped(escaped, " " * indent)
    return re.sub(r"^( *)>>>", r"\1\\\\>>>", lines, flags=re.MULTILINE).lstrip()  # which is no doctest


@cache
def docstring(indent: int, *parts: str | Text) -> str:
    """The whole docstring of something small."""
    return f'"""{docstring_text(indent + 3, *parts)}"""'


# ----------------------------------------------------------------------------------------------------
# Markdown

# What opens or closes markup anywhere, and what does at a paragraph's start.
_MARKDOWN = re.compile(
    r"[\\`*\[\]|~$]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=#?[A-Za-z0-9]+;)|^[-+#=>]|^[0-9]{1,9}[.)]"
)


@cache
def md(*parts: str | Text) -> str:
    """Plain text in a paragraph or in a cell of a table."""
    return _MARKDOWN.sub(lambda mark: f"{mark[0][:-1]}\\{mark[0][-1]}", _joined(parts).strip())


@cache
def md_code(*parts: str | Text) -> str:
    """Code in a paragraph."""
    text = _joined(parts)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, blank = "`" * (longest + 1), " " if "`" in text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


@cache
def md_cell_code(*parts: str | Text) -> str:
    """Code in a cell of a table, where a bar would end the cell in code as well."""
    return md_code(*parts).replace("|", "\\|")


@cache
def html_comment(*parts: str | Text) -> str:
    """A comment of HTML, and so of Markdown."""
    text = _joined(parts).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<!-- {text} -->"
