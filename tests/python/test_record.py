"""GRADSMITH_RECORD: a program writes the problems that its calls meet, in the words that `tune` and `bench` read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import gradsmith
import processes
import pytest
from gradsmith import _core
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.reference import pages

CALLS = """
import numpy as np
import gradsmith
X, W, dY = np.ones((2, 3, 9, 9)), np.ones((4, 3, 3, 3)), np.ones((2, 4, 7, 7))
"""
CONV = "Conv double X=2x3x9x9 W=4x3x3x3"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "below/problems.txt"


def run(program: str, record: Path | str) -> str:
    """What it says on standard error."""
    ended = processes.run(program, GRADSMITH_RECORD=str(record))
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def lines(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def test_each_problem_is_there_once(file: Path) -> None:
    calls = """
for _ in range(3):
    gradsmith.conv(X, W)
    gradsmith.conv(X, W, pads=(1, 1, 1, 1), group=1)
    gradsmith.conv_grad(dY, X, W, outputs=("dW", "dB"))
"""
    assert run(CALLS + calls, file) == ""
    expected = [CONV, f"{CONV} pads=1,1,1,1", "ConvGrad double dY=2x4x7x7 X=2x3x9x9 W=4x3x3x3 outputs=dW,dB"]
    assert lines(file) == expected
    assert run(CALLS + calls + "gradsmith.relu(X)", file) == ""
    assert lines(file) == [*expected, "Relu double X=2x3x9x9"]


def test_calls_that_are_refused_are_none(file: Path) -> None:
    run(f"{CALLS}\ntry:\n    gradsmith.conv(X, W, strides=(0, 1))\nexcept ValueError:\n    gradsmith.relu(W)", file)
    assert lines(file) == ["Relu double X=4x3x3x3"]


def test_nothing_is_recorded_unless_a_file_is_named(tmp_path: Path) -> None:
    run(f"import os\nos.chdir({str(tmp_path)!r}){CALLS}\ngradsmith.relu(X)", "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    told = run(CALLS + "gradsmith.relu(X)\ngradsmith.relu(W)", tmp_path)
    assert told.count("calls are not recorded any more: ") == 1
    assert str(tmp_path) in told


def test_threads(file: Path) -> None:
    run(
        CALLS
        + """
import threading
def calls():
    for n in range(1, 30):
        gradsmith.relu(np.ones(n))
threads = [threading.Thread(target=calls) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        file,
    )
    assert sorted(lines(file)) == sorted(f"Relu double X={n}" for n in range(1, 30))


def test_children_of_a_fork(file: Path) -> None:
    run(
        CALLS
        + """
import os
gradsmith.relu(X)
child = os.fork()
gradsmith.relu(X)
gradsmith.relu(np.ones(3) if child else np.ones(4))
if child == 0: os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
        file,
    )
    assert sorted(lines(file)) == ["Relu double X=2x3x9x9", "Relu double X=3", "Relu double X=4"]


def test_every_operator_comes_back_from_its_line(repository: Path, file: Path, tmp_path: Path) -> None:
    """The examples of all operators; then the calls that the recorded lines describe, which give the same lines."""
    schema, _ = load_schema(repository / "ops.yaml")
    assert schema
    made = pages(make_plan(schema, shards=1), KernelHeaders())
    examples = [block for page in made for block in re.findall(r"^```python\n(.*?)^```$", page.text, re.M | re.S)]
    run("\n".join(examples), file)
    recorded = lines(file)
    assert {line.split()[0] for line in recorded} == {op.name for op in gradsmith.ops()}
    assert len(recorded) > 100
    for line in recorded:
        parsed = _core.parse_problem(line)
        assert (parsed["op"], parsed["row"]) == tuple(line.split()[:2])
    again = tmp_path / "again.txt"
    run(
        f"from gradsmith import _bench\nfor line in {recorded!r}:\n    _bench.prepare(line, 'cpu').run()",
        again,
    )
    assert lines(again) == recorded


def test_tune_and_bench_read_the_file(file: Path) -> None:
    run(CALLS + "gradsmith.conv(X, W)\ngradsmith.conv_grad(dY, X, W, outputs='dX')", file)
    for verb in (["tune", "--device", "cpu"], ["bench", "--seconds", "0"]):
        command = [sys.executable, "-m", "gradsmith", *verb, str(file)]
        ended = subprocess.run(command, check=False, text=True, capture_output=True)
        assert (ended.returncode, ended.stderr) == (0, ""), verb
        assert CONV in ended.stdout


def test_words_that_tools_do_not_take() -> None:
    told = "'outputs=dZ': expected outputs of Relu, with commas between: Y"
    with pytest.raises(ValueError, match=re.escape(told)):
        gradsmith.tune("Relu float X=3 outputs=dZ", device="cpu")


def test_bench_takes_the_file_of_the_page(repository: Path, file: Path) -> None:
    page = (repository / "docs/cpp.md").read_text(encoding="utf-8")
    (problems,) = re.findall(r"^# Problems that calls of .*?(?=^```)", page, re.M | re.S)
    file.parent.mkdir()
    file.write_text(problems)
    command = [sys.executable, "-m", "gradsmith", "bench", "--seconds", "0", "--json", str(file)]
    ended = subprocess.run(command, check=False, text=True, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    notes = {row["problem"]: row["note"] for row in json.loads(ended.stdout)}
    assert list(notes) == lines(file)
    assert {line for line, note in notes.items() if note} == {line for line in notes if "accumulate" in line} != set()
