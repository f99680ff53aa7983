"""Every kind of fault, in every wording: a minimal file that has it, and the full text that the generator answers.

`pytest tests/codegen --refresh` writes the texts anew, to be read before they are committed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import said
from gradsmith_codegen import reader  # noqa: F401 - registers all rules
from gradsmith_codegen.diagnostics import RULES, format_text
from gradsmith_codegen.loader import read_source
from gradsmith_codegen.reader import load_source
from schemas import HEADERS

BAD = Path(__file__).parent / "bad"
MISSING = "G001_missing.yaml"  # there is no such file
NAMES = sorted({path.name for path in BAD.glob("*.yaml")} | {MISSING})


@pytest.mark.parametrize("name", NAMES)
def test_text(name: str, refresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)
    source, diagnostics = read_source(Path(name))
    schema = None
    if not diagnostics:
        schema, diagnostics = load_source(source, headers=HEADERS)
    text = format_text(diagnostics, source)
    expected = Path(name).with_suffix(".txt")
    if refresh:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")
    assert [diagnostic.id for diagnostic in diagnostics] == [name.partition("_")[0]]  # one fault, one diagnostic
    assert (schema is None) == (diagnostics[0].severity.value == "error")


def test_every_rule_has_a_file() -> None:
    assert {name.partition("_")[0] for name in NAMES} == set(RULES)


def test_every_text_has_its_file() -> None:
    assert sorted(path.with_suffix(".yaml").name for path in BAD.glob("*.txt")) == NAMES


# What is no fault of a schema, in sources that tell of such.
UNSAID = {
    "lists of dims whose ends nothing tells": "G316 refuses them",
    "no single pass computes this": "several passes do",
    ' for place in _range(_len(dims["': "of a Python expression that is generated",
    "a function among operations": "G821 refuses it",
}


def test_every_wording_has_a_file() -> None:
    """In each source that says something of some bad file, and in all checks."""
    told = subprocess.run([sys.executable, said.__file__], check=True, text=True, capture_output=True).stdout
    heard = {(name, line, column) for name, line, column in json.loads(told)}
    sources = {said.SOURCES / name for name, _, _ in heard} | set((said.SOURCES / "checks").glob("*.py"))
    texts = {place: text for source in sources for place, text in said.texts(source).items()}
    assert len(texts) > 700
    assert {text: place for place, text in texts.items() if place not in heard}.keys() == UNSAID.keys()
