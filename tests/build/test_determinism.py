"""The generator's output depends on nothing but its input."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_tree import REPOSITORY, copy_sources, run_generator


def generated(
    out: Path, schema: str = "ops.yaml", repository: Path = REPOSITORY, cwd: Path = REPOSITORY, **environment: str
) -> dict[str, bytes]:
    run_generator("generate", "--schema", schema, "--out", str(out), repository=repository, cwd=cwd, **environment)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    files = generated(tmp_path_factory.mktemp("expected"))
    assert len(files) > 20
    return files


@pytest.mark.parametrize("seed", ["0", "1", "2", "3", "4"])
def test_hash_seed(expected: dict[str, bytes], tmp_path: Path, seed: str) -> None:
    assert generated(tmp_path / "out", PYTHONHASHSEED=seed) == expected


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX", "tr_TR.UTF-8"])
def test_locale(expected: dict[str, bytes], tmp_path: Path, locale: str) -> None:
    assert generated(tmp_path / "out", LC_ALL=locale) == expected


@pytest.mark.parametrize("level", ["1", "2"])
def test_optimized_interpreter(expected: dict[str, bytes], tmp_path: Path, level: str) -> None:
    """The second level leaves docstrings out, which are what docs/schema.md says of the rules."""
    assert generated(tmp_path / "out", PYTHONOPTIMIZE=level) == expected


def test_working_directory(expected: dict[str, bytes], tmp_path: Path) -> None:
    assert generated(tmp_path / "out", str(REPOSITORY / "ops.yaml"), cwd=tmp_path) == expected


def test_path_of_the_tree(expected: dict[str, bytes], tmp_path: Path) -> None:
    copy = tmp_path / "a folder with blanks, and a comma"
    copy_sources(REPOSITORY, copy)
    assert generated(tmp_path / "out", str(copy / "ops.yaml"), copy, tmp_path) == expected


def test_second_run_into_the_same_folder(expected: dict[str, bytes], tmp_path: Path) -> None:
    first = generated(tmp_path / "out")
    ages = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert generated(tmp_path / "out") == first == expected
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == ages
