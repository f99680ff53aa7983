"""Random hostile names and texts of a schema: in no output do they become code."""

from __future__ import annotations

import ast
import random
import re
import tokenize
from io import StringIO

import hostile
import pytest
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.render import render
from schemas import HEADERS, SCALE, edited

MARK = "pwned"


def _hostile_text(chance: random.Random, characters: str) -> str:
    """Marks among characters that end or begin something in some output."""
    pieces = chance.choices([*characters, MARK, MARK, *hostile.TEXTS], k=chance.randrange(1, 12))
    return "".join(pieces) + MARK


def _quoted(text: str) -> str:
    escaped = re.sub(r'["\\]', r"\\\g<0>", text)
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped) + '"'


def _hostile_schema(chance: random.Random) -> str:
    names = chance.sample(sorted({*f"{hostile.INPUTS} {hostile.OUTPUTS} {hostile.INTS}".split()} - {"BFloat16"}), 5)
    docs = [_quoted(_hostile_text(chance, "\\\"'`?*_<>|/ #{}\t\xa0\u200d\u202e\\")) for _ in range(3)]
    return edited(
        SCALE,
        ("name: Scale", f'name: "{chance.choice(hostile.ops())}"'),
        ("doc: Y is X times factor.", f"doc: {docs[0]}"),
        ('X: {type: T, shape: [N, "*D"]}', f'"{names[0]}": {{type: "{names[4]}", shape: [N, "*D"], doc: {docs[1]}}}'),
        ("Y: {type: T, like: X}", f'"{names[1]}": {{type: "{names[4]}", like: "{names[0]}"}}'),
        ("factor: {type: float, default: 1.0}", f'"{names[2]}": {{type: float, default: 1.0, doc: {docs[2]}}}'),
        ("{T: float}", f'{{"{names[4]}": float}}'),
        ("X: [2, 3]", f'"{names[0]}": [2, 3]'),
    )


def _cpp_but_for_texts(text: str) -> str:
    """C++ without its comments and strings, as translation phases 1 to 3 of C++14 see it: trigraphs, then lines that
    continue, then what is a comment or a string."""
    text = text.replace("??/", "\\").replace("\\\n", "")
    return re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", text)


def _python_but_for_texts(text: str) -> str:
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    return " ".join(one.string for one in tokens if one.type not in (tokenize.STRING, tokenize.COMMENT))


@pytest.mark.parametrize("seed", range(4))
def test_hostile_names_and_texts_are_never_code(seed: int) -> None:
    chance = random.Random(seed)
    rendered = 0
    for _ in range(15):
        name = _hostile_text(chance, "\\\"'`?*_<>| \n\r\x00\x1b\u2028\u202e\udcff#{}").replace("/", "_")
        schema, diagnostics = load_source(source_of(name, _hostile_schema(chance)), headers=HEADERS)
        assert diagnostics == []
        for path, text in render(artefacts(make_plan(schema, shards=1))) if schema else ():
            rendered += 1
            assert text.isascii() or text.replace("\n", "").isprintable()
            if path.endswith((".h", ".cc")):
                assert MARK not in _cpp_but_for_texts(text)
            elif path.endswith((".py", ".pyi")):
                assert MARK not in _python_but_for_texts(text)
                ast.parse(text)
    assert rendered > 50
