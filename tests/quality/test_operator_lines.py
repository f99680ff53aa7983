"""An operator stays small, all told: entry, kernels on the CPU and the GPU, oracle, tests."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys

import operator_lines
import pytest
from gradsmith_codegen.reader import load_schema

FAMILIES_ON_NO_PATTERN = {"conv", "batch_norm"}


def test_operators_with_formulas_are_an_entry() -> None:
    lines, _ = operator_lines.count()
    schema, _ = load_schema(operator_lines.REPOSITORY / "ops.yaml")
    assert schema
    assert set(lines) == {op.name for op in schema.ops if op.formulas}
    assert min(lines.values()) >= 5
    assert {name: count for name, count in lines.items() if count > 45} == {}
    assert statistics.median(lines.values()) < 25


def test_the_matrix_has_sixty_gradients() -> None:
    """On the page of what is supported, operators that an entry says are gradients, on both backends."""
    matrix = (operator_lines.REPOSITORY / "generated/docs/README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \|.*\| ([\w, ]+) \|$", matrix, re.MULTILINE))
    gradients = {name for name, entry in operator_lines.entries().items() if "\n    gradient_of: " in entry}
    assert gradients <= listed.keys()
    assert sum(listed[name] == "cpu, cuda" for name in gradients) >= 60


def test_operators_on_a_pattern_are_small() -> None:
    _, lines = operator_lines.count()
    schema, _ = load_schema(operator_lines.REPOSITORY / "ops.yaml")
    assert schema
    with_kernels = {op.name: op.kernel.partition("::")[0] for op in schema.ops if not op.formulas}
    assert set(lines) == {name for name, family in with_kernels.items() if family not in FAMILIES_ON_NO_PATTERN}
    assert {"MaxPoolGrad", "AveragePool"} <= set(lines)
    assert {name: count for name, count in lines.items() if not 30 < count <= 450} == {}


def test_every_operator_is_counted_or_of_a_family_on_no_pattern() -> None:
    with_formulas, on_a_pattern = operator_lines.count()
    left = {
        operator_lines.family_of(entry)
        for name, entry in operator_lines.entries().items()
        if name not in with_formulas and name not in on_a_pattern
    }
    assert left == FAMILIES_ON_NO_PATTERN


def test_a_family_has_kernels_an_oracle_and_tests() -> None:
    files = {str(path.relative_to(operator_lines.REPOSITORY)) for path in operator_lines.family_files("pool")}
    assert files > {
        "runtime/pool/pool.cc",
        "runtime/pool/cuda/pool.cc",
        "tests/reference/pool.cc",
        "tests/runtime/pool_test.cc",
        "tests/runtime/cuda/pool_test.cc",
    }
    with pytest.raises(FileNotFoundError, match="family pol has no runtime/pol"):
        list(operator_lines.family_files("pol"))


def test_the_command_of_the_docstring_counts_them_all() -> None:
    command = re.search(r"(PYTHONPATH=\S+) python3 (\S+)", operator_lines.__doc__ or "")
    assert command
    shell = f"{command[1]} {sys.executable} {command[2]}"
    told = subprocess.run(
        shell, shell=True, cwd=operator_lines.REPOSITORY, capture_output=True, text=True, check=True, timeout=300
    )
    counted = [name for of_kind in operator_lines.count() for name in of_kind]
    assert [line.split()[1] for line in told.stdout.splitlines()] == counted
