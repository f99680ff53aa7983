"""python -m gradsmith."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import gradsmith
import pytest
from build_tree import REPOSITORY
from gradsmith import _bench, _tuning
from gradsmith._bars import CountBar
from gradsmith._codegen.tables import has_colours, table
from gradsmith._ops import FUNCTIONS

COMMAND = [sys.executable, "-m", "gradsmith"]
PROBLEM = "ConvGrad float X=1x1x3x3 W=1x1x2x2"


def start(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "GRADSMITH_CACHE": "off", **environment}
    return subprocess.run(
        [*COMMAND, *arguments], env=variables, check=False, text=True, capture_output=True, input=text
    )


def run(*arguments: str, status: int = 0, **environment: str) -> str:
    """What it prints."""
    result = start(*arguments, **environment)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def error(*arguments: str, status: int = 1) -> dict[str, str]:
    """What it says on standard error with --json, where it must say nothing else."""
    result = start(*arguments, "--json")
    assert (result.returncode, result.stdout) == (status, ""), result.stdout + result.stderr
    told: dict[str, str] = json.loads(result.stderr)
    return told


def test_ops_as_a_table_and_as_json() -> None:
    lines = run("ops", "ConvGrad").splitlines()
    assert lines[0].split() == ["OP", "FUNCTION", "ROW", "TYPES", "BACKEND", "KERNEL", "LINE"]
    assert lines[1].split()[:5] == ["ConvGrad", "conv_grad", "float", "T=float", "cpu"]
    assert "\x1b" not in lines[0]
    rows = json.loads(run("ops", "--json"))
    assert len(rows) == sum(len(op.rows) for op in gradsmith.ops())


def test_an_unknown_operator_fails() -> None:
    assert "There is no op 'ConvGard'; did you mean 'ConvGrad'" in run("ops", "ConvGard", status=1)


def test_explain() -> None:
    assert "is there: ConvGrad[half] on cpu" in run("explain", "conv_grad", "half")
    assert "No row is" in run("explain", "BatchNormalization", "float", "float", "half", status=1)
    assert "There is no op 'ConvGard'" in run("explain", "ConvGard", "half", status=1)
    told = run("explain", "LayerNormalization", status=1).splitlines()
    assert told[0].startswith("LayerNormalization has 3 type parameters (T")
    assert told[1] == "It takes one of"
    assert {"  float float float", "  MLFloat16 MLFloat16 MLFloat16"} <= set(told[2:])
    assert len(told[2:]) == len(set(told[2:]))
    assert "there is no type 'int8'" in run("explain", "ConvGrad", "int8", status=1)
    assert "device is 'gpu'; expected" in run("explain", "ConvGrad", "half", "--device", "gpu", status=1)


def test_explain_as_json() -> None:
    (told,) = json.loads(run("explain", "conv_grad", "half", "--json"))
    explanation = told.pop("explanation")
    assert explanation.startswith("ConvGrad(MLFloat16) on cpu is there")
    row = next(row for op in gradsmith.ops() if op.name == "ConvGrad" for row in op.rows if row.name == "half")
    assert told == {
        "op": "ConvGrad",
        "types": ["half"],
        "device": "cpu",
        "supported": True,
        "row": "half",
        "line": row.line,
        "missing": "",
    }
    (told,) = json.loads(run("explain", "BatchNormalization", "float", "float", "half", "--json", status=1))
    assert (told["supported"], told["row"], told["line"]) == (False, None, None)


def test_errors_are_json_where_it_is_asked_for(tmp_path: Path) -> None:
    assert error("explain", "ConvGrad", "int8")["error"].startswith("there is no type 'int8'; expected float")
    assert error("explain", "ConvGrad", "half", "--device", "gpu")["error"].startswith("device is 'gpu'")
    assert "cannot read" in error("cache", "--load", str(tmp_path / "none"))["error"]
    assert "is no number of seconds" in error("bench", "--seconds", "x", status=2)["error"]
    assert "invalid choice: 'tun'" in error("tun", status=2)["error"]
    listed = start("ops", "ConvGard", "--json")
    assert (listed.returncode, listed.stdout) == (1, "[]\n")
    assert json.loads(listed.stderr)["error"].startswith("There is no op 'ConvGard'")


def test_the_generators_verbs(repository: Path, tmp_path: Path) -> None:
    schema = ("--schema", str(repository / "ops.yaml"))
    assert f"{len(gradsmith.ops())} operators" in run("check", *schema)
    assert json.loads(run("check", *schema, "--json")) == []
    assert run("list", *schema).splitlines()[0].split() == ["OP", "ROW", "TYPES", "BACKEND", "KERNEL", "LINE"]
    assert {row["op"] for row in json.loads(run("list", *schema, "--json"))} == {op.name for op in gradsmith.ops()}
    assert run("schema") == (repository / "ops.schema.json").read_text(encoding="utf-8")
    assert run("diff", str(repository / "ops.yaml"), str(repository / "ops.yaml")) == "no changes\n"
    assert run("new-op", "Silu", "--formula", "Y: X * sigmoid(X)", *schema).startswith("  - name: Silu\n")
    assert run("fmt", "--check", *schema) == ""
    assert "files written" in run("generate", *schema, "--out", str(tmp_path / "generated"))


def test_faults_of_a_schema_are_json_where_it_is_asked_for(tmp_path: Path) -> None:
    arguments = ("--schema", str(tmp_path / "none.yaml"), "--json")
    told = json.loads(start("list", *arguments).stderr)  # as other errors are, for its result is another
    assert told["error"] == f"{tmp_path / 'none.yaml'}: 1 error"
    for (fault,) in (json.loads(start("check", *arguments).stdout), told["faults"]):
        assert fault["message"].startswith("cannot read the schema: No such file")


def test_the_schema_of_the_generators_verbs_may_be_named_by_its_position(repository: Path) -> None:
    assert run("check", str(repository / "ops.yaml")).endswith(", no errors\n")
    told = run("check", "ops.yaml", "--schema", "ops.yaml", status=2)
    assert "check: error: one schema at a time: ops.yaml and ops.yaml were given" in told


def test_the_generators_verbs_name_the_program_that_was_started() -> None:
    assert run("list", "--help").startswith("usage: python -m gradsmith list ")
    assert "usage: python -m gradsmith check " in run("check", "--format", "xml", status=2)
    for arguments in (["--help"], ["list", "--help"], ["check", "--format", "xml"]):
        assert "gradsmith-codegen" not in (start(*arguments).stdout + start(*arguments).stderr)


def test_without_what_the_generator_needs_its_verbs_say_what_is_missing(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise ModuleNotFoundError(name='yaml')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = run("check", "--schema", str(repository / "ops.yaml"), status=1, PYTHONPATH=path)
    assert told.startswith("gradsmith: check needs the Python module yaml, which is not installed; 'python")
    assert told.endswith("-m pip install PyYAML Jinja2' brings what the generator needs\n")
    assert "ConvGrad" in run("ops", PYTHONPATH=path)


def test_cache(tmp_path: Path) -> None:
    file = tmp_path / "choices.txt"
    assert run("cache") == "file: none\n"
    assert run("cache", "--export", str(file)) == f"0 choices were written to {file}\n"
    assert file.exists()
    assert run("cache", "--load", str(file)) == f"0 choices are remembered, with those of {file}\n"
    assert run("cache", "--clear") == "0 choices were forgotten\n"
    assert json.loads(run("cache", "--json")) == []
    assert "cannot read" in run("cache", "--load", str(tmp_path / "none"), status=1)


def test_what_was_done_to_the_cache_as_json(tmp_path: Path) -> None:
    file = str(tmp_path / "choices.txt")
    for action in ("export", "load"):
        told = json.loads(run("cache", f"--{action}", file, "--json"))
        assert told == {"action": action, "file": file, "choices": 0}
    assert json.loads(run("cache", "--clear", "--json")) == {"action": "clear", "file": "", "choices": 0}


def test_tune(tmp_path: Path) -> None:
    file = tmp_path / "problems.txt"
    file.write_text("# a comment\nConvGrad half X=2x3x6x5 W=4x3x3x2\n")
    lines = run("tune", str(file), "--device", "cpu").splitlines()
    assert [line.split()[0] for line in lines] == ["PROBLEM", "ConvGrad"]
    (row,) = json.loads(run("tune", str(file), "--device", "cpu", "--json"))
    assert (row["problem"], row["device"], row["chosen"]) == ("ConvGrad half X=2x3x6x5 W=4x3x3x2", "cpu", [])
    assert row["note"] == "nothing to choose: the CPU backend has one kernel for each problem"
    assert row["note"] in lines[1]
    told = run("tune", str(file), "--device", "cpu", "--workspace", "-1", status=1)
    assert told == "gradsmith: workspace_limit is -1; expected a number of bytes, 0 or more\n"
    assert "device is 'gpu'; expected" in run("tune", str(file), "--device", "gpu", status=1)


def test_bench_writes_gradients_anew_that_tune_adds_to() -> None:
    problem = f"{PROBLEM} accumulate=dX,dB"
    (row,) = json.loads(run("tune", problem, "--device", "cpu", "--json"))
    assert row["problem"] == problem
    assert "expected gradients of ConvGrad" in run("tune", f"{PROBLEM} accumulate=X", "--device", "cpu", status=1)
    options = ("--device", "cpu", "--seconds", "0")
    added, plain = json.loads(run("bench", problem, PROBLEM, *options, "--json"))
    note = "timed without adding: dX, dB written anew"
    assert (added["problem"], added["note"], plain["note"]) == (problem, note, "")
    assert added["megabytes"] == plain["megabytes"]
    assert run("bench", problem, *options).splitlines()[1].endswith(note)


@pytest.mark.parametrize("verb", ["bench", "tune"])
def test_problems_are_lines_or_files_of_lines(verb: str, tmp_path: Path) -> None:
    file, empty = tmp_path / "problems of mine.txt", tmp_path / "empty.txt"
    file.write_text(f"# a comment\n{PROBLEM}\n")
    empty.write_text("# a comment\n")
    options = ("--device", "cpu", "--json", *(("--seconds", "0") if verb == "bench" else ()))
    result = start(verb, "ConvGrad half X=1x1x3x3 W=1x1x2x2", str(file), "-", *options, text=PROBLEM)
    assert [row["problem"].split()[1] for row in json.loads(result.stdout)] == ["half", "float", "float"]
    for given in ("none.txt", "ConvGrad", "x" * 5000):
        assert f"'{given}' is no file; expected one, or a problem in quotes, such as" in run(verb, given, status=1)
    assert "Is a directory" in run(verb, str(tmp_path), status=1)
    assert f"there is no problem in {empty}; expected lines such as" in run(verb, str(empty), status=1)
    file.write_bytes(b"\xff\n")
    assert f"{file} is not UTF-8: invalid start byte at byte 0" in run(verb, str(file), status=1)


@pytest.mark.skipif(gradsmith.is_available("cuda:0"), reason="there is a GPU")
def test_a_device_that_is_missing_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "problems.txt"
    file.write_text(f"{PROBLEM}\n{PROBLEM}\n")
    assert run("tune", str(file), status=1).startswith("gradsmith: cuda:0 cannot be used: ")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "-inf", "soon", ""])
def test_seconds_are_finite_and_not_negative(seconds: str) -> None:
    for option in (f"--seconds={seconds}", f"--budget={seconds}"):
        told = run("bench" if "sec" in option.split("=")[0] else "tune", option, PROBLEM, status=2)
        assert f"'{seconds}' is no number of seconds; expected 0 or more, such as 2.5" in told


def test_bench_has_problems_of_every_family_and_of_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted((REPOSITORY / "runtime").glob("*/problems.txt"))
    assert [file.parent.name for file in files] == ["batch_norm", "conv", "patterns", "pool"]
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert sorted(_bench.default_problems()) == sorted(lines)
    ops = [op for op in gradsmith.ops() if op.name == "ConvTransposeGrad"]
    monkeypatch.setattr(gradsmith, "ops", lambda: ops)
    assert [line.split()[0] for line in _bench.default_problems()] == ["ConvTransposeGrad"]


def test_bench_takes_the_layout_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    monkeypatch.setitem(FUNCTIONS, "ConvGrad", lambda *inputs, **_: seen.extend(one.strides for one in inputs))
    for layout in ("NCHW", "NHWC"):
        _bench.measure(f"ConvGrad float X=2x4x6x6 W=4x4x3x3 layout={layout}", "cpu", 0)
    assert seen[:3] == [(256, 64, 16, 4), (576, 144, 24, 4), (144, 36, 12, 4)]
    assert seen[-3:] == [(256, 4, 64, 16), (576, 4, 96, 16), (144, 4, 48, 16)]


def test_bench_tells_median_and_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "_times", lambda call, seconds: [0.004, 0.001, 0.009])
    measured = _bench.measure(PROBLEM, "cpu", 0)
    assert (measured.calls, measured.median_ms, measured.best_ms) == (3, 4.0, 1.0)


def test_bench_tells_what_a_call_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "_times", lambda call, seconds: [0.004, 0.001, 0.009])
    measured = _bench.measure("LeakyReluGrad double dY=5x7 X=5x7", "cpu", 0)
    assert measured.megabytes == 3 * 5 * 7 * 8 / 1e6
    assert measured.share_of_copy == 1
    assert measured.gigaoperations == 2 * 5 * 7 / 1e9  # a comparison and a product for each element
    assert measured.share_of_limit == 0.25
    # dY is 2x6x4x4; dB has 6.
    elements = 2 * (2 * 4 * 6 * 6 + 6 * 4 * 3 * 3) + 2 * 6 * 4 * 4 + 6
    assert _bench.measure("ConvGrad half X=2x4x6x6 W=6x4x3x3", "cpu", 0).megabytes == 2 * elements / 1e6


@pytest.mark.parametrize("wanted", ["dW", "dX,dW", "dB"])
def test_bench_does_not_count_some_of_the_outputs(wanted: str) -> None:
    (row,) = json.loads(run("bench", f"{PROBLEM} outputs={wanted}", "--seconds", "0", "--json"))
    assert row["share_of_copy"] > 0
    assert row["gigaoperations"] is None
    assert row["share_of_limit"] is None
    table = run("bench", f"{PROBLEM} outputs={wanted}", "--seconds", "0")
    assert "None" not in table


def test_a_problem_may_have_an_input_that_holds_dims() -> None:
    problem = "MaxPoolGrad float dY=1x1x2x2 Indices=1x1x2x2 shape=1x1x4x4 kernel_shape=2,2 strides=2,2"
    assert _bench.measure(problem, "cpu", 0).megabytes == (4 * 4 + 4 * 8 + 16 * 4) / 1e6
    (row,) = json.loads(run("tune", problem, "--device", "cpu", "--json"))
    assert row["problem"] == problem
    told = run("tune", problem.replace("1x1x4x4", "1x1x4"), "--device", "cpu", status=1)
    assert "shape gives dX the shape [1, 1, 4], rank 3; expected rank 4: [N, C, *D]" in told


@pytest.mark.parametrize(
    ("problem", "operations"),
    [
        ("Conv float X=2x4x6x5 W=6x2x3x2 group=2", 2 * 2 * 6 * (4 * 4) * 2 * (3 * 2)),
        ("ConvGrad float X=2x4x6x5 W=6x4x3x2", 2 * (2 * 2 * 6 * (4 * 4) * 4 * (3 * 2)) + 2 * 6 * (4 * 4)),
        ("ConvTranspose float X=2x4x6x5 W=4x3x3x2", 2 * 2 * 4 * (6 * 5) * 3 * (3 * 2)),
        ("BatchNormalization float X=2x4x6x5 scale=4 B=4 running_mean=4 running_var=4", 8 * 2 * 4 * 6 * 5),
        ("GlobalMaxPool float X=2x4x6x5", 2 * 4 * 6 * 5),
        ("MaxPool float X=2x4x6x5 kernel_shape=3,2", 2 * 4 * (4 * 4) * (3 * 2)),
        ("MaxPoolXYGrad float X=2x4x6x5 Y=2x4x4x4 kernel_shape=3,2", 2 * 4 * (4 * 4) * (3 * 2 + 1)),
        ("MaxPoolGrad float dY=2x4x4x4 Indices=2x4x4x4 shape=2x4x6x5 kernel_shape=3,2", 2 * 4 * (4 * 4)),
        ("AveragePool float X=2x4x6x5 kernel_shape=3,2", 2 * 4 * (4 * 4) * (3 * 2 + 1)),
        ("AveragePoolGrad float X=2x4x6x5 kernel_shape=3,2", 2 * 4 * (4 * 4) * (3 * 2 + 1)),
        ("SoftmaxCrossEntropyLoss float_int64 X=6x10 label=6", 7 * 6 * 10 + 9 * 6),
        ("Sigmoid float X=4x5", 4 * 5),
        ("MulGrad float dY=2x3x4 A=2x1x4 B=3x1", 4 * (2 * 3 * 4)),
        ("SoftmaxGrad float dY=2x3x5 Y=2x3x5 axis=1", 4 * (2 * 3 * 5)),
        ("ReduceMean float X=2x3x5 axis=-2", 2 * 3 * 5 + 2 * 5),
    ],
)
def test_bench_counts_operations(problem: str, operations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "_times", lambda call, seconds: [0.001])
    measured = _bench.measure(problem, "cpu", 0)
    assert measured.gigaoperations == operations / 1e9


def times_of(call_s: float, copy_s: float, product_s: Callable[[int], float]) -> Callable[..., list[float]]:
    """In place of _times: those of the call, of the copy and of each product, in this order."""
    products = [product_s(size) for size in _bench._SIZES_OF_PRODUCTS_ON_CPU]
    times = iter([[call_s, 2 * call_s, 2 * call_s], [copy_s], *[[2 * one, one, 3 * one] for one in products]])
    return lambda call, seconds: next(times)


def test_the_fastest_product_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_bench.OPERATIONS, "ConvGrad", lambda dims, given: 6e9)
    speeds = {512: 1e9, 1024: 8e9, 2048: 12e9}
    monkeypatch.setattr(_bench, "_times", times_of(1, 0.01, lambda size: 2 * size**3 / speeds[size]))
    assert _bench.measure(PROBLEM, "cpu", 0).share_of_limit == pytest.approx(6 / 12 / 2)


def test_no_share_of_the_limit_passes_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "_times", times_of(0.001, 5, lambda size: 5))
    measured = _bench.measure(PROBLEM, "cpu", 0)
    assert measured.share_of_copy == 2500
    assert measured.share_of_limit == 0.5


def test_bench(tmp_path: Path) -> None:
    picture = tmp_path / "bench.svg"
    (row,) = json.loads(run("bench", PROBLEM, "--json", "--seconds", "0.05", "--plot", str(picture)))
    assert row["problem"] == PROBLEM
    assert 0 < row["best_ms"] <= row["median_ms"]
    drawn = ElementTree.parse(picture).getroot()
    assert PROBLEM in "".join(drawn.itertext())


def test_what_was_measured_is_shown_though_its_plot_cannot_be_written() -> None:
    result = start("bench", PROBLEM, "--seconds", "0", "--plot", "/proc/bench.svg", PYTHONUNBUFFERED="")
    assert result.returncode == 1
    assert result.stdout.splitlines()[1].startswith(PROBLEM)
    assert result.stderr.startswith("gradsmith: /proc/bench.svg: ")


def test_a_plot_is_svg(tmp_path: Path) -> None:
    for name in ("bench.png", "bench", ".svg"):
        told = run("bench", PROBLEM, "--plot", str(tmp_path / name), status=2)
        assert f"{name}': plots are drawn as SVG; expected a name that ends in .svg" in told
    assert f"there is no folder {tmp_path}/none" in run("bench", "--plot", f"{tmp_path}/none/a.svg", status=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["bench", "tune"])
def test_what_is_wrong_with_one_problem_leaves_the_others(verb: str, tmp_path: Path) -> None:
    problems = [f"ConvGrad float X=1x1x3x3 W={w}" for w in ("1x1x2x2", "1x2x2x2", "1x1x1x1")]
    file = tmp_path / "problems.txt"
    file.write_text("\n".join(problems))
    what = [str(file)] if verb == "tune" else [*problems, "--seconds", "0.01"]
    told = run(verb, *what, "--device", "cpu", "--json", status=1)
    rows, end = json.JSONDecoder().raw_decode(told)
    assert [row["problem"] for row in rows] == [problems[0], problems[2]]
    wrong = json.loads(told[end:])
    assert wrong["problem"] == problems[1]
    assert "expected 1" in wrong["error"]


def test_arguments_of_odd_bytes() -> None:
    told = subprocess.run([*COMMAND, "ops", b"\xff"], check=False, capture_output=True, text=True)
    assert told.returncode == 1
    assert told.stderr.startswith("gradsmith: There is no op '\\xff'. The ops are: ")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    assert "There is no op 'gr\\xf6\\xdfe'" in run("ops", "größe", status=1, **plain)


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "problems.txt"
    file.write_text(f"{PROBLEM}\r\n", encoding="utf-8-sig")
    (row,) = json.loads(run("tune", str(file), "--device", "cpu", "--json"))
    assert row["problem"] == PROBLEM


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ("ops >&-", 0, ""),
        ("list --schema ops.yaml >&-", 0, ""),
        ("tune - --device cpu <&-", 1, "gradsmith: standard input is closed; expected problems on it\n"),
        ("ops > /dev/full", 1, "gradsmith: No space left on device\n"),
        ("list --schema ops.yaml > /dev/full", 1, "gradsmith: No space left on device\n"),
        ("ops --json | head -c 1", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full(arguments: str, status: int, told: str, repository: Path) -> None:
    command = f"'{sys.executable}' -m gradsmith {arguments}"
    result = subprocess.run(["sh", "-c", command], cwd=repository, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (status, told)


def test_wrong_usage() -> None:
    assert "required" in run("tune", status=2)
    assert "invalid choice" in run("tun", status=2)
    assert "unrecognized arguments: --js" in run("ops", "--js", status=2)


@pytest.mark.parametrize("colours", [True, False])
def test_colours_do_not_move_columns(colours: bool) -> None:
    text = table([{"op": "A", "row": 1.5}, {"op": "BBB", "row": {"T": "float"}}], colours)
    for code in ("\x1b[1m", "\x1b[36m", "\x1b[0m"):
        assert (code in text) == colours
        text = text.replace(code, "")
    assert text.splitlines() == ["OP   ROW", "A    1.5000", "BBB  T=float"]


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    """It comes as the first problem is to be measured."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job may ignore it
        "from gradsmith import _bench, _cli\n"
        "_bench.measure = lambda *given: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.exit(_cli.main(['bench']))\n"
    )
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "GRADSMITH_CACHE": "off"}
    result = subprocess.run(command, env=environment, check=False, text=True, capture_output=True)
    assert result.returncode == 130
    assert "Traceback" not in result.stderr


