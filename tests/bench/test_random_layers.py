"""Layers drawn at random: a seed has the same ones everywhere, and all are layers that can be measured."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import gpu_conv_shapes
import gpu_suites
import pytest
import random_layers

SCRIPT = Path(random_layers.__file__)


def written(path: Path, *arguments: str) -> bytes:
    assert random_layers.main([*arguments, "--out", str(path)]) == 0
    return path.read_bytes()


@pytest.mark.parametrize("more", [[], ["--transposed"]])
def test_a_seed_has_its_own_layers(tmp_path: Path, more: list[str]) -> None:
    first = written(tmp_path / "a.tsv", "--seed", "1", "--count", "40", *more)
    assert written(tmp_path / "folder/b.tsv", "--seed", "1", "--count", "40", *more) == first
    assert written(tmp_path / "c.tsv", "--seed", "1", "--count", "60", *more).startswith(first)
    other = written(tmp_path / "d.tsv", "--seed", "2", "--count", "40", *more)
    assert other.replace(b"random_2", b"random_1") != first


def test_what_is_drawn_does_not_hang_on_how_python_hashes(tmp_path: Path) -> None:
    expected = written(tmp_path / "a.tsv", "--seed", "3", "--count", "30")
    for seed in ("0", "7"):
        command = [sys.executable, str(SCRIPT), "--seed", "3", "--count", "30"]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        assert subprocess.run(command, check=True, capture_output=True, env=environment).stdout == expected


def test_layers_are_the_same_in_every_python() -> None:
    """Those of a seed that was measured stay what they were."""
    digests = []
    for is_transposed in (False, True):
        cases = [case for _, case in random_layers.draw_layers(1, 500, is_transposed)]
        digests.append(hashlib.sha256(gpu_suites.suite_text(cases).encode()).hexdigest()[:16])
    assert digests == ["57f02abe6ed12552", "ebc0584f48bd9f71"]


@pytest.mark.parametrize("is_transposed", [False, True])
def test_every_line_is_a_layer(tmp_path: Path, is_transposed: bool) -> None:
    drawn = random_layers.draw_layers(1, 500, is_transposed)
    kinds = random_layers.TRANSPOSED_KINDS if is_transposed else random_layers.KINDS
    assert {kind for kind, _ in drawn} == kinds
    path = tmp_path / "suite.tsv"
    gpu_suites.write_suite([case for _, case in drawn], path)
    cases = gpu_suites.read_suite(path)
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 500
    assert {(case["type"], case["layout"]) for case in cases} == {
        (kind, layout) for kind in gpu_suites.TYPES for layout in ("NCHW", "NHWC")
    }
    assert any(case["pad"] != case["pad_end"] for case in cases) != is_transposed
    for case in cases:
        shape = gpu_conv_shapes.ConvShape(case)
        assert min(*shape.x, *shape.w, *shape.y) > 0, case
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0
        x, w, y = (math.prod(dims) for dims in (shape.x, shape.w, shape.y))
        assert (2 * x + 2 * w + y) * gpu_suites.SIZES[case["type"]] < random_layers.MOST_BYTES
        assert max(x, y) * w // shape.w[0] >= random_layers.FEWEST_PRODUCTS
        assert (x if is_transposed else y) * w // shape.w[0] <= random_layers.MOST_PRODUCTS


def test_nonsense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--count", "0"], ["--seed", "-1"]):
        with pytest.raises(SystemExit):
            random_layers.main(arguments)
        assert "expected a seed" in capsys.readouterr().err
