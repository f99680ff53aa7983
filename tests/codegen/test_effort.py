"""What faults cost: four times as many take about four times the steps, not sixteen times. Steps are counted, as lines
of the generator that run; no clock is read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import yaml
from gradsmith_codegen import chains, suggestions
from gradsmith_codegen.diagnostics import MAX_SHOWN, Diagnostic, Severity, format_text
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.spans import Span
from schemas import CONVOLVE, SCALE, edited, load

FEW = 60
TIMES = 4
OUTPUT = "      Y: {type: T, like: X}\n"
HEAD, OP = SCALE[: SCALE.index("  - name")], SCALE[SCALE.index("  - name") :]


def _steps(work: Callable[[], object]) -> int:
    """How many lines of Python run."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _outputs(line: Callable[[int], str], count: int) -> str:
    return edited(SCALE, (OUTPUT, "".join(f"      {line(i)}\n" for i in range(count))))


def _json(count: int) -> str:
    """All on one line, as programs write it."""
    schema = yaml.safe_load(SCALE)
    (op,) = schema["ops"]
    schema["ops"] = [{**op, "name": f"Scale{i}", "kernel": "scale::Scalx"} for i in range(count)]
    return json.dumps(schema)


def _ops(line: Callable[[int], str], count: int) -> str:
    return HEAD + "".join(
        edited(OP, ("Scale", f"Scale{i}"), ("    kernel", f"    {line(i)}\n    kernel")) for i in range(count)
    )


SCHEMAS: dict[str, Callable[[int], str]] = {
    "unknown_aliases": lambda n: (
        "".join(f"a{i}: &anchor{i} a\n" for i in range(n)) + "".join(f"b{i}: *other{i}\n" for i in range(n))
    ),
    "one_line": _json,
    "merges_of_a_long_mapping": lambda n: (
        HEAD + f"  - &a {{{', '.join(f'k{i}: 1' for i in range(n))}}}\n" + "  - {<<: [*a, *a]}\n" * n
    ),
    "chain_of_likes": lambda n: _outputs(lambda i: f"Y{i}: {{type: T, like: {f'Y{i + 1}' if i < n - 1 else 'X'}}}", n),
    "circle_of_likes": lambda n: _outputs(lambda i: f"Y{i}: {{type: T, like: Y{(i + 1) % n}}}", n),
    "unknown_likes": lambda n: _outputs(lambda i: f"Y{i}: {{type: T, like: Z{i}}}", n),
    "unknown_types": lambda n: _outputs(lambda i: f"Y{i}: {{type: Q{i}, like: X}}", n),
    "chain_of_lengths": lambda n: edited(
        SCALE, ("    dims:\n", "    dims:\n" + "".join(f"      E{i}: {{length: E{i + 1}}}\n" for i in range(n)))
    ),
    "circle_of_gradients": lambda n: _ops(lambda i: f"gradient_of: Scale{(i + 1) % n}", n),
    "unknown_forwards": lambda n: _ops(lambda i: f"gradient_of: Scalx{i}", n),
    "unknown_keys": lambda n: edited(SCALE, ("    rows", "".join(f"    rows{i}: 1\n" for i in range(n)) + "    rows")),
    "unknown_keys_of_cases": lambda n: edited(
        SCALE, ("    cases:\n", "    cases:\n" + "".join(f"      - {{name: a{i}, X{i}: [2, 3]}}\n" for i in range(n)))
    ),
    "long_shape": lambda n: edited(SCALE, ('[N, "*D"]', f"[{', '.join(['3'] * n)}]")),
    "long_shape_of_a_case": lambda n: edited(SCALE, ("X: [2, 3]", f"X: [{', '.join(['3000'] * n)}]")),
    "unknown_choices": lambda n: edited(
        CONVOLVE,
        ("    cases:\n", "    cases:\n" + "".join(f"      - {{name: a{i}, auto_pad: SAMES{i}}}\n" for i in range(n))),
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_many_faults_take_linear_effort(name: str) -> None:
    def steps(count: int) -> int:
        text = SCHEMAS[name](count)
        return _steps(lambda: format_text(load(text)[1], source_of("ops.yaml", text)))

    steps(1)  # what is read once for all
    assert steps(TIMES * FEW) < 2 * TIMES * steps(FEW)


def test_the_line_of_a_fault_is_looked_at_only_around_it() -> None:
    line = "x" * 100_000
    found = [Diagnostic("G999", Severity.ERROR, "bad", Span(1, column)) for column in (1, 50_000, 100_000)]
    steps = _steps(lambda: format_text(found, source_of("ops.yaml", line)))
    assert steps < 10_000
    shown = format_text(found, source_of("ops.yaml", line)).splitlines()
    assert max(map(len, shown)) < 200
    assert [line[line.index("|") + 2 :].startswith("...") for line in shown[1:-1:3]] == [False, True, True]


def test_guesses_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def compare(_word: str, known: dict[str, str], **_options: object) -> list[str]:
        compared.append(len(known))
        return []

    monkeypatch.setattr("difflib.get_close_matches", compare)
    load(SCHEMAS["unknown_likes"](1000))
    load(SCHEMAS["unknown_aliases"](1000))
    assert 0 < sum(compared) <= 2 * suggestions.MAX_COMPARISONS
    assert suggestions.nearest("x" * 10_000, ["x" * 10_001]) == ""


def test_no_more_faults_are_shown_than_one_reads_and_all_are_counted() -> None:
    text = SCHEMAS["unknown_keys_of_cases"](MAX_SHOWN + 20)
    shown = format_text(load(text)[1], source_of("ops.yaml", text))
    assert shown.count("error[") == MAX_SHOWN
    assert shown.endswith(f"\n{MAX_SHOWN + 20} errors; 20 of them are not shown\n")


def test_errors_are_shown_before_warnings() -> None:
    anchors = "".join(f"  - &a{i} x\n" for i in range(MAX_SHOWN + 20))
    text = f"unknown:\n{anchors}" + edited(SCALE, ("scale::Scale", "scale::Scalx"))
    shown = format_text(load(text)[1], source_of("ops.yaml", text))
    assert shown.count("error[G701]") == 1
    assert shown.count("error[") + shown.count("warning[") == MAX_SHOWN


def test_long_messages_and_lists_are_cut() -> None:
    long = "x" * 5000
    text = edited(
        SCALE, ("like: X", f"like: {long}"), ("    rows", "".join(f"    k{i}: 1\n" for i in range(50)) + "    rows")
    )
    shown = format_text(load(text)[1], source_of("ops.yaml", text))
    assert "'k19' and 30 others" in shown
    assert max(map(len, shown.splitlines())) < 1200


def test_chains_and_circles_of_names() -> None:
    following = {"tail": "b", "a": "b", "b": "c", "c": "a", "self": "self", "x": "y", "y": "end", "w": "x"}
    assert list(chains.circles(following)) == [["a", "b", "c"], ["self"]]
    ends = {name: name for name in ("tail", "a", "b", "c", "self")}
    assert chains.ends(following) == {**ends, "x": "end", "y": "end", "w": "end"}
    assert chains.text(["a", "b"]) == "a -> b -> a"
    assert chains.text([str(i) for i in range(1000)]).endswith(" -> 8 -> ... -> 999 -> 0")
