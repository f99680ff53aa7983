"""Writing and comparing a folder, in one process and in several."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from gradsmith_codegen import output, workers
from gradsmith_codegen.artefacts import Artefact
from gradsmith_codegen.files import Changes
from gradsmith_codegen.plan import Plan, make_plan
from gradsmith_codegen.reader import load_schema

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
PROCESSES = [1, pytest.param(2, marks=needs_fork), pytest.param(5, marks=needs_fork)]


@pytest.fixture(scope="module")
def plan(ops_yaml: Path) -> Plan:
    schema, _ = load_schema(ops_yaml)
    assert schema
    return make_plan(schema, shards=4)


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("processes", PROCESSES)
def test_the_number_of_processes_does_not_matter(plan: Plan, tmp_path: Path, processes: int) -> None:
    output.write(tmp_path / "one", plan, processes=1)
    first = output.write(tmp_path / "many", plan, processes)
    assert _tree(tmp_path / "many") == _tree(tmp_path / "one")
    again = output.write(tmp_path / "many", plan, processes)
    assert (again.written, again.unchanged) == ([], first.written)
    assert output.compare(tmp_path / "many", plan, processes) == ""


@pytest.mark.parametrize("processes", PROCESSES)
def test_what_differs_is_shown_and_written_and_nothing_else(plan: Plan, tmp_path: Path, processes: int) -> None:
    output.write(tmp_path, plan, processes)
    wanted = _tree(tmp_path)
    (tmp_path / "include/gradsmith/ops/conv.h").write_text("// edited\n", encoding="utf-8")
    (tmp_path / "src/ops_shard_0.cc").unlink()
    (tmp_path / "docs/Gone.md").write_text("# Gone\n", encoding="utf-8")
    with (tmp_path / "manifest.txt").open("a", encoding="utf-8") as manifest:
        manifest.write("docs/Gone.md\n")
    expected = ["docs/Gone.md", "include/gradsmith/ops/conv.h", "manifest.txt", "src/ops_shard_0.cc"]
    shown = output.compare(tmp_path, plan, processes)
    assert re.findall(r"^--- (.*) \(on disk\)$", shown, re.MULTILINE) == expected
    changes = output.write(tmp_path, plan, processes)
    assert sorted(changes.written) == expected[1:]
    assert changes.removed == expected[:1]
    assert _tree(tmp_path) == wanted


@pytest.mark.parametrize("processes", PROCESSES)
def test_a_file_that_cannot_be_written_is_told(plan: Plan, tmp_path: Path, processes: int) -> None:
    (tmp_path / "include/gradsmith/ops/conv.h").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as caught:
        output.write(tmp_path, plan, processes)
    assert str(caught.value.filename).endswith("conv.h")
    assert not (tmp_path / "manifest.txt").exists()


@pytest.mark.parametrize(("processors", "per_process"), [(64, 50), (64, 2), (2, 1)])
def test_processes_are_as_many_as_pay(
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processors: int,
    per_process: int,
) -> None:
    """Each has so many operators or more, and there are no more than processors."""
    expected = max(1, min(math.floor(len(plan.schema.ops) / per_process), processors))
    counts: list[int] = []

    def run(work: Callable[[list[Artefact]], Changes], shares: list[list[Artefact]]) -> list[Changes]:
        counts.append(len(shares))
        return [work(share) for share in shares]

    monkeypatch.setattr(workers, "processors", lambda: processors)
    monkeypatch.setattr(workers, "run", run)
    monkeypatch.setattr(output, "OPS_PER_PROCESS", per_process)
    output.write(tmp_path, plan)
    assert counts == [expected]
