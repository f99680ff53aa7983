"""The language of shape rules, and a family that declares a rule of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import said
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders, shared_rules
from gradsmith_codegen.library import Library
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.render import render
from gradsmith_codegen.rule_cpp import rules_of
from gradsmith_codegen.rule_formula import BadRule, rule_formula, shared_rule
from gradsmith_codegen.shape_rules import Attributes, Dims, ImpossibleShape, evaluated
from schemas import SCALE, edited

FIELDS = {"steps": "ints", "edges": "ints", "mode": "Mode", "wide": "bool", "extra": "int", "ratio": "float"}


def size(text: str, attributes: Attributes, *lists: Dims) -> Dims:
    return evaluated(rule_formula(text, ("D", "K")[: len(lists)], FIELDS, shared_rules()), attributes, lists)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("D", 7),
        ("D - 2 * (1 + 2) + extra", 6),
        ("D - (2 - 1) - 1", 5),
        ("floor(D / 2)", 3),
        ("ceil(D / 2)", 4),
        ("floor((1 - D) / 4)", -2),
        ("ceil((1 - D) / 4)", -1),
        ("min(D, 3) + max(D, 3)", 10),
        ("entry(steps, 1)", 2),
        ("begin(edges, 0) * 10 + end(edges, 0)", 13),
        ("where(wide, 1, 2)", 1),
        ("where(not wide or D == 7 and mode == slow, 1, 2)", 1),
        ("where(mode != slow, 1, 2)", 2),
        ("where(given(steps), 1, 2)", 1),
        ("where(D == 0, floor(D / D), 9)", 9),
        ("half = floor(D / 2)\nhalf + 1", 4),
        ("half =\n  floor(D\n  / 2)\nis_odd = 2 * half != D\nwhere(is_odd, half, 0)", 3),
        ("-D + 8", 1),
    ],
)
def test_a_formula_is_evaluated(text: str, value: int) -> None:
    attributes: Attributes = {"steps": (2,), "edges": (1, 3), "mode": "slow", "wide": True, "extra": 5}
    assert size(text, attributes, (7,)) == (value,)


def test_each_axis_has_its_own_numbers() -> None:
    text = "entry(steps, 1) * D + begin(edges, 0) + 10 * end(edges, 0)"
    assert size(text, {"steps": (2, 3), "edges": (1, 2, 3, 4)}, (5, 6)) == (41, 60)
    assert size(text, {"steps": ()}, (5, 6)) == (5, 6)
    assert size("D - K", {}, (5, 6), (1, 2)) == (4, 4)
    assert size("D", {}, ()) == ()


def test_what_does_not_hold_is_told_in_the_words_of_the_rule() -> None:
    text = "step = entry(steps, 1)\nexpect step < D: steps of axis {axis}: {step} is over; {steps} of {D}, {mode}\n1"
    assert size(text, {"steps": (1, 5)}, (5, 6)) == (1, 1)
    with pytest.raises(ImpossibleShape, match=r"^steps of axis 1: 7 is over; \[1, 7\] of \[5, 6\], slow$") as told:
        size(text, {"steps": (1, 7), "mode": "slow"}, (5, 6))
    assert told.value.attribute == "steps"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the text is empty"),
        ("a = D", "the last line gives no size"),
        ("D\nK = 1", "'K = 1' stands behind the size"),
        ("D +", "'D +': the formula ends where a number, a name or '(' is expected"),
        ("D ** 2", "'D ** 2': '**' has no meaning in a formula"),
        ("exp(D)", "'exp(D)': unknown function 'exp'"),
        ("min(D)", "'min(D)': 'min' takes 2 arguments, not 1"),
        ("sum(D)", "a shape rule has no reductions and reads no elements"),
        ("count(D)", "a shape rule has no reductions and reads no elements"),
        ("D / 2", "a quotient is rounded: 'floor(a / b)' or 'ceil(a / b)'"),
        ("floor(D)", "'floor' is of a quotient, as in 'floor(a / b)'"),
        ("D + 0.5", "numbers of a shape rule are whole"),
        ("D + E", "'E' is no value that the rule knows"),
        ("D + ratio", "'ratio' is no value that the rule knows"),
        ("D + steps", "'steps' is a list: 'entry(x, 0)' is one of its numbers"),
        ("entry(steps, D)", "'entry' is of a list attribute and a number, as in 'entry(strides, 1)'"),
        ("entry(extra, 1)", "'extra' is no attribute that the rule takes and that is a list of integers"),
        ("where(given(stepps), 1, 2)", "'stepps' is no attribute that the rule takes and that is a list of integers"),
        ("where(extra == fast, 1, 2)", "'extra' is no attribute that the rule takes and that is an enum"),
        ("where(D, 1, 2)", "'D' is a number where a truth value is expected"),
        ("D + (D < 2)", "'D < 2' is a truth value where a number is expected"),
        ("D < 2", "'D < 2' is a truth value where a number is expected"),
        ("expect D: no\nD", "'D' is a number where a truth value is expected"),
        ("expect D > 1: {stepps}\nD", "'{stepps}' is no value that the rule knows"),
        ("a = D\na = D\na", "'a' is defined twice"),
        ("value = D\nvalue", "'value' cannot be the name of a definition"),
        ("steps = D\nD", "'steps' cannot be the name of a definition"),
        ("double = D\nD", "'double' cannot be the name of a definition"),
        ("windows(D)", "'windows' takes 2 arguments, not 1"),
        ("windows(D, K)", "'K' is no list of dims that the rule takes"),
    ],
)
def test_a_text_that_does_not_read(text: str, fault: str) -> None:
    with pytest.raises(BadRule) as told:
        rule_formula(text, ("D",), FIELDS, shared_rules())
    assert str(told.value).startswith(fault)


def test_a_shared_rule_begins_with_its_name() -> None:
    name, rule = shared_rule("ring(D, K) is\nD + K\n")
    assert (name, rule.parameters, rule.lines) == ("ring", ("D", "K"), ("D + K",))
    with pytest.raises(BadRule) as told:
        shared_rule("D + K")
    assert str(told.value) == "a shared rule begins with a line such as 'windows(D, K) is'"


def test_what_a_shared_rule_expects_may_never_hold() -> None:
    name, rule = shared_rule("ring(D) is\nexpect given(steps): no\nD\n")
    assert rule_formula("ring(D)", ("D",), FIELDS, {name: rule}).lines
    with pytest.raises(BadRule, match=r"'expect given\(steps\)' never holds"):
        rule_formula("ring(D)", ("D",), {}, {name: rule})


def test_every_wording_is_looked_at() -> None:
    """The texts of rules are headers', of which a bad file shows one that does not read."""
    own = Path(__file__).read_text(encoding="utf-8")
    words = [text.strip("'").strip() for text in said.texts(said.SOURCES / "rule_formula.py").values()]
    assert len(words) > 15
    assert [text for text in words if text not in own] == []