def test_without_standard_output_there_are_no_colours() -> None:
    assert not has_colours(None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_colours_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_colours(Terminal())
    assert not has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colours(Terminal())


def test_a_line_is_cut_to_the_width_of_the_terminal() -> None:
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    with os.fdopen(writing, "w") as terminal:
        bar = CountBar(terminal, 3)
        bar.show("ConvGrad float X=8x16x28x28")
        assert os.read(reading, 100) == b"\r\x1b[K[1/3] ConvGrad floa"
        bar.clear()
        assert os.read(reading, 100) == b"\r\x1b[K"
    os.close(reading)


def test_a_terminal_is_shown_what_is_at_work() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        bar = CountBar(stream, 3)
        bar.show("ConvGrad float")
        bar.show("Conv half")
        bar.clear()
    assert "[1/3] ConvGrad float" in terminal.getvalue()
    assert "[2/3] Conv half" in terminal.getvalue()
    assert file.getvalue() == ""


def test_a_terminal_is_shown_how_a_search_goes() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        bar = _tuning.ProgressBar(stream)
        bar("a problem", "an engine", 15, 30, "the best engine", 0.25, 1.5)
        bar.close()
    assert terminal.getvalue().startswith(
        "\r\x1b[K[" + "#" * 15 + "-" * 15 + "] 15/30   1.5 s  best 0.2500 ms the best engine"
    )
    assert file.getvalue() == ""


def test_bars_of_a_plot_are_as_long_as_the_times_say() -> None:
    times = (("a", 0.01), ("b", 0.1), ("c", 1.0))
    rows = [_bench.Measured(name, "cpu", 9, median, median, 1.0, 0.5, 0.0, 0.5) for name, median in times]
    namespace = "{http://www.w3.org/2000/svg}"
    bars = [one for one in ElementTree.fromstring(_bench.plot(rows)).iter(f"{namespace}rect") if one.get("x")]
    lengths = [float(one.attrib["width"]) for one in bars]
    assert lengths[0] == 0
    assert lengths[1] == pytest.approx(lengths[2] / 2, abs=0.1)
    assert lengths[2] > 100
