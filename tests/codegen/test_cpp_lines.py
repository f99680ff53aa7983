"""Lines of generated C++: whole up to 100 columns, as clang-format leaves them, and broken beyond."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gradsmith_codegen.cpp_lines import assignment, call, signature
from gradsmith_codegen.wrapping import COLUMN_LIMIT


@pytest.mark.parametrize(
    ("render", "broken"),
    [
        pytest.param(lambda head: signature(head, ["int a", "int b"], " {"), "(\n    int a,\n", id="signature"),
        pytest.param(lambda head: call(head, ["a", "b"], ";"), "(\n    a, b);", id="call"),
        pytest.param(lambda head: assignment(head, "1"), " =\n    1;", id="assignment"),
    ],
)
def test_a_line_is_broken_when_it_would_pass_the_limit(render: Callable[[str], str], broken: str) -> None:
    fits = "f" * (COLUMN_LIMIT - len(render("")))
    assert len(render(fits)) == COLUMN_LIMIT
    assert "\n" not in render(fits)
    assert f"{fits}f{broken}" in render(f"{fits}f")