def test_attributes_that_a_shared_rule_reads_may_be_lacking() -> None:
    taken = {"strides": "ints"}
    formula = rule_formula("windows(D, 3)", ("D",), taken, shared_rules())
    assert not any("pads" in line or "auto_pad" in line or "ceil_mode" in line for line in formula.lines)
    assert evaluated(formula, {"strides": (2,)}, ((9,),)) == (4,)
    assert evaluated(formula, {"strides": (), "pads": (1, 1)}, ((9,),)) == (7,)  # which is no attribute of its


# ----------------------------------------------------------------------------------------------------
# A family

RING = """\
namespace mylib::ring {
struct RingAttributes {
  IntList sizes = {};
};
inline constexpr std::string_view kTurns = R"(
    expect entry(sizes, 1) <= D: attribute sizes is {sizes}; expected no more than {D}
    D - entry(sizes, 1) + 1
)";
Result<Dims> Turns(const RingAttributes& attributes, const Dims& D);
struct Ring {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *O], O = ring::Turns(D)";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = RingAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context& context);
};
}
"""
ENTRY = edited(
    SCALE,
    ("kernel: scale::Scale", "kernel: ring::Ring"),
    ("Y: {type: T, like: X}", 'Y: {type: T, shape: [N, "*O"]}'),
    ("      D: {length: [0, 3]}", '      D: {length: [0, 3]}\n      O: {length: D, rule: "ring::Turns(D)"}'),
    ("factor: {type: float, default: 1.0}", "sizes: {type: ints, default: [], length: D}"),
    ("X: [2, 3]}", "X: [2, 7], sizes: [3]}"),
)


