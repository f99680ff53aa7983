"""Where checks begin to object: what just fits, and what is one more."""

from __future__ import annotations

import pytest
from gradsmith_codegen.grammar import MAX_NAME
from gradsmith_codegen.values import MAX_MERGED
from schemas import CONVOLVE, SCALE, edited, load


def ids(text: str, *edits: tuple[str, str]) -> list[str]:
    return [fault.id for fault in load(edited(text, *edits))[1]]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("name: Scale", "name: S{}", "G101"),
        ("factor:", "f{}:", "G102"),
        ("float: {T:", "f{}: {{T:", "G103"),
        ("name: plain", "name: p{}", "G103"),
    ],
)
def test_names_have_36_characters(old: str, new: str, rule: str) -> None:
    assert ids(SCALE, (old, new.format("c" * (MAX_NAME - 1)))) == []
    assert ids(SCALE, (old, new.format("c" * MAX_NAME))) == [rule]


def merging(sources: list[int]) -> list[str]:
    """What is told of attributes into which mappings of so many attributes are merged."""
    total = iter(range(sum(sources)))
    mappings = [", ".join(f"a{next(total)}: {{type: int, default: 1}}" for _ in range(count)) for count in sources]
    merged = ", ".join(f"{{{mapping}}}" for mapping in mappings)
    return ids(SCALE, ("attributes:\n", f"attributes:\n      <<: [{merged}]\n"))


def test_a_merge_brings_128_entries() -> None:
    assert merging([MAX_MERGED]) == merging([MAX_MERGED // 2, 0, MAX_MERGED // 2]) == []
    assert merging([MAX_MERGED + 1]) == merging([MAX_MERGED, 1]) == merging([1, 0, MAX_MERGED]) == ["G036"]


def test_a_chain_of_merges_grows_no_longer_than_one_merge_may() -> None:
    """All that each brings was all of those before it."""
    count = 3 * (MAX_MERGED + 1)
    chain = "".join(f"  - &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n" for i in range(1, count))
    faults = load(SCALE[: SCALE.index("  - name")] + "  - &a0 {k0: 1}\n" + chain)[1]
    assert [fault.span.line for fault in faults if fault.span and fault.id == "G036"] == [
        4 + MAX_MERGED + 2,
        4 + 2 * (MAX_MERGED + 1) + 1,
    ]


@pytest.mark.parametrize("suffix", ["Attributes", "Inputs", "Outputs", "InputDims", "OutputDims"])
def test_no_op_has_the_name_of_anothers_struct(suffix: str) -> None:
    op = SCALE[SCALE.index("  - name: Scale") :]
    assert ids(SCALE + edited(op, ("name: Scale", f"name: Scale{suffix}"))) == ["G105"]


def test_tensors_have_8_dims() -> None:
    assert ids(SCALE, ("length: [0, 3]", "length: [0, 7]")) == []
    assert ids(SCALE, ("length: [0, 3]", "length: [0, 8]")) == ["G317"]


@pytest.mark.parametrize(("count", "expected"), [(16, []), (17, ["G319"])])
def test_shapes_have_16_symbols(count: int, expected: list[str]) -> None:
    symbols = [f"S{index}" for index in range(count)]
    inputs = {"X": symbols[:8], "V": symbols[8:16], "U": symbols[16:]}
    tensors = "".join(f"      {key}: {{type: T, shape: [{', '.join(dims)}]}}\n" for key, dims in inputs.items())
    shapes = ", ".join(f"{key}: {[1] * len(dims)}" for key, dims in inputs.items())
    edits = [('      X: {type: T, shape: [N, "*D"]}\n', tensors), ("    dims:\n      D: {length: [0, 3]}\n", "")]
    assert ids(SCALE, *edits, ("X: [2, 3]", shapes)) == expected


@pytest.mark.parametrize(("entries", "expected"), [(8, []), (9, ["G404"])])
def test_lists_have_8_entries(entries: int, expected: list[str]) -> None:
    attribute = f"steps: {{type: ints, default: {[1] * entries}}}"
    assert ids(SCALE, ("factor: {type: float, default: 1.0}", attribute)) == expected


def test_a_range_may_be_a_single_number() -> None:
    assert ids(SCALE, ("default: 1.0}", "default: 1.0, min: 1.0, max: 1.0}")) == []


@pytest.mark.parametrize(("elements", "expected"), [(2**31 - 1, []), (2**31, ["G610"])])
def test_tensors_of_cases_have_fewer_than_2_to_the_31_elements(elements: int, expected: list[str]) -> None:
    assert ids(SCALE, ("X: [2, 3]", f"X: [{elements}]")) == expected


@pytest.mark.parametrize(("version", "expected"), [(2**31 - 1, []), (2**31, ["G012"])])
def test_versions_fit_31_bits(version: int, expected: list[str]) -> None:
    assert ids(SCALE, ("since_version: 1", f"since_version: {version}")) == expected


@pytest.mark.parametrize(("length", "expected"), [("[2, 2]", []), ("[2, 3]", ["G407"]), ("[1, 2]", ["G407"])])
def test_a_default_list_fits_every_length(length: str, expected: list[str]) -> None:
    strides = "strides: {type: ints, default: "
    edits = [("D: {length: [1, 3]}", f"D: {{length: {length}}}"), (f"{strides}[]", f"{strides}[1, 1]")]
    assert ids(CONVOLVE, *edits) == expected


def test_no_rule_takes_what_it_computes() -> None:
    edits = [
        ("      W: {type: T", '      B: {type: T, shape: ["*O"]}\n      W: {type: T'),
        ("(D, K)", "(O, K)"),
        ("X: [2, 4, 5, 6]", "X: [2, 4, 5, 6], B: [3, 5]"),
    ]
    _, (fault,) = load(edited(CONVOLVE, *edits))
    assert (fault.id, fault.message) == ("G312", "the rule of 'O' uses 'O' itself")


@pytest.mark.parametrize(("parameter", "expected"), [("T12", ["G201"]), ("Tensor", ["G014"]), ("Tx", ["G014"])])
def test_what_looks_like_a_type_parameter(parameter: str, expected: list[str]) -> None:
    assert ids(SCALE, ("Y: {type: T,", f"Y: {{type: {parameter},")) == expected
