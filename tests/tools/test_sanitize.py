"""tests/gpu/sanitize.py, with a test program and a sanitizer that make their output up."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = """
import sys
arguments = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
if "gtest_list_tests" in arguments:
    print("Running main()")
    print("Conv.\\n  Exact/a  # GetParam() = 1\\n  Exact/b\\n  Slow/c\\nOther.\\n  D")
    sys.exit()
names = arguments["gtest_filter"].split(":")
print(f"[  PASSED  ] {len(names)} tests.")
"""

SANITIZER = """
import subprocess, sys, time
command = sys.argv[sys.argv.index("--print-limit") + 2:]
print("========= COMPUTE-SANITIZER")
tests = command[-2]
if "Slow" in tests and MODE == "slow":
    time.sleep(60)
print(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
if MODE == "cudnn":
    print("========= Error: Race reported between Write access at sm90_xmma_dgrad+0x10 and Read access")
if MODE == "cudnn" and "/a" in tests:
    print("========= Invalid __global__ read of size 16 bytes\\n=========     at sm90_xmma_fprop+0x30")
if MODE == "ours" and "/b" in tests:
    print("========= Error: Race reported between Write access at gradsmith_copy_2+0x10 and Read access")
if MODE == "broken":
    print("========= Error: Target application terminated before first instrumented API call")
"""


@pytest.fixture(scope="module")
def sanitize() -> ModuleType:
    path = Path(__file__).parents[1] / "gpu/sanitize.py"
    spec = importlib.util.spec_from_file_location("sanitize", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sanitize"] = module
    spec.loader.exec_module(module)
    return module


def run(sanitize: ModuleType, folder: Path, mode: str, *more: str) -> tuple[int, list[list[str]]]:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "sanitizer.py").write_text(f"MODE = {mode!r}\n{SANITIZER}", encoding="utf-8")
    results = folder / "results.tsv"
    code = sanitize.main(
        [
            *("--tool", "racecheck", "--program", f"{sys.executable} {folder / 'program.py'}"),
            *("--sanitizer", f"{sys.executable} {folder / 'sanitizer.py'}", "--results", str(results)),
            *("--batch", "1", "--workers", "2", *more),
        ]
    )
    lines = [line.split("\t") for line in results.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == sanitize.HEADING.split("\t")
    return code, sorted(lines[1:], key=lambda fields: fields[4])


def test_every_test_is_run_and_kept(sanitize: ModuleType, tmp_path: Path) -> None:
    code, lines = run(sanitize, tmp_path, "quiet")
    assert code == 0
    assert [(fields[0], *fields[2:]) for fields in lines] == [
        ("passed", "0", "0", test) for test in ("Conv.Exact/a", "Conv.Exact/b", "Conv.Slow/c", "Other.D")
    ]


def test_reports_of_cudnn_are_counted_apart(sanitize: ModuleType, tmp_path: Path) -> None:
    code, lines = run(sanitize, tmp_path, "cudnn")
    assert code == 0
    assert [fields[:1] + fields[2:4] for fields in lines] == [["passed", "2", "2"], *[["passed", "1", "1"]] * 3]


@pytest.mark.parametrize(("mode", "failed"), [("ours", 1), ("broken", 4)])
def test_other_reports_and_a_tool_that_fails_are_failures(
    sanitize: ModuleType, tmp_path: Path, mode: str, failed: int
) -> None:
    code, lines = run(sanitize, tmp_path, mode)
    assert code == 1
    assert [fields[0] for fields in lines].count("failed") == failed
    assert (tmp_path / "results.tsv.log").read_text(encoding="utf-8").count("COMPUTE-SANITIZER") == failed


def test_what_has_not_ended_is_run_again(
    sanitize: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = run(sanitize, tmp_path, "slow", "--seconds", "3")
    assert code == 3
    assert ["not ended", "Conv.Slow/c"] in [[fields[0], fields[4]] for fields in lines]
    assert "1 not ended" in capsys.readouterr().out
    code, lines = run(sanitize, tmp_path, "quiet")
    assert code == 0
    assert capsys.readouterr().out.startswith("1 tests in 1 batches; 3 had ended before")
    assert [fields[0] for fields in lines].count("passed") == 4