def headers(folder: Path, text: str = RING) -> KernelHeaders:
    (folder / "ring").mkdir(exist_ok=True)
    (folder / "ring/kernels.h").write_text(text, encoding="utf-8")
    return KernelHeaders([folder, RUNTIME], "mylib")


def told(entry: str, found: KernelHeaders) -> list[str]:
    _, diagnostics = load_source(source_of("ops.yaml", entry), headers=found)
    return [f"{one.id}: {one.message}" for one in diagnostics]


def test_cases_of_an_own_rule_follow_from_it(tmp_path: Path) -> None:
    found = headers(tmp_path)
    schema, diagnostics = load_source(source_of("ops.yaml", ENTRY), headers=found)
    assert diagnostics == []
    assert schema
    assert dict(schema.ops[0].cases[0].all_shapes)["Y"] == (2, 5)
    page = dict(render(artefacts(make_plan(schema, 1, Library("mylib", frozenset(["ring"]))))))["docs/Scale.md"]
    assert "\nD - entry(sizes, 1) + 1\n" in page
    (fault,) = told(edited(ENTRY, ("sizes: [3]", "sizes: [8]")), found)
    assert fault == "G608: case 'plain': attribute sizes is [8]; expected no more than [7]"


def test_an_own_rule_becomes_a_struct_of_the_librarys_namespace(tmp_path: Path) -> None:
    found = headers(tmp_path)
    schema, _ = load_source(source_of("ops.yaml", ENTRY), headers=found)
    assert schema
    library = Library("mylib", frozenset(["ring"]))
    files = dict(render(artefacts(make_plan(schema, 1, library, (), rules_of(found, library)))))
    text = files["src/ring/shape_rules.h"]
    for line in (
        "namespace mylib::ring::rules {",
        "using ::gradsmith::internal::EntryOf;",
        "  const RingAttributes& attributes;",
        "  const ::gradsmith::Dims& D;",
        "  Extent value = Extent{D[axis]} - EntryOf(attributes.sizes, axis, 1) + 1;",
        "  bool holds_1 = EntryOf(attributes.sizes, axis, 1) <= Extent{D[axis]};",
        "      text += RuleText(attributes.sizes);",
    ):
        assert line in text.splitlines()
    assert sorted(name for name in files if name.endswith("shape_rules.h")) == ["src/ring/shape_rules.h"]


def test_a_text_that_does_not_read_is_told_at_the_entrys_rule(tmp_path: Path) -> None:
    found = headers(tmp_path, edited(RING, ("D - entry(sizes, 1) + 1", "D - entry(size, 1) + 1")))
    (fault,) = told(ENTRY, found)
    assert fault.startswith("G321: what ring/kernels.h says of ring::Turns does not read: 'size' is no attribute")


def test_a_rule_whose_header_says_nothing_needs_the_shapes_of_cases(tmp_path: Path) -> None:
    found = headers(tmp_path, edited(RING, ("kTurns", "kTurn")))
    (fault,) = told(ENTRY, found)
    assert fault.startswith("G609: the generator cannot work out ring::Turns(D)")
    assert told(edited(ENTRY, ("X: [2, 7]", "X: [2, 7], Y: [2, 9]")), found) == []
