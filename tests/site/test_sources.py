"""What the reference is made of: links of pages, comments of headers, figures of runs."""

from __future__ import annotations

from pathlib import Path

import cpp_api
import measured
import operators
import pages
import pytest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](cpp.md), [b](cpp.md#x)", "[a](cpp.md), [b](cpp.md#x)"),
        ("[the file](../run) and [`code`](../run)", "the file and `code`"),
        ("[home](../README.md#speed)", "[home](../index.md#speed)"),
        ("[lab](lab)", "[lab](lab/README.md)"),
        ("[web](https://example.com/a)", "[web](https://example.com/a)"),
        ("`[a](../run)`\n```\n[b](../run)\n```\n", "`[a](../run)`\n```\n[b](../run)\n```\n"),
        ("[here](#there)", "[here](#there)"),
    ],
)
def test_links_lead_to_pages_or_are_none(tmp_path: Path, text: str, expected: str) -> None:
    for name in ("run", "README.md", "docs/cpp.md", "docs/lab/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "docs/page.md").write_text(text, encoding="utf-8")
    known = {"README.md", "docs/cpp.md", "docs/page.md", "docs/lab/README.md"}
    assert pages.source_of(tmp_path, "docs/page.md", known) == expected


def test_pages_that_nobody_has_named_are_in_the_navigation() -> None:
    text = pages.home("# Home\n", ["docs/cpp.md", "docs/new.md"])
    assert ":caption: Also\n\ndocs/new\n" in text
    assert text.count("docs/cpp\n") == 1


HEADER = """\
#ifndef H_
#define A(x) \\
  /* more */ x

namespace gradsmith {

namespace internal {
/// Hidden is internal.
struct Hidden {};
}  // namespace internal

/// Point is a place,
/// of two numbers.
struct Point {
  /// From the left.
  int x = 0;
  std::function<void()> moved = {};
  Point() : x{Start()}, y(0) {
    if (x > 0) {
      Move();
    }
  }
  [[nodiscard]] int sum() const { return x + y; }

 private:
  int y;
};

int NoComment();

/// Add returns a sum, a < b or not.
///
///     Add<int>(1, 2);
template <typename T>
inline T Add(T a, T b) {
  return a + b;
}
/// Add returns a sum of three.
int Add(int a, int b, int c);

/// kMost is the most.
inline constexpr int kMost = 3;

/// Numbers are some.
using Numbers = std::vector<int>;

}  // namespace gradsmith
"""


def test_declarations_of_a_header() -> None:
    found = {(one.name, one.code.splitlines()[0]): one for one in cpp_api.declarations(HEADER)}
    assert [name for name, _ in found] == ["Point", "Add", "Add", "kMost", "Numbers"]
    point, add, more, most, numbers = found.values()
    assert point.comment == "Point is a place,\nof two numbers."
    assert point.code.splitlines() == [
        "struct Point {",
        "  /// From the left.",
        "  int x = 0;",
        "  std::function<void()> moved = {};",
        "  Point();",
        "  [[nodiscard]] int sum() const;",
        "};",
    ]
    assert add.comment == "Add returns a sum, a \\< b or not.\n\n    Add<int>(1, 2);"
    assert add.code == "template <typename T>\ninline T Add(T a, T b);"
    assert more.code == "int Add(int a, int b, int c);"
    assert most.code == "inline constexpr int kMost = 3;"
    assert numbers.code == "using Numbers = std::vector<int>;"


def test_overloads_stand_together(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text(HEADER, encoding="utf-8")
    text = cpp_api.page(tmp_path / "h.h")
    assert text.count("\n## Add\n") == 1
    assert text.startswith("# gradsmith/h.h\n")


def test_every_comment_of_the_headers_is_read(repository: Path) -> None:
    """A declaration in another form than the extractor knows would be left out in silence."""
    for header in cpp_api.headers(repository / "runtime/include/gradsmith"):
        for one in cpp_api.declarations(header.read_text(encoding="utf-8")):
            assert one.code.count("{") == one.code.count("}"), (header.name, one.name)
            assert one.code.count("(") == one.code.count(")"), (header.name, one.name)


def test_figures_of_runs() -> None:
    found = measured.of_all()
    (one,) = [
        case for case in found["SigmoidGrad"] if (case.case, case.type, case.card) == ("8192x4096", "float", "H200")
    ]
    assert one.share_of_copy == pytest.approx(402653184 / 0.093453e-3 / 4261.918e9, rel=1e-4)
    assert one.torch_over_ours == pytest.approx(0.093776 / 0.093453, rel=1e-4)
    assert {case.card for case in found["ConvGrad"]} == {"H100", "H200"}
    assert all(case.milliseconds > 0 for cases in found.values() for case in cases)


def test_cells_are_those_of_the_operator() -> None:
    table = "text\n\n| op | a |\n|---|---|\n| A | 1 |\n| B | 2 |\n\n| op | b |\n|---|---|\n| A | 3 |\n"
    assert operators.cells_of("A", table) == [
        "| op | a |",
        "|---|---|",
        "| A | 1 |",
        "",
        "| op | b |",
        "|---|---|",
        "| A | 3 |",
    ]
    assert operators.cells_of("C", table) == []
