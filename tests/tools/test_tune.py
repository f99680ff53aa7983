"""gradsmith-tune: its options, its list of problems, and the cache that it looks after."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HEADER = "gradsmith decisions, format 3\n"
KERNEL = "graph/engine 67/2=1,5=0"
PROBLEM = "forward of MLFloat16, x [2, 3, 9, 11] NCHW"


def checksum(text: str) -> int:
    """FNV-1a."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def line(key: int) -> str:
    fields = f"{key:x}\t{KERNEL}\t4096\tbenchmark\t0.125\t3e-07\t{PROBLEM}"
    return f"{fields}\t{checksum(fields)}\n"


class Tune:
    """The program, with a cache of its own."""

    def __init__(self, program: Path, cache: Path) -> None:
        self.cache = cache
        self._program = program

    def __call__(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "GRADSMITH_CACHE": str(self.cache)}
        command = [str(self._program), *arguments]
        return subprocess.run(command, check=False, text=True, capture_output=True, input=text, env=environment)

    def succeeds(self, *arguments: str) -> str:
        result = self(*arguments)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def fails(self, status: int, *arguments: str, text: str = "") -> str:
        result = self(*arguments, text=text)
        assert (result.returncode, result.stdout) == (status, "")
        assert result.stderr.startswith("gradsmith-tune: ")
        return result.stderr.removeprefix("gradsmith-tune: ")


@pytest.fixture
def tune(gradsmith_tune: Path, tmp_path: Path) -> Tune:
    return Tune(gradsmith_tune, tmp_path / "cache/decisions.txt")


@pytest.fixture
def full(tune: Tune) -> Tune:
    """With two decisions."""
    tune.cache.parent.mkdir()
    tune.cache.write_text(HEADER + line(1) + line(2))
    return tune


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_option(tune: Tune, option: str) -> None:
    text = tune.succeeds(option)
    names = ("show", "export", "import", "clear", "device", "cpu", "threads", "mode", "budget")
    for name in (*names, "allow-tf32", "allow-reduced-accuracy", "exact-padding", "deterministic"):
        assert f"--{name}" in text
    assert "GRADSMITH_CACHE" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which file of problems? (--help says more)"),
        (["--allow-tf32"], "which file of problems? (--help says more)"),
        (["--mode"], "--mode: unknown, or without its value"),
        (["--modes", "benchmark"], "--modes: there is no such option (--help lists them)"),
        (["--modes"], "--modes: unknown, or without its value"),
        (["--mode", "fast", "-"], "--mode fast: expected default, heuristic or benchmark"),
        (["--device", "1.5", "-"], "--device 1.5: expected an ordinal, 0 or more"),
        (["--device", "-1", "-"], "--device -1: expected an ordinal, 0 or more"),
        (["--device", "99999999999", "-"], "--device 99999999999: expected an ordinal, 0 or more"),
        (["--threads", "many", "-"], "--threads many: expected a number, 0 or more"),
        (["--budget", "soon", "-"], "--budget soon: expected seconds, 0 or more"),
        (["--budget", "nan", "-"], "--budget nan: expected seconds, 0 or more"),
        (["--workspace", "1G", "-"], "--workspace 1G: expected bytes, 0 or more"),
        (["--workspace", "", "-"], "--workspace : expected bytes, 0 or more"),
        (["one", "two"], "two: one file of problems at a time; there is one"),
    ],
)
def test_bad_options_are_named(tune: Tune, arguments: list[str], message: str) -> None:
    assert tune.fails(2, *arguments) == message + "\n"


