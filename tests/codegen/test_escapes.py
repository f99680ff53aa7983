"""Text of any characters, in each kind of output: what reads that output finds the text again and nothing else. The
readers are Python's parser and the C++ compiler."""

from __future__ import annotations

import ast
import doctest
import random
import re
import subprocess
import tokenize
from collections.abc import Callable
from io import BytesIO

import hostile
import jinja2
import pytest
from gradsmith_codegen import render, text
from gradsmith_codegen.text import Text, printable

PIECES = [
    *"\\\"'`?*_[]<>|~$&#!{}%()/-+=.: \n\t\x00\x1b\x85\u2028\u202e\udcff\u00e9\U0001f600aR1",
    '"""',
    "??/",
    ">>> ",
    "*/",
]


def _random_texts() -> list[str]:
    chance = random.Random(1)
    return ["".join(chance.choices(PIECES, k=chance.randrange(1, 60))) for _ in range(150)]


TEXTS = [*hostile.FILE_NAMES, *_random_texts()]


@pytest.mark.parametrize(
    "use",
    [
        str,
        lambda one: f"{one}",
        lambda one: f"{one:>9}",
        lambda one: "%s" % one,  # noqa: UP031 - one of the ways
        lambda one: "{}".format(one),  # noqa: UP032
        lambda one: "a" + one,
        lambda one: "".join([one]),
        lambda one: render._environment().from_string("{{ one }}").render(one=one),
        lambda one: render._environment().from_string("// {{ 'a' ~ one }}").render(one=one),
        lambda one: render._environment().from_string("{{ one | upper }}").render(one=one),
        lambda one: jinja2.Environment(autoescape=True).from_string("{{ one }}").render(one=one),
    ],
)
def test_a_text_that_is_not_escaped_is_refused(use: Callable[[Text], str]) -> None:
    with pytest.raises(TypeError):
        use(Text("a"))


def test_a_text_is_a_value() -> None:
    assert Text("a", Text("b"), "") == Text("ab")
    assert len({Text("a"), Text("a"), Text("b")}) == 2
    assert Text("a") != "a"
    assert [bool(Text(one)) for one in ("", "a")] == [False, True]


def test_what_is_not_printable_is_shown_by_its_code() -> None:
    assert printable("a\n\x1b\u202e\U000e0001\udcff\u00e9 b") == r"a\x0a\x1b\u202e\U000e0001\xff" + "\u00e9 b"


def _words(value: str) -> list[str]:
    return value.split()


@pytest.mark.parametrize("value", TEXTS)
def test_python(value: str) -> None:
    shown = printable(value)
    assert ast.literal_eval(text.py_string(Text(value))) == shown
    for indent in (0, 4):
        literal = ast.literal_eval(text.docstring(indent, Text(value)))
        assert _words(literal.replace("\\>>>", ">>>")) == _words(shown.replace("\\>>>", ">>>"))
        within = ast.literal_eval(f'"""First.\n\n    {text.docstring_text(indent, Text(value))}\n    """')
        assert doctest.DocTestParser().get_examples(literal) == doctest.DocTestParser().get_examples(within) == []
    source = f"{text.py_comment(Text(value))}\nx = 1\n".encode()
    assert tokenize.detect_encoding(BytesIO(source).readline)[0] == "utf-8"
    assert [type(node) for node in ast.parse(source).body] == [ast.Assign]


def test_cpp() -> None:
    """Strings are those bytes; after a comment the next line is read."""
    lines = ["#include <string_view>", "using namespace std::literals;"]
    for number, value in enumerate(TEXTS):
        data = ", ".join(f"char({byte})" for byte in printable(value).encode()) or "char(0)"
        length = len(printable(value).encode())
        lines += [
            f"constexpr char k{number}[] = {{{data}}};",
            f"static_assert({text.cpp_string(Text(value))}sv == std::string_view(k{number}, {length}));",
            f"static_assert(sizeof(int) > 1, {text.cpp_string(Text(value))});",
            text.cpp_comment(Text(value)),
            f"constexpr int kAfterLine{number} = 1;",
            text.doxygen(2, Text(value)),
            f"constexpr int kAfterBlock{number} = kAfterLine{number};",
            f"static_assert(kAfterBlock{number} == 1);",
        ]
    for more in (["-Wtrigraphs"], ["-trigraphs", "-Wno-trigraphs"]):
        command = [
            "c++",
            "-std=c++20",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            *more,
            "-x",
            "c++",
            "-",
        ]
        result = subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=False, capture_output=True)
        assert result.stderr == ""


@pytest.mark.parametrize("value", TEXTS)
def test_markdown(value: str) -> None:
    shown = printable(value)
    plain = text.md(Text(value))
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", plain) == shown.strip()  # as CommonMark undoes escapes
    bare = re.sub(r"\\.", "\0", plain)
    assert not re.search(r"[`*\[\]|~$\\]|<[A-Za-z/!?]|&#?[A-Za-z0-9]+;|^[-+#=>]|^[0-9]+[.)]", bare)
    code = text.md_cell_code(Text(value))
    fence = re.match("`+", code)
    assert fence
    body = code[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", body)
    assert not re.search(r"(?<!\\)\|", code)
    assert re.fullmatch("<!-- [^<>]* -->", text.html_comment(Text(value)))
