"""The command line of ./run, and what it says where something is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from build_tree import REPOSITORY

VERBS = ("demo", "test", "try", "regenerate", "format", "lint", "bench", "help")


def run(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "run"), *arguments]
    environment = None if path is None else {"PATH": str(path), "HOME": str(path)}
    return subprocess.run(command, env=environment, check=False, text=True, capture_output=True)


def module() -> ModuleType:
    spec = spec_from_file_location("run", REPOSITORY / "run", loader=SourceFileLoader("run", str(REPOSITORY / "run")))
    assert spec is not None and spec.loader is not None
    verbs = sys.modules["run"] = module_from_spec(spec)  # where its dataclasses look for it
    spec.loader.exec_module(verbs)
    return verbs


@pytest.mark.parametrize("flag", ["help", "--help", "-h"])
def test_help_names_every_command(flag: str) -> None:
    result = run(flag)
    assert result.returncode == 0
    for verb in VERBS:
        assert f"./run {verb} " in result.stdout


@pytest.mark.parametrize("arguments", [(), ("tset",)])
def test_unknown_command_prints_the_help(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert "./run demo" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_demo_tells_its_options_before_anything_is_built(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = module()
    monkeypatch.setattr(verbs, "need_system_packages", lambda packages: pytest.fail("something is set up"))
    assert verbs.main(["demo", flag]) == 0
    told = capsys.readouterr().out
    assert told.startswith("    ./run demo ")
    assert "--epochs" in told


@pytest.mark.parametrize("verb", ["test", "lint", "bench"])
def test_other_commands_tell_their_usage(verb: str) -> None:
    result = run(verb, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"    ./run {verb} ")
    assert result.stdout.count("./run ") == 1


@pytest.mark.parametrize(("arguments", "told"), [((), "none"), (("--fast",), "--fast"), (("Conv:half",), "Conv:half")])
def test_operators_to_try_are_named(arguments: tuple[str, ...], told: str) -> None:
    result = run("try", *arguments)
    assert result.returncode == 2
    assert result.stderr.endswith(f"run: try takes names of operators, but got {told}\n")


def test_an_operator_to_try_is_looked_up_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = module()
    monkeypatch.setattr(verbs, "need_system_packages", lambda packages: None)
    monkeypatch.setattr(verbs, "python_with", lambda *requirements, **options: Path(sys.executable))
    monkeypatch.setattr(verbs, "configure_preset", lambda python, preset: pytest.fail("something is built"))
    assert verbs.main(["try", "ConvGrad", "LeakyReluGra"]) == 1
    assert "no operator 'LeakyReluGra'; did you mean 'LeakyReluGrad'?" in capsys.readouterr().err


OF_TWO_TESTS = """<testsuites><testsuite>
<testcase name="Exact/float_cpu_a" classname="Relu" status="run"/>
<testcase name="Exact/float_cpu_b" classname="Relu" status="run"><failure/></testcase>
<testcase name="Exact/float_cpu_c" classname="Abs" status="notrun"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("architecture", "nvcc", "more", "folder"),
    [
        ("90-real", "nvcc", [], "default"),
        (None, "nvcc", [], "try"),
        (None, None, [], "default"),
        (None, "nvcc", ["--cuda"], "default"),
    ],
)
def test_only_the_operators_to_try_are_tested(
    architecture: str | None,
    nvcc: str | None,
    more: list[str],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On the CPU alone where there is no GPU, though a compiler for one."""
    verbs = module()
    built: list[str] = []
    ran: list[str] = []

    def configured(python: Path, preset: str, options: Sequence[str] = ()) -> None:
        built.extend([preset, *options])

    def status(command: list[str]) -> int:
        ran.extend(command)
        (tmp_path / folder / "tried.xml").write_text(OF_TWO_TESTS, encoding="utf-8")
        return 7

    (tmp_path / folder).mkdir()
    monkeypatch.setattr(verbs, "BUILD", tmp_path)
    monkeypatch.setattr(verbs, "need_system_packages", lambda packages: None)
    monkeypatch.setattr(verbs, "python_with", lambda *requirements, **options: Path(sys.executable))
    monkeypatch.setattr(verbs, "gpu_architecture", lambda: architecture)
    monkeypatch.setattr(verbs, "find_nvcc", lambda: nvcc)
    monkeypatch.setattr(verbs, "configure_preset", configured)
    monkeypatch.setattr(verbs, "build", lambda place, target: built.extend([place.name, target]))
    monkeypatch.setattr(verbs, "status", status)
    assert verbs.main(["try", *more, "Relu", "ReluGrad"]) == 7  # is the program's
    of_cpu = ["-B", str(tmp_path / "try"), "-DGRADSMITH_CUDA=OFF"] if folder == "try" else []
    assert built == ["default", *of_cpu, folder, "gradsmith_generated_tests"]
    assert ran[-1] == "--gtest_filter=Relu.*:ReluGrad.*"
    assert ("--backend=cpu" in ran) == (architecture is None)
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "== 1 of 2 tests failed: Relu.Exact/float_cpu_b"
    assert told[:-1] == [line for line in told if "no NVIDIA GPU" in line]
    assert len(told) == 1 + (folder == "try")


def test_of_many_failed_tests_some_are_named(tmp_path: Path) -> None:
    case = '<testcase name="Exact/{}" classname="Relu" status="run"><failure/></testcase>'
    report = tmp_path / "tried.xml"
    report.write_text(f"<t>{''.join(case.format(number) for number in range(13))}</t>", encoding="utf-8")
    told = module().failed_tests(report)
    assert told.startswith("13 of 13 tests failed: Relu.Exact/0, ")
    assert told.endswith(", Relu.Exact/9 and 3 more")
    report.write_text("", encoding="utf-8")
    assert module().failed_tests(report) == "the tests did not come to an end"


@pytest.mark.parametrize("verb", ["regenerate", "format", "docs"])
def test_arguments_that_mean_nothing_are_refused(verb: str) -> None:
    result = run(verb, "--fast")
    assert result.returncode == 2
    usage, _, told = result.stderr.partition("\n\n")
    assert usage.startswith(f"    ./run {verb} ")
    assert "\n" not in usage  # of this command alone
    assert told == f"run: {verb} takes no arguments, but got --fast\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("demo", "--foo"), "demo has no option --foo; expected one of --batch, --data, "),
        (("demo", "--epoch", "3"), "demo has no option --epoch; did you mean --epochs?"),
        (("test", "--foo"), "test has no option --foo; expected one of those that ctest --help lists\n"),
        (("test", "--qick"), "test has no option --qick; did you mean --quick?"),
        (("test", "-k", "conv"), "test has no option -k; "),
        (("test", "conv"), "test takes options of ctest, but got 'conv'; did you mean -R conv?"),
        (("test", "-R", "conv", "grad"), "test takes options of ctest, but got 'grad'; did you mean -R grad?"),
        (("lint", "--foo"), "lint passes its arguments to pytest, which says\n"),
        (("lint", "no/such/test.py::at_all"), "lint: there is no no/such/test.py"),
        (("bench", "--foo"), "bench takes --gpu or nothing, but got --foo"),
        (("bench", "--gpu", "--buget", "1"), "bench --gpu has no option --buget; did you mean --budget?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_unknown_options_are_refused_with_the_usage_before_anything_is_built(
    arguments: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = module()
    monkeypatch.setattr(verbs, "need_system_packages", lambda packages: None)
    monkeypatch.setattr(verbs, "python_with", lambda *requirements, **others: Path(sys.executable))
    monkeypatch.setattr(verbs, "configure", lambda *given: pytest.fail("something is built"))
    monkeypatch.setattr(verbs, "configure_preset", lambda *given: pytest.fail("something is built"))
    assert verbs.main(list(arguments)) == 2
    usage, _, sentence = capsys.readouterr().err.partition("\n\n")
    assert usage.startswith(f"    ./run {arguments[0]} ")
    assert sentence.startswith(f"run: {told}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-R", "conv", "-j4", "--rerun-failed", "--timeout", "-1"],
        ["--repeat", "until-fail:3", "--repeat=until-fail:3", "-N", "-VV", "--no-tests=ignore"],
        ["-R", "-conv", "-E", "--grad"],
        ["-LE", "slow", "-I", "1,5", "--tests-information", "1,5", "--parallel", "3", "-L=x"],
    ],
)
def test_options_of_ctest_are_passed_on(arguments: list[str]) -> None:
    module().check_ctest_arguments(arguments)


def test_options_of_the_demo_and_of_the_gpu_benchmark_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = module()

    def stop(*given: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(verbs, "need_system_packages", stop)
    monkeypatch.setattr(verbs, "gpu_architecture", stop)
    options = ["--data", "x", "--output=y", "--device", "cpu", "--epochs", "-1", "--learning-rate", "-.5", "--quiet"]
    for verb, given in (("demo", options), ("bench", ["--gpu", "--only", "conv", "--cases-only", "--filter", " f16"])):
        with pytest.raises(InterruptedError):
            verbs.VERBS[verb](given)


def test_benchmark_of_the_gpu_says_what_is_missing(tmp_path: Path) -> None:
    result = run("bench", "--gpu", path=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("run: the benchmark of the GPU needs an NVIDIA GPU (nvidia-smi finds none); ")


@pytest.mark.parametrize("verb", ["demo", "test", "bench", "lint"])
def test_missing_system_packages_are_named(tmp_path: Path, verb: str) -> None:
    """With an empty path there is no compiler, and no apt to install one with."""
    result = run(verb, path=tmp_path)
    assert result.returncode == 1
    for package in ("g++", "cmake", "ninja-build", "libeigen3-dev"):
        assert package in result.stderr
    assert "apt-get install" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("program", "status"),
    [("raise SystemExit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 128 + 15)],
)
def test_exit_status_is_as_a_shell_has_it(program: str, status: int) -> None:
    assert module().status([sys.executable, "-c", program]) == status


@pytest.mark.parametrize("there_is", [True, False])
def test_what_another_copy_has_had_compiled_is_taken_from_ccache(
    there_is: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs = module()
    configured: list[str] = []
    monkeypatch.setattr(verbs, "quietly", lambda command, **options: configured.extend(command))
    monkeypatch.setattr(verbs.shutil, "which", lambda name, **options: name if there_is or name != "ccache" else None)
    monkeypatch.setenv("CCACHE_BASEDIR", "")
    monkeypatch.delenv("CCACHE_BASEDIR")
    verbs.configure_preset(Path(sys.executable), "default")
    assert ("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache" in configured) == there_is
    assert os.environ.get("CCACHE_BASEDIR") == (str(REPOSITORY) if there_is else None)


@pytest.mark.parametrize(("pattern", "fits"), [("conv", True), ("nothing", False)])
def test_a_pattern_that_fits_no_test_is_told_before_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pattern: str, fits: bool
) -> None:
    verbs = module()
    preset = {"name": "default", "configurePreset": "default"}
    presets = {"version": 6, "configurePresets": [{"name": "default", "binaryDir": "build/default"}]}
    (tmp_path / "CMakePresets.json").write_text(json.dumps({**presets, "testPresets": [preset]}))
    monkeypatch.setattr(verbs, "ROOT", tmp_path)
    monkeypatch.setattr(verbs, "BUILD", tmp_path / "build")
    verbs.say_if_none_is_known(["-R", pattern])  # nothing is built yet
    (tmp_path / "build/default").mkdir(parents=True)
    (tmp_path / "build/default/CTestTestfile.cmake").write_text("add_test(conv true)\n")
    verbs.say_if_none_is_known(["-R", pattern])
    told = f"== the last build has no test that fits -R {pattern}; only a new one can\n"
    assert capsys.readouterr().out == ("" if fits else told)


@pytest.mark.parametrize("status", [0, 1])
def test_a_benchmark_that_leaves_a_result_has_not_failed(tmp_path: Path, status: int) -> None:
    program = f"import pathlib, sys; pathlib.Path(sys.argv[-1]).touch(); raise SystemExit({status})"
    assert module().misses_a_goal([sys.executable, "-c", program], tmp_path / "result.json") == bool(status)


@pytest.mark.parametrize("status", [1, 2])
def test_a_benchmark_that_fails_is_not_one_that_misses_a_goal(tmp_path: Path, status: int) -> None:
    verbs, old = module(), tmp_path / "result.json"
    old.touch()
    with pytest.raises(verbs.Problem, match="failed"):
        verbs.misses_a_goal([sys.executable, "-c", f"raise SystemExit({status})"], old)


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(REPOSITORY / "run"), "test", "-h"]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert result.stderr == b""


@pytest.mark.parametrize(("required", "outcome"), [("1", "1 error"), ("", "1 skipped")])
def test_a_check_of_style_without_its_tool_fails_where_tools_are_required(
    tmp_path: Path, required: str, outcome: str
) -> None:
    """An interpreter beside which no tool lies, and an empty path."""
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), "GRADSMITH_TOOLS_REQUIRED": required}
    test = "tests/quality/test_python.py::test_ruff_finds_nothing"
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False, text=True, capture_output=True)
    assert outcome in result.stdout, result.stdout + result.stderr
    assert "ruff is not installed" in result.stdout or not required


CTEST = """Test project /p
    Start 1: runtime.A
1/4 Test #1: runtime.A .......................   Passed    0.01 sec
    Start 2: runtime.B
2/4 Test #2: runtime.B .......................***Skipped   0.01 sec

50% tests passed, 1 tests failed out of 4

Total Test time (real) =   0.10 sec

The following tests did not run:
\t  2 - runtime.B (Skipped)
\t  3 - runtime.C (Disabled)

The following tests FAILED:
\t  4 - runtime.D (Failed)
Errors while running CTest
"""


def test_ctests_output_is_shown_but_for_its_list_of_the_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    module().show_tests(CTEST.splitlines(keepends=True), is_terminal=False)
    left_out = {"The following tests did not run:", "\t  2 - runtime.B (Skipped)"}
    assert capsys.readouterr().out.splitlines() == [line for line in CTEST.splitlines() if line not in left_out]


def test_on_a_terminal_the_passing_take_turns_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    module().show_tests(CTEST.splitlines(keepends=True), is_terminal=True)
    shown = capsys.readouterr().out
    for line in CTEST.splitlines()[1:5]:
        assert f"\r{line.strip()}" in shown.replace("\r    ", "\r")
        assert f"{line}\n" not in shown
    assert shown.endswith("runtime.D (Failed)\n\r\x1b[KErrors while running CTest\n")


def test_skips_are_counted_by_reason(tmp_path: Path) -> None:
    ctest = tmp_path / "ctest.xml"
    cases = "".join(
        f"<testcase name='{name}' status='notrun'><skipped message='SKIP'/><system-out>{output}</system-out></testcase>"
        for name, output in [
            ("a", "[ RUN      ] a\nx_test.cc:33: Skipped\nthere is no driver\n\n[  SKIPPED ] a (0 ms)\n"),
            ("b", "[ RUN      ] b\nx_test.cc:33: Skipped\nthere is no driver\n\n[  SKIPPED ] b (0 ms)\n"),
            ("c", "skipped: no emulated GPU\n"),
        ]
    )
    ctest.write_text(f"<testsuite>{cases}<testcase name='d' status='run'/></testsuite>")
    pytest_report = tmp_path / "pytest-python.xml"
    skipped = "<testcase><skipped message='no jax'/></testcase>"
    pytest_report.write_text(f"<testsuites><testsuite>{skipped}</testsuite></testsuites>")
    assert module().counted_skips([ctest, pytest_report], ctest) == [
        "skipped 4 tests:",
        "    2 there is no driver",
        "    1 no emulated GPU",
        "    1 no jax",
    ]
    assert module().counted_skips([], ctest) == []


def test_a_report_that_was_cut_off_hides_neither_the_others_nor_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs, path = module(), tmp_path / "path"
    path.mkdir()
    results = tmp_path / "build/test-results"
    written = "<testsuite><testcase><skipped message='no jax'/></testcase></testsuite>"
    texts = {"ctest.xml": written[:30], "pytest-a.xml": "", "pytest-b.xml": written[:-3], "pytest-c.xml": written}
    ctest = path / "ctest"
    lines = [f"open({str(results / name)!r}, 'w').write({text!r})" for name, text in texts.items()]
    ctest.write_text("\n".join([f"#!{sys.executable}", *lines, "print('tests failed')", "raise SystemExit(8)"]))
    ctest.chmod(0o755)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setattr(verbs, "ROOT", tmp_path)
    monkeypatch.setattr(verbs, "BUILD", tmp_path / "build")
    assert verbs.run_ctest("default", []) == 8
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "tests failed"
    assert told[1:] == [
        *[
            f"== build/test-results/{name} is no report that can be read: its skipped tests are not counted"
            for name in ("ctest.xml", "pytest-a.xml", "pytest-b.xml")
        ],
        "== skipped 1 test:",
        "==     1 no jax",
    ]
