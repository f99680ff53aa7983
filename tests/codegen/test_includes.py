"""Schemas of several files: whose operators there are, what references repeat, and where all of it is said to stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gradsmith_codegen.cli import main
from gradsmith_codegen.model import Schema
from gradsmith_codegen.reader import load_schema

HEAD = "schema_version: 1\ndomain: com.example\nsince_version: 1\n"
OP = """\
  - name: {name}
    doc: The third power of each element.
    formulas: {{Y: X * X * X}}
    backends: [cpu]
    inputs:
      X: {{type: T, shape: ["*D"]}}
    outputs:
      Y: {{type: T, like: X}}
    dims: {dims}
    rows: {rows}
    cases: {cases}
"""
PARTS = """\
schema_version: 1
shared:
  dims: &dims
    D: {length: [0, 8]}
  types: &types
    float: {T: float}
    double: {T: double}
  plain: &plain
    - {name: plain, X: [2, 3]}
"""


def op(name: str, dims: str = "parts.dims", rows: str = "parts.types", cases: str = "parts.plain") -> str:
    return OP.format(name=name, dims=dims, rows=rows, cases=cases)


def write(folder: Path, **texts: str) -> Path:
    """Writes `a__b` to a/b.yaml; returns the path of ops.yaml."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "ops.yaml"


def loaded(path: Path) -> Schema:
    schema, diagnostics = load_schema(path)
    assert diagnostics == []
    assert schema
    return schema


def places(schema: Schema) -> list[str]:
    return [f"{one.name} {schema.files.line(one.line)} of {schema.files.at(one.line).path}" for one in schema.ops]


def test_operators_of_included_files_come_first_and_each_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parts=PARTS,
        more__b=HEAD + "include: [../parts.yaml, c.yaml]\nops:\n" + op("B"),
        more__c=HEAD + "include: [../parts.yaml]\nops:\n" + op("C"),
        ops=HEAD + "include: [more/b.yaml, more/c.yaml, parts.yaml]\nops:\n" + op("A"),
    )
    assert [one.split(" of ")[0] for one in places(loaded(path))] == ["C 6", "B 6", "A 6"]
    assert [one.rpartition("/")[2] for one in places(loaded(path))] == ["c.yaml", "b.yaml", "ops.yaml"]


def test_a_reference_repeats_what_an_alias_would(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parts=PARTS,
        ops=HEAD
        + "include: [parts.yaml]\nops:\n"
        + op("A", rows="\n      <<: parts.types\n      half: {T: half}")
        + op("B", cases="\n      - parts.one").replace("parts.one", "{name: one, X: [1]}"),
    )
    first, second = loaded(path).ops
    assert [row.name for row in first.rows] == ["float", "double", "half"]
    assert [row.name for row in second.rows] == ["float", "double"]
    assert second.cases[0].name == "one"


def test_a_file_keeps_its_version(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parts=PARTS,
        b=HEAD.replace("since_version: 1", "since_version: 3") + "include: [parts.yaml]\nops:\n" + op("B"),
        ops=HEAD + "include: [b.yaml, parts.yaml]\nops:\n" + op("A"),
    )
    assert [one.since_version for one in loaded(path).ops] == [3, 0]


def test_references_reach_only_what_their_own_file_includes(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parts=PARTS,
        b=HEAD + "include: [parts.yaml]\nops:\n" + op("B"),
        ops=HEAD + "include: [b.yaml]\nops:\n" + op("A"),
    )
    assert [one.id for one in load_schema(path)[1]] == ["G041", "G041", "G041"]


