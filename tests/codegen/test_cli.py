"""The command line, as a user starts it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
import yaml
from gradsmith_codegen.cli import main
from schemas import KERNELS, SCALE, edited

BAD = edited(SCALE, ("{T: float}", "{T: flaot}"))


VERBS = (["check"], ["list"], ["generate"])
PACKAGE = Path(__file__).resolve().parents[2] / "codegen"


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


class Run(Protocol):
    def __call__(self, *arguments: object, cwd: Path | None = None) -> Result: ...


def _with_kernels(arguments: Sequence[object]) -> list[str]:
    """The arguments of a verb, and where the kernels of the small schemas are."""
    given = [str(argument) for argument in arguments]
    return [given[0], "--kernels", str(KERNELS), *given[1:]] if given[:1] in VERBS else given


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line within this process."""

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        with monkeypatch.context() as context:
            if cwd:
                context.chdir(cwd)
            try:
                status = main(_with_kernels(arguments))
            except SystemExit as end:  # argparse's way out
                status = int(str(end.code))
        return Result(status, *capsys.readouterr())

    return run


def _start(*arguments: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Result:
    """Starts the command line as a program of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "gradsmith_codegen", *_with_kernels(arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    return Result(result.returncode, result.stdout, result.stderr)


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "ops.yaml"
    path.write_text(SCALE, encoding="utf-8")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD, encoding="utf-8")
    return path


def _tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- check ---


def test_check_of_a_schema_without_faults(run: Run, schema: Path) -> None:
    result = run("check", "--schema", schema)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{schema}: 1 operator, 1 row (1 on cpu), no errors\n"


def test_check_counts_rows_as_the_schema_has_them_and_on_each_backend(run: Run, ops_yaml: Path) -> None:
    schema = yaml.safe_load(ops_yaml.read_text(encoding="utf-8"))
    backends = [row.get("backends", op["backends"]) for op in schema["ops"] for row in op["rows"].values()]
    cpu, cuda = (sum(backend in some for some in backends) for backend in ("cpu", "cuda"))
    counts = f"{len(backends)} rows ({cpu} on cpu, {cuda} on cuda)"
    assert run("check", ops_yaml).stdout == f"{ops_yaml}: {len(schema['ops'])} operators, {counts}, no errors\n"


@pytest.mark.parametrize("verb", ["check", "list", "generate"])
def test_the_schema_is_named_by_position_or_as_an_option(run: Run, schema: Path, tmp_path: Path, verb: str) -> None:
    out = ["--out", tmp_path / "out"] if verb == "generate" else []
    given = run(verb, "--schema", schema, *out)
    assert given.returncode == 0
    assert run(verb, *out, schema).stdout == run(verb, schema, *out).stdout
    assert verb == "generate" or run(verb, schema).stdout == given.stdout
    for twice in ([schema, "--schema", schema], ["--schema", schema, schema], ["--schema", "a", "--schema", schema]):
        result = run(verb, *twice, *out)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"{verb}: error: one schema at a time: " in result.stderr


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (["check"], ["--json"]),
        (["list"], ["--json", "--backend", "cpu"]),
        (["fmt"], ["--check"]),
        (["explain", "Scale"], ["--json"]),
        (["explain", "Scale", "float"], ["--json"]),
        (["explain"], ["--json", "Scale", "float"]),
        (["new-op", "Twice"], ["--formula", "Y: 2 * X", "--attribute", "a=1", "--formula", "z: a * X"]),
        (["new-op", "Twice"], ["--like", "Scale"]),
    ],
)
def test_every_verb_takes_the_schema_by_position_or_as_an_option(
    run: Run, tmp_path: Path, before: list[str], behind: list[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(edited(SCALE, ("ops:\n", "\nops:\n")), encoding="utf-8")
    kernels = [] if before[0] == "fmt" else ["--kernels", str(KERNELS)]
    given = run(*before, *kernels, "--schema", path, *behind)
    assert (given.returncode, given.stderr) == (0, "")
    assert run(*before, *behind, *kernels, path) == given
    if before != ["explain"]:  # whose operator comes before the file
        assert run(*before, path, *kernels, *behind) == given
    assert run(*before, *kernels, *behind, cwd=tmp_path).returncode == 1  # which has no ops.yaml
    twice = run(*before, *behind, path, "--schema", path)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert f"{before[0]}: error: one schema at a time: {path} and {path} were given" in twice.stderr


def test_what_stands_behind_two_dashes_is_no_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "-my.yaml").write_text(SCALE, encoding="utf-8")
    assert run("check", "--", "-my.yaml", cwd=tmp_path).stdout == "-my.yaml: 1 operator, 1 row (1 on cpu), no errors\n"


def test_diff_compares_with_ops_yaml_unless_another_is_named(run: Run, schema: Path) -> None:
    old = schema.parent / "old.yaml"
    old.write_text(edited(SCALE, ("doc: Y is", "doc: Y was")), encoding="utf-8")
    told = run("diff", old, schema)
    assert told.returncode == 0
    assert "compatible: Scale: doc changed" in told.stdout
    assert run("diff", old, "--schema", schema) == run("diff", "--schema", schema, old) == told
    assert run("diff", "old.yaml", cwd=schema.parent).stdout == told.stdout.replace(f"{schema.parent}/", "")


@pytest.mark.parametrize("verb", ["check", "list", "generate", "fmt", "explain", "new-op", "diff"])
def test_the_help_of_every_verb_has_the_schema_in_both_ways(run: Run, verb: str) -> None:
    told = " ".join(run(verb, "--help").stdout.split())
    position = "NEW" if verb == "diff" else "FILE"
    assert f"[{position}]" in told
    assert f"--schema FILE the same as {position}" in told


def test_the_default_schema_is_ops_yaml_here(run: Run, schema: Path) -> None:
    assert run("check", cwd=schema.parent).stdout.startswith("ops.yaml: ")


def test_check_shows_faults_and_the_path_as_given(run: Run, bad: Path) -> None:
    result = run("check", "--schema", "bad.yaml", cwd=bad.parent)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "bad.yaml:18:18: error[G014]: unknown type 'flaot'; did you mean 'float'?\n"
        "   18 |       float: {T: flaot}\n"
        "      |                  ^~~~~\n"
        "1 error\n"
    )


def test_check_as_json(run: Run, schema: Path, bad: Path) -> None:
    clean = run("check", "--schema", schema, "--format", "json")
    assert (clean.returncode, json.loads(clean.stdout), clean.stderr) == (0, [], "")
    result = run("check", "--schema", bad, "--format", "json")
    assert (result.returncode, result.stderr) == (1, "")
    (fault,) = json.loads(result.stdout)
    assert (fault["id"], fault["line"], fault["column"], fault["end_column"]) == ("G014", 18, 18, 23)


def test_a_warning_is_shown_and_does_not_fail(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(edited(SCALE, ("rows:", "rows: &unused")), encoding="utf-8")
    result = run("check", "--schema", path)
    assert result.returncode == 0
    assert "warning[G022]" in result.stderr


def test_a_missing_schema_is_a_fault(run: Run, tmp_path: Path) -> None:
    result = run("check", "--schema", tmp_path / "none.yaml")
    assert result.returncode == 1
    assert "error[G001]: cannot read the schema: No such file or directory" in result.stderr


@pytest.mark.parametrize("error", [ZeroDivisionError("division\nby zero"), RecursionError(), MemoryError()])
def test_a_fault_of_the_generator_is_told_in_a_line(
    run: Run, schema: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("gradsmith_codegen.reader.check", fail)
    result = run("check", schema)
    assert (result.returncode, result.stdout) == (3, "")
    assert re.fullmatch(
        rf"gradsmith-codegen: internal error, .* \(test_cli.py:\d+\): {type(error).__name__}.*\n", result.stderr
    )


def test_output_that_a_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(edited(BAD, ("float: {", "'größe': {")), encoding="utf-8")
    result = _start("check", "--schema", path, environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert result.returncode == 1
    assert "gr\\xf6\\xdfe" in result.stderr


def _on_a_terminal(*arguments: object, environment: dict[str, str]) -> str:
    """What it shows there."""
    import pty

    reader, writer = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "gradsmith_codegen", *_with_kernels(arguments)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "TERM": "xterm", **environment},
        stdout=writer,
        stderr=writer,
        check=False,
    )
    os.close(writer)
    shown = os.read(reader, 10_000).decode()
    os.close(reader)
    return shown


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(
    ("environment", "coloured"), [({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_on_a_terminal_only_and_not_against_the_users_will(
    schema: Path, bad: Path, environment: dict[str, str], coloured: bool
) -> None:
    shown = _on_a_terminal("check", "--schema", bad, environment=environment)
    assert ("\x1b[1;31merror[G014]" in shown) == coloured
    assert "error[G014]" in shown
    shown = _on_a_terminal("list", "--schema", schema, environment=environment)
    assert ("\x1b[36mScale" in shown) == coloured
    assert "Scale" in shown


def test_a_module_that_is_missing_is_told_in_a_line(schema: Path, tmp_path: Path) -> None:
    for name, verb in (("yaml", ["check"]), ("jinja2", ["generate", "--out", "out"])):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(f"raise ModuleNotFoundError(name='{name}')\n")
        path = os.pathsep.join([str(tmp_path / name), str(PACKAGE)])
        result = _start(*verb, "--schema", schema, cwd=tmp_path, environment={"PYTHONPATH": path})
        assert (result.returncode, result.stdout) == (1, "")
        told = f"gradsmith-codegen: {verb[0]} needs the Python module {name}, which is not installed; '"
        assert result.stderr.startswith(told)
        assert "pip install PyYAML Jinja2" in result.stderr


def test_kernels_are_those_of_the_runtime_and_of_folders_that_are_named(schema: Path, tmp_path: Path) -> None:
    check = [sys.executable, "-m", "gradsmith_codegen", "check", "--schema", str(schema)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    (tmp_path / "scale").mkdir()

    def told(*folders: object) -> str:
        options = [f"--kernels={folder}" for folder in folders]
        result = subprocess.run([*check, *options], env=environment, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr

    unknown = (
        "error[G701]: there is no kernel scale::Scale, for neither runtime nor any --kernels has scale/kernels.h\n"
    )
    assert unknown in told()
    assert unknown in told(tmp_path)
    assert "no errors" in told(tmp_path, KERNELS)


# -- list ---


def test_list_as_a_table(run: Run, schema: Path) -> None:
    result = run("list", "--schema", schema)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "OP     ROW    TYPES    BACKEND  KERNEL        LINE\nScale  float  T=float  cpu      scale::Scale  18\n"
    )


def test_list_as_json(run: Run, schema: Path) -> None:
    result = run("list", "--schema", schema, "--format", "json")
    row = {"op": "Scale", "row": "float", "types": {"T": "float"}, "backend": "cpu", "kernel": "scale::Scale"}
    assert json.loads(result.stdout) == [row | {"line": 18}]
    assert run("list", "--schema", schema, "--json") == result


def test_list_of_a_bad_schema(run: Run, bad: Path) -> None:
    result = run("list", "--schema", bad)
    assert (result.returncode, result.stdout) == (1, "")
    assert "error[G014]" in result.stderr
    result = run("list", "--schema", bad, "--format", "json")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    told = json.loads(result.stderr)
    assert told["error"] == f"{bad}: 1 error"
    assert [(fault["id"], fault["line"]) for fault in told["faults"]] == [("G014", 18)]


def test_a_warning_is_no_error_of_list(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(edited(SCALE, ("rows:", "rows: &unused")), encoding="utf-8")
    result = run("list", "--schema", path, "--json")
    assert (result.returncode, len(json.loads(result.stdout))) == (0, 1)
    told = json.loads(result.stderr)
    assert (told.keys(), told["warning"]) == ({"warning", "faults"}, f"{path}: 1 warning")
    assert [fault["id"] for fault in told["faults"]] == ["G022"]


def test_list_names_each_row_of_ops_yaml(run: Run, ops_yaml: Path) -> None:
    rows = json.loads(run("list", "--schema", ops_yaml, "--format", "json").stdout)
    lines = ops_yaml.read_text(encoding="utf-8").splitlines()
    assert {row["op"] for row in rows} >= {"Conv", "ConvGrad", "BatchNormalizationGrad"}
    assert all(lines[row["line"] - 1].strip().startswith(f"{row['row']}: ") for row in rows)


def test_a_reader_that_stops_reading_is_no_accident(ops_yaml: Path) -> None:
    command = f"{sys.executable} -m gradsmith_codegen list --schema {ops_yaml} --format json | head -c 1"
    result = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("[", "")


# -- generate ---


def test_generate_writes_then_leaves_alone(run: Run, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("generate", "--schema", schema, "--out", out)
    assert (first.returncode, first.stderr) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(out))}: \d+ files written, 0 removed\n", first.stdout)
    assert (out / "include/gradsmith/ops/scale.h").exists()
    second = run("generate", "--schema", schema, "--out", out)
    assert (second.returncode, second.stderr) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(out))}: \d+ files, none changed\n", second.stdout)
    (out / "src/dispatch_table.cc").unlink()
    third = run("generate", "--schema", schema, "--out", out)
    assert third.stdout == f"{out}: 1 file written, 0 removed\n"


@pytest.mark.parametrize(("arguments", "count"), [(["--shards", 3], 3), ([], 8)])
def test_generate_makes_as_many_shards_as_asked_for(
    run: Run, schema: Path, tmp_path: Path, arguments: list[object], count: int
) -> None:
    run("generate", "--schema", schema, "--out", tmp_path / "out", *arguments)
    shards = sorted(path.name for path in (tmp_path / "out/src").glob("ops_shard_*.cc"))
    assert shards == [f"ops_shard_{shard}.cc" for shard in range(count)]


def test_generate_check_compares_and_writes_nothing(run: Run, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    absent = run("generate", "--schema", schema, "--out", out, "--check")
    assert absent.returncode == 1
    assert not out.exists()
    run("generate", "--schema", schema, "--out", out)
    same = run("generate", "--schema", schema, "--out", out, "--check")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    header = out / "include/gradsmith/ops/scale.h"
    header.write_text(header.read_text(encoding="utf-8") + "// edited\n", encoding="utf-8")
    before = _tree(out)
    differs = run("generate", "--schema", schema, "--out", out, "--check")
    assert differs.returncode == 1
    assert "\n-// edited\n" in differs.stdout
    assert _tree(out) == before


def test_generate_of_a_bad_schema_writes_nothing(run: Run, bad: Path, tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    result = run("generate", "--schema", bad, "--out", tmp_path / "out", "--stamp", stamp)
    assert (result.returncode, result.stdout) == (1, "")
    assert "error[G014]" in result.stderr
    assert not (tmp_path / "out").exists()
    assert not stamp.exists()


def test_generate_as_json_has_nothing_but_faults_on_its_output(
    run: Run, schema: Path, bad: Path, tmp_path: Path
) -> None:
    good = run("generate", "--schema", schema, "--out", tmp_path / "out", "--format", "json")
    assert (good.returncode, json.loads(good.stdout)) == (0, [])
    result = run("generate", "--schema", bad, "--out", tmp_path / "out", "--format", "json")
    assert (result.returncode, json.loads(result.stdout)[0]["id"]) == (1, "G014")


def test_the_depfile_lists_schema_modules_templates_and_kernels(run: Run, tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "a folder #1 $2"
    folder.mkdir()
    schema = folder / "ops.yaml"
    schema.write_text(SCALE, encoding="utf-8")
    stamp, depfile = folder / "stamp", folder / "depfile"
    out = ("--out", folder / "out", "--stamp", stamp, "--depfile", depfile)
    assert run("generate", "--schema", "ops.yaml", *out, cwd=folder).returncode == 0
    assert stamp.exists()
    target, *dependencies = _make_words(depfile.read_text(encoding="utf-8"))
    assert target == f"{stamp}:"
    package = repository / "codegen/gradsmith_codegen"
    expected = [schema.resolve(), *package.rglob("*.py"), *(repository / "templates").glob("*")]
    expected += [*(repository / "runtime").glob("*/kernels.h"), *KERNELS.glob("*/kernels.h")]
    expected += [repository / "runtime/core/shape_rules.h"]
    assert sorted(dependencies) == sorted(map(str, expected))


def _make_words(text: str) -> list[str]:
    """The words of a Make rule, read as Make reads them."""
    words = re.findall(r"(?:\\[ #\\]|\$\$|[^\s\\#$])+", text.replace("\\\n", " "))
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words]


def test_the_stamp_is_touched_though_nothing_changes(run: Run, schema: Path, tmp_path: Path) -> None:
    arguments = (
        "generate",
        "--schema",
        schema,
        "--out",
        tmp_path / "out",
        "--stamp",
        tmp_path / "deep/stamp",
    )
    run(*arguments)
    os.utime(tmp_path / "deep/stamp", (1, 1))
    run(*arguments)
    assert (tmp_path / "deep/stamp").stat().st_mtime > 1


def test_a_folder_that_cannot_be_written_is_told_in_a_line(run: Run, schema: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = run("generate", "--schema", schema, "--out", tmp_path / "file")
    assert result.returncode == 1
    assert re.fullmatch(r"gradsmith-codegen: .*(Not a directory|File exists)\n", result.stderr)


def test_output_depends_on_nothing_but_the_schemas_text(schema: Path, tmp_path: Path, ops_yaml: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    copy = elsewhere / "ops.yaml"
    copy.write_bytes(ops_yaml.read_bytes())
    _start("generate", "--schema", ops_yaml, "--out", tmp_path / "one", environment={"PYTHONHASHSEED": "1"})
    environment = {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8", "LANG": "C", "TZ": "Asia/Tokyo"}
    _start("generate", "--schema", "ops.yaml", "--out", "two", cwd=elsewhere, environment=environment)
    one = _tree(tmp_path / "one")
    assert len(one) > 10
    assert one == _tree(elsewhere / "two")


# -- usage ---


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["make"],
        ["check", "--format", "xml"],
        ["list", "--format", "text"],
        ["generate"],
        ["generate", "--out", "out", "--shards", "0"],
        ["generate", "--out", "out", "--shards", "1000"],
        ["generate", "--out", "out", "--shards", "many"],
        ["generate", "--out", "out", "--depfile", "d"],
        ["generate", "--out", "out", "--check", "--stamp", "s"],
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], schema: Path) -> None:
    result = run(*arguments, cwd=schema.parent)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: gradsmith-codegen")
    assert not (schema.parent / "out").exists()


@pytest.mark.parametrize("command", [[], ["generate"], ["check"], ["list"]])
def test_help_names_every_command_and_the_exit_status(run: Run, command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.returncode == 0
    assert "Exit status: 0" in result.stdout


def test_version(run: Run) -> None:
    assert re.fullmatch(r"gradsmith-codegen \d+\.\d+\.\d+\n", run("--version").stdout)
