"""Whatever stands in the file, the answer is a schema or diagnostics."""

from __future__ import annotations

import ast
import random
import re
import tokenize
from io import StringIO
from pathlib import Path
from typing import Any

import hostile
import pytest
import yaml
from gradsmith_codegen.diagnostics import Severity, format_json, format_text
from gradsmith_codegen.loader import read_source, source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.render import artefacts, render
from schemas import CONVOLVE, HEADERS, SCALE, edited, load

MUTANTS = 300

SNIPPETS = (
    [
        "no",
        "010",
        "1_000",
        "12:30",
        "1e3",
        "~",
        "''",
        "[]",
        "{}",
        "- a",
        "? b",
        "*conv_attributes",
        "&x",
        "!!int",
    ]
    + [
        "<<: *epsilon",
        "\t",
        "\x00",
        "\u2028",
        "\ufeff",
        "名",
        "*D",
        "C / 0",
        "-1",
        "9" * 30,
        "...",
        "---",
        "%",
        "|",
    ]
    + [
        ": ",
        ", ",
        "'",
        '"',
        "#",
        "[" * 70,
        "{a: " * 9,
        "like: X",
        "optional: true",
        "gradient_of: Y",
        "Conv",
        "X",
    ]
    + [
        "T",
        "min: 2",
        "D",
        "group",
        "length: D",
        "\\",
        "\r",
        "null",
        "true",
        "[1, 2",
        "SAME_UPPER",
        "!x",
        "&a *a",
    ]
)


def _mutant(lines: list[str], chance: random.Random) -> str:
    """A few lines deleted, doubled, moved, cut, or with something foreign in them."""
    lines = list(lines)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at = chance.randrange(len(lines))
        line = lines[at]
        column = chance.randrange(len(line) + 1)
        match chance.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, line)
            case 2:
                lines.insert(chance.randrange(len(lines)), lines.pop(at))
            case 3:
                lines[at] = line[:column]
            case 4:
                lines[at] = line[:column] + line[column + 1 :]
            case 5:
                lines[at] = line[:column] + chance.choice(SNIPPETS) + line[column:]
            case 6:
                words = line.split(" ")
                words[chance.randrange(len(words))] = chance.choice(SNIPPETS)
                lines[at] = " ".join(words)
            case _:
                lines[at] = " " * chance.randrange(9) + line.lstrip()
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(10))
def test_any_text_gives_a_schema_or_diagnostics(seed: int, ops_yaml: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = ops_yaml.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "ops.yaml"
    faulty = 0
    for _ in range(MUTANTS // 10):
        path.write_text(_mutant(lines, chance), encoding="utf-8")
        source, diagnostics = read_source(path)
        schema = None
        if not diagnostics:
            schema, diagnostics = load_source(source)
        assert schema or diagnostics
        faulty += schema is None
        assert format_text(diagnostics, source).count("\n") >= len(diagnostics)
        assert format_json(diagnostics, source)
        for diagnostic in diagnostics:
            for place in (diagnostic.span, *(note.span for note in diagnostic.notes)):
                assert place is None or _is_in(place.line, place.column, place.length, source.lines)
    assert faulty > MUTANTS // 20  # most mutations matter


def _is_in(line: int, column: int, length: int, lines: object) -> bool:
    assert isinstance(lines, list)
    return 1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1 and length >= 1


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_give_diagnostics(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_bytes(random.Random(seed).randbytes(1000))
    _, diagnostics = read_source(path)
    assert [diagnostic.id for diagnostic in diagnostics] == ["G002"]


# Values that mean something in another place.
VALUES: list[object] = [
    *(
        "D",
        "X",
        "Y",
        "T",
        "N",
        "M",
        "group",
        "ints",
        "int",
        "enum",
        "AutoPad",
        "half",
        "cpu",
        "Convolve",
        "2 * D",
    ),
    *(
        "*D",
        "*K",
        "C / group",
        "conv::OutputSpatial(D)",
        "conv::OutputSpatial(K, D)",
        "pool::X",
        "SAME_LOWER",
    ),
    *(0, 1, -1, 9, 1.5, 2**62, True, None, "no", [], {}, [1], [0, 0], [3, 1], ["N", "*D"], [2, 4, 5, 6]),
]
KEYS = "X W Y like optional gradient_of in_place_of min max length rule multiple_of shape type D N M layout group"


def _places(value: object) -> list[tuple[Any, Any]]:
    """Every container of the tree with every key or index in it."""
    if not isinstance(value, (dict, list)):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def _rearranged(chance: random.Random) -> str:
    """A schema in which values are missing, doubled under other keys, or of another place."""
    schema = yaml.safe_load(CONVOLVE)
    for _ in range(chance.choice([1, 1, 2, 3])):
        container, key = chance.choice(_places(schema["ops"]))
        change = chance.randrange(4)
        if change == 0:
            del container[key]
        elif change == 1 and isinstance(container, dict):
            container[chance.choice(KEYS.split())] = container[key]
        else:
            container[key] = chance.choice(VALUES)
        if not _places(schema["ops"]):
            break
    return yaml.safe_dump(schema, sort_keys=False)


@pytest.mark.parametrize("seed", range(4))
def test_any_structure_gives_a_schema_or_diagnostics(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        schema, diagnostics = load(_rearranged(chance))
        assert schema or any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
        if schema:
            assert all(case.all_shapes for op in schema.ops for case in op.cases)


MARK = "pwned"


def _hostile_text(chance: random.Random, characters: str) -> str:
    """Marks among characters that end or begin something in some output."""
    pieces = chance.choices([*characters, MARK, MARK, *hostile.TEXTS], k=chance.randrange(1, 12))
    return "".join(pieces) + MARK


def _hostile_schema(chance: random.Random) -> str:
    names = chance.sample(sorted({*f"{hostile.INPUTS} {hostile.OUTPUTS} {hostile.INTS}".split()} - {"BFloat16"}), 5)
    texts = [_hostile_text(chance, "\\\"'`?*_<>|/ #{}") for _ in range(3)]
    docs = ["'" + text.replace("'", "''") + "'" for text in texts]
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
        assert {diagnostic.id for diagnostic in diagnostics} <= {"G024"}  # a backslash where a comment may end
        for path, text in render(artefacts(make_plan(schema, shards=1))) if schema else ():
            rendered += 1
            assert text.isascii() or text.replace("\n", "").isprintable()
            if path.endswith((".h", ".cc")):
                assert MARK not in _cpp_but_for_texts(text)
            elif path.endswith((".py", ".pyi")):
                assert MARK not in _python_but_for_texts(text)
                ast.parse(text)
    assert rendered > 50
