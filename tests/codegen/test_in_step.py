"""What the generator knows of the runtime and says in its documentation, against these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gradsmith_codegen import grammar, lists, reader, vocabulary  # noqa: F401 - reader registers all rules
from gradsmith_codegen.checks.names import RUNTIME_NAMES
from gradsmith_codegen.checks.shapes import MAX_SYMBOLS
from gradsmith_codegen.cli import main
from gradsmith_codegen.diagnostics import RULES
from gradsmith_codegen.model import AttributeKind, Backend, Layout
from gradsmith_codegen.vocabulary import RUNTIME_ENUMS

TABLE = re.compile(r"(?<=<!-- The table below is generated: pytest tests/codegen --refresh -->\n\n).*", re.DOTALL)


def _runtime(repository: Path, name: str) -> str:
    return (repository / "runtime" / name).read_text(encoding="utf-8")


def test_enumerators(repository: Path) -> None:
    text = _runtime(repository, "include/gradsmith/attributes.h")
    enums = dict(re.findall(r"enum class (\w+)[^{]*\{([^}]*)\}", text))
    found = {name: tuple(re.findall(r"\w+", body)) for name, body in enums.items()}
    assert found == RUNTIME_ENUMS


def test_backends(repository: Path) -> None:
    text = _runtime(repository, "include/gradsmith/types.h")
    enums = dict(re.findall(r"enum class (\w+)[^{]*\{([^}]*)\}", text))
    assert re.findall(r"\w+", enums["Backend"]) == [f"k{backend.value.capitalize()}" for backend in Backend]


def test_limits(repository: Path) -> None:
    text = _runtime(repository, "include/gradsmith/tensor.h")
    assert re.findall(r"class BasicList.*?int kCapacity = (\d+);", text, re.DOTALL) == [str(grammar.MAX_RANK)]
    text = _runtime(repository, "core/shape_symbols.h")
    assert re.findall(r"int kCapacity = (\d+);", text) == [str(MAX_SYMBOLS)]
    text = _runtime(repository, "core/list_schema.h")
    assert re.findall(r"int kMaxListLength = (\d+);", text) == [str(lists.MAX_LENGTH)]


def test_names_that_the_runtime_takes(repository: Path) -> None:
    headers = [*(repository / "runtime/include/gradsmith").glob("*.h"), repository / "runtime/core/kernel_arguments.h"]
    text = "\n".join(re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in headers)
    attribute = r"(?:\[\[\w+\]\] )?"
    types = re.findall(rf"^(?:class|struct|enum class) {attribute}([A-Z]\w*)", text, re.MULTILINE)
    aliases = re.findall(r"^using ([A-Z]\w*) =", text, re.MULTILINE)
    functions = re.findall(r"^(?:inline |constexpr |\[\[nodiscard\]\] )*[\w:<>]+ ([A-Z]\w*)\(", text, re.MULTILINE)
    assert {"Status", "Dims", "TensorView", "RequiredInput"} <= {*types, *aliases, *functions}
    assert {*types, *aliases, *functions} <= RUNTIME_NAMES


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/schema.md").read_text(encoding="utf-8")


def test_the_page_has_every_rule(page: str, repository: Path, refresh: bool) -> None:
    rows = [
        f"| {rule.id} | {rule.severity.value} | {rule.doc} |\n" for rule in sorted(RULES.values(), key=lambda r: r.id)
    ]
    table = "| id | severity | what is wrong |\n|---|---|---|\n" + "".join(rows)
    if refresh:
        page = TABLE.sub(lambda _: table, page)
        (repository / "docs/schema.md").write_text(page, encoding="utf-8")
    found = TABLE.search(page)
    assert found
    assert found.group() == table


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("The file", vocabulary.SCHEMA.all),
        ("An operator", vocabulary.OP.all),
        ("A tensor", vocabulary.OUTPUT.all),
        ("A symbol", vocabulary.SYMBOL.all),
        ("An attribute", vocabulary.ATTRIBUTE.all),
        ("A case", vocabulary.CASE.all),
        ("An attribute", [kind.value for kind in AttributeKind]),
        ("A row", [*vocabulary.TYPES]),
        ("An operator", [backend.value for backend in Backend]),
        ("A case", [layout.value for layout in Layout]),
    ],
)
def test_the_page_explains_every_key_and_word(page: str, section: str, keys: list[str]) -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert [key for key in keys if f"`{key}`" not in sections[section]] == []


def test_the_small_schema_of_the_page_is_whole(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who copies it into a file can check it, and make a library of it."""
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "file.yaml"
    path.write_text(example, encoding="utf-8")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr() == (f"{path}: 1 operator, 2 rows (2 on cpu, 2 on cuda), no errors\n", "")
    assert main(["generate", str(path), "--out", str(tmp_path / "out")]) == 0
