"""The example in examples/python_autoencoder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def example(repository: Path) -> Path:
    return repository / "examples/python_autoencoder"


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_it_learns_and_the_decoder_comes_to_match_the_encoder(repository: Path, library: str) -> None:
    pytest.importorskip(library)
    command = [sys.executable, str(example(repository) / "train.py"), "--library", library, "--epochs", "15"]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
    cosines = [float(one) for one in re.findall(r"w_f and w_b +(-?[\d.]+)", result.stdout)]
    assert len(cosines) == 4
    assert cosines[-1] > 0.8


def test_the_notebooks_cells_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("torch")
    matplotlib.use("agg")
    monkeypatch.chdir(example(repository))
    monkeypatch.syspath_prepend(os.getcwd())
    notebook = json.loads(Path("autoencoder.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            assert cell["outputs"] or cell is notebook["cells"][1]
    assert set(names["parameters"]) == {"w_f", "scale", "bias", "w_b", "shift"}  # type: ignore[call-overload]