def test_a_file_that_is_not_there_is_named(tune: Tune, tmp_path: Path) -> None:
    for path in (str(tmp_path / "missing"), str(tmp_path)):
        assert tune.fails(1, path) == f"cannot read {path}\n"
        assert path in tune.fails(1, "--import", path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ConvGrad", "'ConvGrad': expected an op, the name of a row, and dims"),
        ("ConvGradd half X=1x1x1", "'ConvGradd': expected the name of one of the "),
        ("ConvGrad halb X=1x3x8 W=4x3x3", "'halb': expected the name of a row of ConvGrad on cuda: float, double,"),
        ("ConvGrad half X", "'X': expected <name>=<value>"),
        ("ConvGrad half X=1xx3", "'X=1xx3': expected dims such as 128x64x56x56"),
        ("ConvGrad half X=1x1x1x1x1x1x1x1x1", "'X=1x1x1x1x1x1x1x1x1': expected dims such as 128x64x56x56"),
        ("ConvGrad half Z=1x3", "'Z=1x3': expected layout, outputs, accumulate, or an input or attribute of ConvGrad"),
        ("ConvGrad half pads=1,x", "'pads=1,x': expected up to eight whole numbers with commas between"),
        ("ConvGrad half group=1.5", "'group=1.5': expected a whole number"),
        (
            "ConvGrad half accumulate=dW,dZ",
            "'accumulate=dW,dZ': expected gradients of ConvGrad, with commas between: dX, dW, dB",
        ),
        ("ConvGrad half accumulate=", "'accumulate=': expected gradients of ConvGrad"),
        ("ConvGrad half accumulate=dW,", "'accumulate=dW,': expected gradients of ConvGrad"),
        ("Conv half accumulate=Y", "'accumulate=Y': expected gradients of Conv, with commas between: there is none"),
        (
            "ConvGrad half outputs=dW,dY",
            "'outputs=dW,dY': expected outputs of ConvGrad, with commas between: dX, dW, dB",
        ),
        ("ConvGrad half X=scalar W=4x3x3x3", "X has shape []"),
        ("ConvGrad half X=scalar,", "'X=scalar,': expected dims such as 128x64x56x56, or scalar"),
        ("ConvGrad half layout=NCWH", "'layout=NCWH': expected NCHW or NHWC"),
        ("BatchNormalization half epsilon=tiny", "'epsilon=tiny': expected a number"),
        ("ConvGrad half stride=2,2", "of ConvGrad: layout, outputs, accumulate, dY, X, W, kernel_shape, strides, "),
        ("ConvGrad half stride=2,2", "; did you mean 'strides'?"),
        ("ConvGrad half X=1x3x8x8", "ConvGrad[half] on cuda (ops.yaml:"),
        ("ConvGrad half X=1x3x8x8", "): input W is absent; it is required"),
        ("ConvGrad half X=1x3x8x8 W=4x2x3x3", "W has shape [4, 2, 3, 3]"),
        ("ConvGrad half X=-1x3x8x8 W=4x3x3x3", "-1"),
        ("ConvGrad half X=1x3x8x8 W=4x3x3x3 auto_pad=SOME", "'SOME'"),
    ],
)
def test_a_bad_line_is_named_before_a_gpu_is_needed(tune: Tune, text: str, message: str) -> None:
    error = tune.fails(1, "-", text=f"# problems\n\n{text}   # bad\n")
    assert error.startswith("-:3: ")
    assert message in error.splitlines()[0]


def test_good_lines_are_tuned_or_it_is_said_what_is_missing(tune: Tune) -> None:
    conv_grad = "ConvGrad half X=2x8x16x16 W=8x8x3x3 pads=1,1,1,1 layout=NHWC"
    text = f"{conv_grad}\n{conv_grad} accumulate=dW,dB\nConv float X=1x3x8 W=4x3x3\n"
    result = tune("--mode", "heuristic", "-", text=text)
    if result.returncode == 0:
        choices = tune.succeeds("--show").splitlines()
        assert any("forward" in choice for choice in choices)
        assert ["backward-filter" in choice for choice in choices if "accumulating" in choice] == [True]
    else:
        (error,) = result.stderr.splitlines()
        assert "driver" in error or "device" in error or "cuDNN" in error or "built without CUDA" in error


def test_the_cpu_has_a_choice_with_onednn_alone(tune: Tune) -> None:
    result = tune("--cpu", "--threads", "1", "-", text="ConvGrad float X=2x16x9x9 W=16x16x3x3\n")
    if result.returncode == 0:
        choices = tune.succeeds("--show")
        assert choices.count("on the CPU with 1 thread") == 2
    else:
        assert "built without oneDNN (CMake option GRADSMITH_ONEDNN)" in result.stderr


def test_show_lists_what_is_remembered(full: Tune) -> None:
    first, *choices = full.succeeds("--show").splitlines()
    assert first == f"# {full.cache}"
    assert len(choices) == 2
    for choice in choices:
        for part in ("benchmark", "0.1250 ms", "error 3.0e-07", "4096 bytes", KERNEL, PROBLEM):
            assert part in choice


def test_show_of_no_cache(tune: Tune) -> None:
    assert tune.succeeds("--show") == f"# {tune.cache}\n"
    assert not tune.cache.exists()
    tune.cache = Path("off")
    assert tune.succeeds("--show") == "# no file\n"


def test_exported_choices_can_be_imported_after_clearing(full: Tune, tmp_path: Path) -> None:
    exported = tmp_path / "exported.txt"
    before = sorted(full.succeeds("--show").splitlines())
    full.succeeds("--export", str(exported))
    full.succeeds("--clear")
    assert full.succeeds("--show") == f"# {full.cache}\n"
    full.succeeds("--import", str(exported))
    assert sorted(full.succeeds("--show").splitlines()) == before


def test_a_damaged_export_is_refused(tune: Tune, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.txt"
    damaged.write_text(HEADER + line(1) + line(2).replace("4096", "4097"))
    assert tune.fails(1, "--import", str(damaged)) == f"{damaged}: 1 damaged line is ignored; nothing is taken over\n"
    assert tune.succeeds("--show") == f"# {tune.cache}\n"


def test_no_other_file_is_overwritten(full: Tune, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("my thesis\n")
    assert "it is there and no decision file" in full.fails(1, "--export", str(thesis))
    full.cache = thesis
    assert "it is there and no decision file" in full.fails(1, "--clear")
    assert thesis.read_text() == "my thesis\n"