def test_a_file_for_others_alone_has_no_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, ops=PARTS)
    assert main(["check", str(path)]) == 0
    assert main(["generate", "--schema", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "declares no operators" in capsys.readouterr().err


def generated(path: Path) -> dict[str, str]:
    out = path.parent / "out"
    assert main(["generate", "--schema", str(path), "--out", str(out), "--shards", "1"]) == 0
    return {one.relative_to(out).as_posix(): one.read_text("utf-8") for one in out.rglob("*.*")}


def test_generated_text_says_which_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        parts=PARTS,
        more__b=HEAD + "include: [../parts.yaml]\nops:\n" + op("B"),
        ops=HEAD + "# A comment.\ninclude: [more/b.yaml, parts.yaml]\nops:\n" + op("A"),
    )
    files = generated(path)
    table, shard = files["src/dispatch_table.cc"], files["src/ops_shard_0.cc"]
    assert "// more/b.yaml:6\nnamespace generated::b_stub" in table
    assert "// ops.yaml:7\nnamespace generated::a_stub" in table
    assert "kEntryLine = 7;" in table
    assert '.source_file = "more/b.yaml"' in shard
    assert "// ops.yaml: A, line 6 of the entry" in shard  # of its tensor
    assert (
        ".entry_line = &a_stub::kEntryLine,\n        .line_offset = 0," in shard
    )  # of its rows, which stand elsewhere
    assert ".entry_line = &b_stub::kEntryLine,\n        .line_offset = 0," in shard
    assert "-" not in "".join(line for line in shard.splitlines() if "line_offset" in line)
    assert str(tmp_path) not in table + shard
    assert "| `parts.yaml:6` |" in files["docs/A.md"]


def test_parts_that_no_operator_has_need_no_other_file(tmp_path: Path) -> None:
    text = HEAD + PARTS.partition("\n")[2] + "ops:\n" + op("A", "*dims", "*types", "*plain")
    assert "-" not in "".join(
        line
        for line in generated(write(tmp_path, ops=text))["src/ops_shard_0.cc"].splitlines()
        if "line_offset" in line
    )


def test_builds_learn_what_is_included(tmp_path: Path) -> None:
    path = write(tmp_path, parts=PARTS, ops=HEAD + "include: [parts.yaml]\nops:\n" + op("A"))
    options = [
        "--included",
        str(tmp_path / "included.txt"),
        "--depfile",
        str(tmp_path / "d"),
        "--stamp",
        str(tmp_path / "s"),
    ]
    assert main(["generate", "--schema", str(path), "--out", str(tmp_path / "out"), *options]) == 0
    assert (tmp_path / "included.txt").read_text() == f"{tmp_path.resolve()}/parts.yaml\n"
    assert f"  {tmp_path.resolve()}/parts.yaml \\\n" in (tmp_path / "d").read_text()


def test_verbs_name_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = HEAD + "include: [b.yaml, parts.yaml]\nops:\n" + op("A")
    path = write(tmp_path, parts=PARTS, b=HEAD + "include: [parts.yaml]\nops:\n" + op("B"), ops=own)
    assert main(["list", "--schema", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(one["op"], one["line"], one["file"]) for one in rows} == {
        (name, line, f"{tmp_path}/parts.yaml") for name in "AB" for line in (6, 7)
    }
    write(tmp_path, other=own.replace("b.yaml, ", ""), c="")
    assert main(["diff", str(path), str(tmp_path / "other.yaml")]) == 1
    assert capsys.readouterr().out.startswith(f"{tmp_path}/b.yaml:6: breaking: B: operator is gone")
    assert main(["new-op", "B", "--like", "A", "--schema", str(path)]) == 1
    assert f"{tmp_path}/b.yaml:6: there is an operator 'B' already" in capsys.readouterr().err
    assert main(["new-op", "C", "--like", "B", "--schema", str(path)]) == 1
    assert "stands in an included file" in capsys.readouterr().err
    assert main(["new-op", "C", "--like", "A", "--schema", str(path), "--write"]) == 0
    assert [one.name for one in loaded(path).ops] == ["B", "A", "C"]
    assert main(["fmt", "--check", str(path)]) in (0, 1)


def test_fmt_keeps_what_is_meant(tmp_path: Path) -> None:
    text = "ops:\n" + op("A") + "since_version: 1\ndomain: com.example\ninclude: [ parts.yaml ]\nschema_version: 1\n"
    path = write(tmp_path, parts=PARTS, ops=text)
    assert main(["fmt", str(path)]) == 0
    assert path.read_text().startswith(
        "schema_version: 1\ninclude: [parts.yaml]\ndomain: com.example\nsince_version: 1\n"
    )
    assert main(["fmt", str(write(tmp_path, ops=PARTS))]) == 0
    assert (tmp_path / "ops.yaml").read_text() == PARTS


def test_faults_of_an_included_file_are_told_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = HEAD + "include: [parts.yaml]\nops:\n" + op("B").replace("like: X", "like: Z").replace("X * X * X", "X * Q")
    path = write(tmp_path, parts=PARTS, b=bad, c="", ops=HEAD + "include: [b.yaml, c.yaml]\n")
    assert main(["check", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["id"], Path(one["file"]).name, one["line"]) for one in found] == [("G004", "c.yaml", None)]
    write(tmp_path, ops=HEAD + "include: [b.yaml]\n")
    assert main(["check", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["id"], Path(one["file"]).name, one["line"], one["column"]) for one in found] == [
        ("G805", "b.yaml", 8, 23),
        ("G301", "b.yaml", 13, 26),
    ]
