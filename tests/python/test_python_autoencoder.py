"""The example in examples/python_autoencoder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
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


@pytest.mark.parametrize(
    ("option", "module", "value"), [("--library torch", "torch", []), ("--plot", "matplotlib", ["drawn.png"])]
)
def test_what_is_not_installed_is_named_before_the_training(
    repository: Path, tmp_path: Path, option: str, module: str, value: list[str]
) -> None:
    """None in sys.modules is how Python spells that there is no such module."""
    script = example(repository) / "train.py"
    program = f"import runpy, sys; sys.modules[{module!r}] = None; sys.path.insert(0, {str(script.parent)!r})\n"
    program += f"runpy.run_path({str(script)!r}, run_name='__main__')"
    command = [sys.executable, "-c", program, *option.split(), *value]
    result = subprocess.run(command, cwd=tmp_path, check=False, text=True, capture_output=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"train.py: {option} needs {module}, which is not installed: pip install {module}\n"


def test_the_notebooks_cells_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, or, where there is no PyTorch, those before it is imported."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.chdir(example(repository))
    monkeypatch.syspath_prepend(os.getcwd())
    notebook = json.loads(Path("autoencoder.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells)
    sources = ["".join(cell["source"]) for cell in cells]
    first_of_torch = next(index for index, source in enumerate(sources) if "import torch" in source)
    names: dict[str, object] = {}
    for source in sources if find_spec("torch") else sources[:first_of_torch]:
        exec(source, names)
    assert set(names["parameters"]) == {"w_f", "scale", "bias", "w_b", "shift"}  # type: ignore[call-overload]
    assert len(matplotlib.pyplot.get_fignums()) >= 1
    matplotlib.pyplot.close("all")


def test_reconstructions_stand_below_their_images(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.syspath_prepend(str(example(repository)))
    plots = import_module("plots")
    images, drawn = np.zeros((3, 1, 8, 8)), np.arange(3 * 64.0).reshape(3, 1, 8, 8)
    figure = matplotlib.pyplot.figure()
    plots.show_pairs(figure, images, drawn, ("image", "drawn"))
    shown = [axes.images[0].get_array() for axes in figure.axes]
    assert [one.max() for one in shown] == [0, 0, 0, 63, 127, 191]
    history = import_module("training").History([2.0, 1.0], [0.0, 0.5])
    parameters = {"w_f": np.full((2, 1, 3, 3), 1.0), "w_b": np.full((2, 1, 3, 3), 2.0)}
    whole = plots.draw(history, parameters, images, drawn)
    pictures = [axes.images[0].get_array().max() for axes in whole.get_axes() if axes.images]
    assert pictures == [1, 1, 2, 2, 0, 0, 0, 63, 127, 191]
    assert [list(axes.lines[0].get_ydata()) for axes in whole.get_axes() if axes.lines] == [[2, 1], [0, 0.5]]
    matplotlib.pyplot.close("all")


def test_the_plots_are_written(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = tmp_path / "drawn.png"
    command = [sys.executable, str(example(repository) / "train.py"), "--epochs", "1", "--plot", str(drawn)]
    # A single epoch need not succeed at learning, which is what the exit status stands for.
    environment = {**os.environ, "MPLBACKEND": "agg"}
    result = subprocess.run(command, check=False, text=True, capture_output=True, env=environment)
    assert "Traceback" not in result.stderr, result.stderr
    assert drawn.read_bytes().startswith(b"\x89PNG")
