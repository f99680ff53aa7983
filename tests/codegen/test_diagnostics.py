"""How diagnostics are shown."""

from __future__ import annotations

import json

from gradsmith_codegen.diagnostics import (
    Diagnostic,
    Severity,
    format_json,
    format_text,
    in_order,
    summary,
)
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.spans import Span


def _error(span: Span | None, message: str = "wrong", rule: str = "G001") -> Diagnostic:
    return Diagnostic(rule, Severity.ERROR, message, span)


def _caret_lines(line: str, span: Span) -> tuple[str, str]:
    text = format_text([_error(span)], source_of("ops.yaml", line))
    _, shown, caret, _ = text.splitlines()
    return shown, caret


def test_text_has_place_line_caret_notes_and_count() -> None:
    source = source_of("dir/ops.yaml", "a: hlaf\nb: 2\n")
    diagnostic = _error(Span(1, 4, 4), "unknown type 'hlaf'", "G014").noting("first declared here", Span(2, 1))
    assert format_text([diagnostic], source) == (
        "dir/ops.yaml:1:4: error[G014]: unknown type 'hlaf'\n"
        "    1 | a: hlaf\n"
        "      |    ^~~~\n"
        "dir/ops.yaml:2:1: note: first declared here\n"
        "    2 | b: 2\n"
        "      | ^\n"
        "1 error\n"
    )


def test_nothing_to_say_is_no_text() -> None:
    assert format_text([], source_of("ops.yaml", "")) == ""


def test_colour_only_on_request() -> None:
    source = source_of("ops.yaml", "a: b")
    plain = format_text([_error(Span(1, 1))], source)
    coloured = format_text([_error(Span(1, 1))], source, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[G001]:\x1b[0m wrong" in coloured


def test_a_fault_of_the_whole_file_has_no_line() -> None:
    assert format_text([_error(None)], source_of("x", "")) == "x: error[G001]: wrong\n1 error\n"


def test_tabs_take_their_cells() -> None:
    shown, caret = _caret_lines("a\tb: hlaf", Span(1, 6, 4))
    assert shown == "    1 | a       b: hlaf"
    assert caret == "      |            ^~~~"


def test_wide_and_combining_characters_take_their_cells() -> None:
    shown, caret = _caret_lines("名e\u0301: hlaf", Span(1, 6, 4))
    assert shown == "    1 | 名e\u0301: hlaf"
    assert caret == "      |      ^~~~"


def test_wide_characters_are_underlined_whole() -> None:
    assert _caret_lines("a: 名前", Span(1, 4, 2))[1] == "      |    ^~~~"


def test_unprintable_characters_are_replaced() -> None:
    assert _caret_lines("a\x07b", Span(1, 3))[0] == "    1 | a\ufffdb"


def test_long_lines_are_cropped_around_the_caret() -> None:
    shown, caret = _caret_lines("x" * 1000 + "hlaf" + "y" * 1000, Span(1, 1001, 4))
    assert len(shown) < 180
    assert shown.startswith("    1 | ...x")
    assert shown.endswith("y...")
    start = caret.index("^")
    assert shown[start : start + 4] == "hlaf"
    assert caret.endswith("^~~~")


def test_an_underline_ends_where_the_line_is_cropped() -> None:
    shown, caret = _caret_lines("x" * 1000, Span(1, 1, 1000))
    assert shown.endswith("...")
    assert len(caret) <= len(shown)


def test_a_place_at_the_end_of_the_line_is_shown() -> None:
    assert _caret_lines("kernel:", Span(1, 8))[1] == "      |        ^"


def test_json_has_every_field() -> None:
    diagnostic = _error(Span(3, 5, 2), "no", "G007").noting("here", Span(1, 1, 4))
    assert json.loads(format_json([diagnostic, _error(None)], source_of("ops.yaml", ""))) == [
        {
            "file": "ops.yaml",
            "line": 3,
            "column": 5,
            "end_column": 7,
            "id": "G007",
            "severity": "error",
            "message": "no",
            "notes": [{"file": "ops.yaml", "line": 1, "column": 1, "end_column": 5, "message": "here"}],
        },
        {
            "file": "ops.yaml",
            "line": None,
            "column": None,
            "end_column": None,
            "id": "G001",
            "severity": "error",
            "message": "wrong",
            "notes": [],
        },
    ]


def test_order_is_by_place_then_id_and_repetitions_are_dropped() -> None:
    late, early = _error(Span(9, 1)), _error(Span(1, 7), rule="G002")
    early_too, no_place = _error(Span(1, 7), rule="G001"), _error(None)
    earlier = _error(Span(1, 3), rule="G009")
    faults = [late, early, late, early_too, earlier, no_place]
    assert in_order(faults) == [no_place, earlier, early_too, early, late]


def test_what_is_said_of_one_place_for_several_operators_is_said_once() -> None:
    first, second = (_error(Span(9, 1), f"'dims' of operator '{name}' is wrong") for name in ("A", "B"))
    other = _error(Span(9, 1), "and something else")
    assert in_order([first, second, other]) == sorted([first, other], key=lambda fault: fault.message)


def test_summary_counts_by_severity() -> None:
    warning = Diagnostic("G022", Severity.WARNING, "unused", None)
    assert summary([_error(None)]) == "1 error"
    assert summary([_error(None), _error(None), warning]) == "2 errors and 1 warning"
    assert summary([warning, warning]) == "2 warnings"
