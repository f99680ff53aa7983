"""From text to nodes: places, anchors, the two parsers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from gradsmith_codegen.diagnostics import Diagnostic, format_text
from gradsmith_codegen.loader import MAX_DEPTH, Mapping, Scalar, Sequence, compose, read_source, source_of
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.spans import Span
from schemas import SCALE, edited, load

BAD = Path(__file__).parent / "bad"


def _root(text: str) -> Mapping:
    root, _, diagnostics = compose(source_of("ops.yaml", text))
    assert not diagnostics
    assert isinstance(root, Mapping)
    return root


def _value_span(text: str) -> Span:
    return _root(text).items[1].span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a: word", Span(1, 4, 4)),
        ("a: two words  # comment", Span(1, 4, 9)),
        ("a: 'quoted'", Span(1, 4, 8)),
        ("a: [1, 2]", Span(1, 4, 6)),
        ("a: [1,\n  2]", Span(1, 4, 3)),
        ("a:\n  - 1\n  - 2", Span(2, 3, 3)),
        ("a: |\n  text\n  text", Span(1, 4, 1)),
        ("a: folded\n  text", Span(1, 4, 6)),
        ("a:", Span(1, 3, 1)),
        ("\u00e9\u00e9: word", Span(1, 5, 4)),
    ],
)
def test_spans(text: str, span: Span) -> None:
    assert _value_span(text) == span


def test_a_span_leaves_the_anchor_out() -> None:
    assert _root("a: &here word\nb: *here").items[1].span == Span(1, 10, 4)


def test_an_alias_is_the_very_node() -> None:
    first, second = _root("a: &here [1]\nb: *here").items[1::2]
    assert first is second


def test_scalars_are_source_text() -> None:
    values = [item for item in _root("a: 010\nb: '010'\nc: no").items[1::2] if isinstance(item, Scalar)]
    assert [(item.value, item.plain) for item in values] == [("010", True), ("010", False), ("no", True)]


def test_a_byte_order_mark_and_foreign_line_ends_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SCALE.replace("\n", "\r\n").encode())
    source, diagnostics = read_source(path)
    assert not diagnostics
    assert load_source(source) == load_source(source_of("ops.yaml", SCALE))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_a_fault_and_no_crash(opening: str) -> None:
    _, _, diagnostics = compose(source_of("ops.yaml", opening * 100_000))
    assert [diagnostic.id for diagnostic in diagnostics] == ["G019"]


def test_some_nesting_is_none() -> None:
    _, _, diagnostics = compose(source_of("ops.yaml", "[" * MAX_DEPTH + "]" * MAX_DEPTH))
    assert not diagnostics


def test_a_bomb_is_read_as_quickly_as_any_text() -> None:
    levels = ["  - &a0 [x, x]"]
    levels += [f"  - &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    schema, diagnostics = load(edited(SCALE, ("ops:\n", "ops:\n" + "\n".join(levels) + "\n")))
    assert schema is None
    assert {diagnostic.id for diagnostic in diagnostics} == {"G010", "G035"}


def test_a_bomb_of_merges_is_read_as_quickly_as_any_text() -> None:
    levels = ["  a0: &a0 {x: 1}"]
    levels += [f"  a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 30)]
    schema, diagnostics = load(edited(SCALE, ("ops:\n", "bomb:\n" + "\n".join(levels) + "\nops:\n")))
    assert schema is None
    assert [diagnostic.id for diagnostic in diagnostics if diagnostic.id != "G022"] == ["G008"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, make: object, words: str) -> None:
    path = tmp_path / "ops.yaml"
    make(path)  # type: ignore[operator]
    source, diagnostics = read_source(path)
    assert source.text == ""
    assert [(diagnostic.id, words in diagnostic.message) for diagnostic in diagnostics] == [("G001", True)]


def test_a_path_that_no_file_can_have() -> None:
    _, diagnostics = read_source(Path("a\0b"))
    assert [diagnostic.id for diagnostic in diagnostics] == ["G001"]


# The parser in C is faster; what it finds must not differ from what the one in Python finds.

PARSERS = [yaml.BaseLoader] + ([yaml.CBaseLoader] if yaml.__with_libyaml__ else [])


def _outcome(path: Path, parser: object) -> tuple[object, str]:
    source, diagnostics = read_source(path)
    if diagnostics:
        return None, format_text(diagnostics, source)
    schema, diagnostics = load_source(source, parser)
    return schema, format_text(diagnostics, source)


@pytest.mark.skipif(len(PARSERS) == 1, reason="PyYAML has been built without libyaml")
@pytest.mark.parametrize("name", [*sorted(path.name for path in BAD.glob("*.yaml")), "ops.yaml"])
def test_both_parsers_give_the_same(name: str, ops_yaml: Path) -> None:
    path = ops_yaml if name == "ops.yaml" else BAD / name
    assert _outcome(path, yaml.CBaseLoader) == _outcome(path, yaml.BaseLoader)


SYNTAX_FAULTS = {
    "a: [1, 2": "expected ',' or ']'",
    "a: {b: 1]": "expected ',' or '}'",
    "a: 'b": "this quoted text has no end",
    'a: "\\q"': "unknown escape sequence in this quoted text",
    "a: @b": "'@' cannot start a value; quote the text",
    "a: b: c": "':' is not allowed here; check the indentation, or quote the text",
    "a:\n\t- b": "a tab stands here; indent with spaces",
    "a: - b": "'- ' is not allowed here; check the indentation, or quote the text",
    "a: &  b": "expected a name after '&'",
    "a: * b": "expected a name after '*'; quote the text to mean an asterisk",
    "a: |b\n  c": "'|' and '>' start a block of text on the next line; quote the text",
    "a: 1\n  b: 2\n c: 3": "':' is not allowed here; check the indentation, or quote the text",
    "a:\n  - b\n c: 1": "this does not line up with what is around it",
    "a:\n  - b\n  c: 1": "this does not line up with what is around it",
    "a: 1\nb\nc: 2": "expected ':' after this key",
    "%YAML x\n---\na: 1": "bad YAML directive",
    "a: !<b c": "bad YAML tag",
    "a: [b, ,]": "expected a value",
    " a: 1\nb: 2": "this does not line up with what is around it",
}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("text", SYNTAX_FAULTS)
def test_syntax_faults_are_said_in_our_words(text: str, parser: object) -> None:
    _, _, diagnostics = compose(source_of("ops.yaml", text), parser)
    faults = [diagnostic for diagnostic in diagnostics if diagnostic.id == "G003"]
    assert [fault.message for fault in faults] == [SYNTAX_FAULTS[text]]


def test_the_place_of_a_syntax_fault_is_in_the_text() -> None:
    for text in SYNTAX_FAULTS:
        for diagnostic in compose(source_of("ops.yaml", text)).diagnostics:
            assert _is_in(diagnostic, text)


def _is_in(diagnostic: Diagnostic, text: str) -> bool:
    lines = text.split("\n")
    span = diagnostic.span
    return span is not None and span.line <= len(lines) and span.column <= len(lines[span.line - 1]) + 1


def test_reading_does_not_recurse() -> None:
    limit = sys.getrecursionlimit()
    text = "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    sys.setrecursionlimit(150)
    try:
        root, _, diagnostics = compose(source_of("ops.yaml", text))
    finally:
        sys.setrecursionlimit(limit)
    assert not diagnostics
    assert isinstance(root, Mapping)
    assert isinstance(root.items[1], Sequence)
