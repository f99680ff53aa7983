"""python -m gradsmith."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import gradsmith
import pytest
from gradsmith import _bench, _tables, _tuning
from gradsmith._ops import FUNCTIONS
from gradsmith._tables import table


def run(*arguments: str, status: int = 0, **environment: str) -> str:
    """What it prints."""
    variables = {**os.environ, "GRADSMITH_CACHE": "off", **environment}
    result = subprocess.run(
        [sys.executable, "-m", "gradsmith", *arguments], env=variables, check=False, text=True, capture_output=True
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


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


def test_the_generators_verbs(repository: Path) -> None:
    schema = str(repository / "ops.yaml")
    path = os.pathsep.join([str(repository / "codegen"), os.environ.get("PYTHONPATH", "")])
    assert f"{len(gradsmith.ops())} operators" in run("check", "--schema", schema, PYTHONPATH=path)


def test_without_the_generator_its_verbs_say_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "gradsmith_codegen.py").write_text("raise ModuleNotFoundError(name='gradsmith_codegen')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert "check needs the Python module gradsmith_codegen" in run("check", status=1, PYTHONPATH=path)


def test_cache(tmp_path: Path) -> None:
    file = tmp_path / "choices.txt"
    assert run("cache") == "file: none\n"
    run("cache", "--export", str(file))
    assert file.exists()
    run("cache", "--load", str(file))
    assert json.loads(run("cache", "--json")) == []
    assert "cannot read" in run("cache", "--load", str(tmp_path / "none"), status=1)


def test_tune(tmp_path: Path) -> None:
    file = tmp_path / "problems.txt"
    file.write_text("# a comment\nConvGrad half X=2x3x6x5 W=4x3x3x2\n")
    lines = run("tune", str(file), "--device", "cpu").splitlines()
    assert [line.split()[0] for line in lines] == ["PROBLEM", "ConvGrad"]
    (row,) = json.loads(run("tune", str(file), "--device", "cpu", "--json"))
    assert (row["problem"], row["device"], row["chosen"]) == ("ConvGrad half X=2x3x6x5 W=4x3x3x2", "cpu", [])
    told = run("tune", str(file), "--device", "cpu", "--workspace", "-1", status=1)
    assert told == "gradsmith: workspace_limit is -1; expected a number of bytes, 0 or more\n"
    assert "device is 'gpu'; expected" in run("tune", str(file), "--device", "gpu", status=1)
    assert "none.txt: No such file" in run("tune", str(tmp_path / "none.txt"), status=1)


def test_bench_takes_the_layout_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    monkeypatch.setitem(FUNCTIONS, "ConvGrad", lambda *inputs, **_: seen.extend(one.strides for one in inputs))
    for layout in ("NCHW", "NHWC"):
        _bench.measure(f"ConvGrad float X=2x4x6x6 W=4x4x3x3 layout={layout}", "cpu", 0)
    assert seen[:3] == [(256, 64, 16, 4), (576, 144, 24, 4), (144, 36, 12, 4)]
    assert seen[-3:] == [(256, 4, 64, 16), (576, 4, 96, 16), (144, 4, 48, 16)]


def test_bench(tmp_path: Path) -> None:
    problem, picture = "ConvGrad float X=1x1x3x3 W=1x1x2x2", tmp_path / "bench.svg"
    (row,) = json.loads(run("bench", problem, "--json", "--seconds", "0.05", "--plot", str(picture)))
    assert row["problem"] == problem
    assert 0 < row["best_ms"] <= row["median_ms"]
    drawn = ElementTree.parse(picture).getroot()
    assert problem in "".join(drawn.itertext())


@pytest.mark.parametrize("verb", ["bench", "tune"])
def test_what_is_wrong_with_one_problem_leaves_the_others(verb: str, tmp_path: Path) -> None:
    problems = [f"ConvGrad float X=1x1x3x3 W={w}" for w in ("1x1x2x2", "1x2x2x2", "1x1x1x1")]
    file = tmp_path / "problems.txt"
    file.write_text("\n".join(problems))
    what = [str(file)] if verb == "tune" else [*problems, "--seconds", "0.01"]
    told = run(verb, *what, "--device", "cpu", "--json", status=1)
    rows, end = json.JSONDecoder().raw_decode(told)
    assert [row["problem"] for row in rows] == [problems[0], problems[2]]
    assert told[end:].strip().startswith(f"gradsmith: {problems[1]}: ")
    assert "expected 1" in told[end:]


def test_wrong_usage() -> None:
    assert "required" in run("tune", status=2)
    assert "invalid choice" in run("tun", status=2)


@pytest.mark.parametrize("colours", [True, False])
def test_colours_do_not_move_columns(colours: bool) -> None:
    text = table([{"op": "A", "row": 1.5}, {"op": "BBB", "row": {"T": "float"}}], colours)
    for code in ("\x1b[1m", "\x1b[36m", "\x1b[0m"):
        assert (code in text) == colours
        text = text.replace(code, "")
    assert text.splitlines() == ["OP   ROW", "A    1.5000", "BBB  T=float"]


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    command = [sys.executable, "-m", "gradsmith", "bench", "--seconds", "20"]
    process = subprocess.Popen(
        command, env={**os.environ, "GRADSMITH_CACHE": "off"}, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_without_standard_output_there_are_no_colours() -> None:
    assert not _tables.has_colours(None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_colours_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _tables.has_colours(Terminal())
    assert not _tables.has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not _tables.has_colours(Terminal())


def test_a_terminal_is_shown_what_is_at_work() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        bar = _bench.CountBar(stream, 3)
        bar.show("ConvGrad float")
        bar.show("Conv half")
        bar.close()
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
        "\r[" + "#" * 15 + "-" * 15 + "] 15/30   1.5 s  best 0.2500 ms the best engine"
    )
    assert file.getvalue() == ""


def test_bars_of_a_plot_are_as_long_as_the_times_say() -> None:
    rows = [_bench.Measured(name, "cpu", 9, median, median) for name, median in (("a", 0.01), ("b", 0.1), ("c", 1.0))]
    namespace = "{http://www.w3.org/2000/svg}"
    bars = [one for one in ElementTree.fromstring(_bench.plot(rows)).iter(f"{namespace}rect") if one.get("x")]
    lengths = [float(one.attrib["width"]) for one in bars]
    assert lengths[0] == 0
    assert lengths[1] == pytest.approx(lengths[2] / 2, abs=0.1)
    assert lengths[2] > 100
