"""Schemas that nobody would write on purpose: told as any other fault, never a traceback, never taken silently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gradsmith_codegen import files, loader
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.diagnostics import Diagnostic, Source, format_text
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.render import render
from schemas import CONVOLVE, SCALE, edited, ids, load

EMPTY_TEXTS = [
    (SCALE, "domain: com.example", 'domain: ""'),
    (SCALE, "name: Scale", 'name: ""'),
    (SCALE, "kernel: scale::Scale", 'kernel: ""'),
    (SCALE, "backends: [cpu]", 'backends: [""]'),
    (SCALE, "backends: [cpu]", 'backends: [cpu, "", ""]'),
    (SCALE, "type: T, shape", 'type: "", shape'),
    (SCALE, "shape: [N,", 'shape: [N, "",'),
    (SCALE, "like: X", 'like: ""'),
    (SCALE, "like: X", 'like: X, in_place_of: ""'),
    (SCALE, "like: X", 'like: X, gradient_of: ""'),
    (SCALE, "kernel: scale", 'gradient_of: ""\n    kernel: scale'),
    (SCALE, "length: [0, 3]", 'length: ""'),
    (SCALE, "type: float, default: 1.0", 'type: ""'),
    (SCALE, "{T: float}", '{T: ""}'),
    (SCALE, "name: plain", 'name: ""'),
    (SCALE, "name: plain,", 'name: plain, layout: "",'),
    (CONVOLVE, "M: {multiple_of: group}", 'M: {multiple_of: ""}'),
    (CONVOLVE, 'rule: "conv::OutputSpatial(D, K)"', 'rule: ""'),
    (CONVOLVE, "length: 2 * D", 'length: ""'),
    (CONVOLVE, "enum: AutoPad", 'enum: ""'),
    (CONVOLVE, "default: NOTSET", 'default: ""'),
]


@pytest.mark.parametrize(("text", "old", "new"), EMPTY_TEXTS, ids=[new for _, _, new in EMPTY_TEXTS])
def test_empty_text_is_no_name(text: str, old: str, new: str) -> None:
    assert "G010" in ids(edited(text, (old, new)))


EMPTY_VALUES = ["", "{}", "[]", "~", "''", "x", "0", "[{}]", "[[]]", "[~]", "{<<: {}}", "[{<<: {}}]", "{? ~ : 1}"]
KEYS = "ops name doc kernel backends inputs X shape outputs Y type like dims D length attributes factor rows T cases"


def _with_value(text: str, key: str, value: str) -> str:
    """The schema with another value for the first entry of this key, on its own line or in braces."""
    tree = yaml.safe_load(text)

    def replaced(node: object) -> bool:
        if isinstance(node, dict) and key in node:
            node[key] = "VALUE"
            return True
        return any(map(replaced, node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()))

    assert replaced(tree)
    return yaml.safe_dump(tree, sort_keys=False).replace("VALUE", value, 1)


@pytest.mark.parametrize("key", KEYS.split())
def test_an_empty_value_never_vanishes(key: str) -> None:
    for value in EMPTY_VALUES:
        schema, found = load(_with_value(SCALE, key, value))
        assert found or schema
        if schema:
            for op in schema.ops:
                assert op.name
                assert op.inputs
                assert op.outputs
                assert op.rows
                assert op.backends
                assert op.cases
            assert dict(render(artefacts(make_plan(schema, shards=1))))


@pytest.mark.parametrize("text", ["{}", "<<: {}", "<<: [{}, {}]", "{<<: {<<: {}}}"])
def test_a_schema_of_nothing_lacks_every_key(text: str) -> None:
    (fault,) = load(text)[1]
    assert fault.message == "the schema lacks the keys 'schema_version', 'domain', 'since_version' and 'ops'"


@pytest.mark.parametrize("entry", ["{}", "<<: {}", "{<<: [{}]}"])
@pytest.mark.parametrize("others", [True, False])
def test_an_operator_of_nothing_lacks_every_key(entry: str, others: bool) -> None:
    head, op = SCALE[: SCALE.index("  - name")], SCALE[SCALE.index("  - name") :]
    (fault,) = load(f"{head}  - {entry}\n" + op * others)[1]
    assert fault.id == "G009"
    assert fault.message.startswith("this operator lacks the keys 'name', 'doc', 'kernel', ")


@pytest.mark.parametrize("last", ["    ? gradient_of", "  - ? name"])
@pytest.mark.parametrize("parser", [loader.PARSER, yaml.BaseLoader], ids=["C", "Python"])
def test_nothing_at_the_end_of_a_file_without_a_last_line_end(last: str, parser: object) -> None:
    source = source_of("ops.yaml", SCALE + last)
    _, found = load_source(source, parser)
    assert "G010" in [fault.id for fault in found]
    assert "error[G010]" in format_text(found, source)


def test_a_long_chain_of_merges_is_refused() -> None:
    links = "".join(f"  - &a{i} {{<<: *a{i - 1}}}\n" for i in range(1, 800))
    text = edited(SCALE, ("    attributes:\n", "    attributes:\n      later: *a799\n"))
    assert "G019" in ids(f"unknown:\n  - &a0 {{type: int}}\n{links}" + text)


def test_an_empty_list_is_a_value() -> None:
    text = edited(CONVOLVE, ("W: [6, 4, 3, 2]}", "W: [6, 4, 3, 2], pads: [], strides: []}"))
    schema, found = load(text)
    assert found == []
    assert schema
    assert dict(schema.ops[0].cases[0].attributes) == {"pads": (), "strides": ()}


def test_the_least_integer_is_written_as_cpp_can_read_it() -> None:
    least = str(-(2**63))
    schema, found = load(edited(SCALE, ("type: float, default: 1.0", f"type: int, default: {least}")))
    assert found == []
    assert schema
    texts = dict(render(artefacts(make_plan(schema, shards=1))))
    header = texts["include/gradsmith/ops/scale.h"]
    assert "(-9223372036854775807 - 1)" in header
    assert least not in header


@pytest.mark.parametrize(
    "doc",
    ["ends in \\ ", f"{'x' * 80} \\ {'y' * 40}", "C:\\", "a\tb", "a\xa0b", "a\u200db", "a\u202eb"],
)
def test_documentation_may_hold_any_characters_of_a_line(doc: str) -> None:
    assert ids(edited(SCALE, ("doc: Y is X times factor.", f"doc: {json.dumps(doc)}"))) == []


@pytest.mark.parametrize("doc", ["", " ", "\t\xa0", "a\n", "a\nb", "a\rb", "a\fb", "a\x85b", "a\u2028b"])
def test_documentation_is_one_line(doc: str) -> None:
    assert ids(edited(SCALE, ("doc: Y is X times factor.", f"doc: {json.dumps(doc)}"))) == ["G024"]


@pytest.mark.parametrize("code", sorted({*range(32), 127} - {ord("\t")}))
def test_documentation_has_no_control_characters(code: int) -> None:
    for doc in (f"a{chr(code)}b", chr(code), f"a b{chr(code)}"):
        assert ids(edited(SCALE, ("doc: Y is X times factor.", f"doc: {json.dumps(doc)}"))) == ["G024"]


def test_control_characters_are_not_printed() -> None:
    text = edited(SCALE, ("{T: float}", r'{T: "\e[31mred\nops.yaml:1:1: error[G999]: forged"}'))
    shown = format_text(load(text)[1], Source("ops.yaml", text, text.split("\n")))
    assert "\x1b" not in shown
    assert "\nops.yaml:1:1" not in shown
    assert r"\x1b[31mred\x0aops.yaml:1:1" in shown


def test_a_manifest_of_odd_names_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / files.MANIFEST).write_text("a\0b\n/etc\n../up\n", encoding="utf-8")
    assert files.remove_orphans(tmp_path, []) == []


def test_several_faults_of_one_kind_in_one_place_are_all_told() -> None:
    messages = [fault.message for fault in load(edited(SCALE, ('X: {type: T, shape: [N, "*D"]}', "X: {doc: X}")))[1]]
    assert any("the key 'type'" in message for message in messages)
    assert any("the key 'shape'" in message for message in messages)
    found = load(edited(CONVOLVE, ("conv::OutputSpatial(D, K)", "conv::OutputSpatial(Q, R)")))[1]
    assert {"'Q'" in fault.message for fault in found} == {True, False}
    assert {"'R'" in fault.message for fault in found} == {True, False}


SHARED = edited(CONVOLVE, ("    cases:\n      - {name: plain,", "    cases: &cases\n      - {name: plain,"))
OTHER = edited(
    CONVOLVE[CONVOLVE.index("  - name: Convolve") :],
    ("name: Convolve", "name: Other"),
    ("      - {name: plain, X: [2, 4, 5, 6], W: [6, 4, 3, 2]}\n", ""),
    ("    cases:\n", "    cases: *cases\n"),
)


def test_shared_cases_are_read_for_the_tensors_of_each_operator() -> None:
    bias = edited(SHARED, ("W: [6, 4, 3, 2]}", "W: [6, 4, 3, 2], B: [6]}"))
    with_bias = edited(bias, ('K"]}\n', 'K"]}\n      B: {type: T, shape: [M], optional: true}\n'))
    assert ids(with_bias + edited(OTHER, ('K"]}\n', 'K"]}\n      B: {type: T, shape: [M], optional: true}\n'))) == []
    assert "G008" in ids(with_bias + OTHER)


def test_what_is_shared_under_another_name_has_that_name() -> None:
    shared = edited(SHARED, ("float: {T: float}", "float: &row {T: float}"), ("strides: {", "strides: &list {"))
    other = edited(OTHER, ("float: {T: float}", "single: *row"))
    pads = "pads: {type: ints, default: [], min: 0, length: 2 * D}"
    other = edited(other, (pads, f"{pads}\n      dilations: *list"))
    schema, found = load(shared + other)
    assert found == []
    assert schema
    assert [row.name for op in schema.ops for row in op.rows] == ["float", "single"]
    assert [a.name for a in schema.ops[1].attributes][1:3] == ["pads", "dilations"]


def notes_of(fault: Diagnostic) -> list[str]:
    return [note.message for note in fault.notes]


CASE = "      - {name: plain, X: [2, 4, 5, 6], W: [6, 4, 3, 2]}\n"
MANY = edited(SHARED, (CASE, "".join(CASE.replace("plain", f"case_{i}") for i in range(9))))


def test_a_renamed_tensor_is_told_once_for_all_cases_that_operators_share() -> None:
    renamed = [("W: {type", "V: {type")]
    others = edited(OTHER, *renamed), edited(OTHER, ("W: {type", "WX: {type")), OTHER
    for text in [edited(MANY, *renamed) + other for other in others]:
        found = [fault for fault in load(text)[1] if fault.id == "G008"]
        assert [fault.message.partition(";")[0] for fault in found] == [
            "unknown key 'W' in case 'case_0' of operator 'Convolve'"
        ]
        assert notes_of(found[0])[0] == "the same in 8 other cases"
        assert notes_of(found[0])[1:] == ["used by operator 'Other'"] * (not text.endswith(OTHER))
    alone = [fault for fault in load(MANY + edited(OTHER, *renamed))[1] if fault.id == "G008"]
    assert notes_of(alone[0]) == ["the same in 8 other cases", "used by operator 'Other'"]
    assert [fault.span.line for fault in alone if fault.span] == [MANY[: MANY.index("case_0")].count("\n") + 1]


def test_different_keys_and_lists_of_cases_are_different_faults() -> None:
    text = edited(MANY, ("case_3, X", "case_3, V"), ("case_5, X", "case_5, Z"))
    assert ids(edited(text, ("&cases", ""))) == ["G008", "G008"]  # of the cases' shapes nothing is said
    apart = edited(OTHER, ("    cases: *cases\n", "    cases:\n" + CASE.replace("X", "V")))
    assert [fault.message.partition(";")[0] for fault in load(text + apart)[1] if fault.id == "G008"] == [
        "unknown key 'V' in case 'case_3' of operator 'Convolve'",
        "unknown key 'Z' in case 'case_5' of operator 'Convolve'",
        "unknown key 'V' in case 'plain' of operator 'Other'",
    ]


def test_no_name_is_suggested_in_its_own_place() -> None:
    renamed = edited(SCALE, ("X: {type: T, shape", "Q: {type: T, shape"), ("Y: {type", "dX: {type"))
    (fault,) = [fault for fault in load(renamed)[1] if fault.id == "G301"]
    assert fault.message == "'dX' is like 'X', which does not exist"
    maybe = "third: {type: T, like: Q, optional: true}"
    optional = edited(renamed, ("dX: {type: T, like: X}", f"Y: {{type: T, like: thirds}}\n      {maybe}"))
    (fault,) = [fault for fault in load(optional)[1] if fault.id == "G301"]
    assert fault.message == "'Y' is like 'thirds', which does not exist"  # one that may be absent could not be meant
    length = edited(CONVOLVE, ('"*K"', '"*Dim"'), ("K: {length: D}", "Dim: {length: Dims}"), ("(D, K)", "(D, Dim)"))
    (fault,) = [fault for fault in load(length)[1] if fault.id == "G309"]
    assert fault.message == "'Dim' has the length of 'Dims', which is no list symbol"


def test_an_attribute_that_operators_share_is_told_once_with_their_names() -> None:
    shared = edited(CONVOLVE, ("attributes:\n", "attributes: &shared\n"), ("      pads:", "      pad:"))
    start = OTHER.index("    attributes:\n")
    other = OTHER[:start] + "    attributes: *shared\n" + OTHER[OTHER.index("    rows:") :]
    other = edited(other, ("    cases: *cases\n", f"    cases:\n{CASE}"), ("conv::Conv\n", "conv::ConvTranspose\n"))

    def notes(count: int) -> list[str]:
        text = shared + "".join(other.replace("Other", f"Other{i}") for i in range(count))
        found = [fault for fault in load(text)[1] if fault.id == "G408"]
        assert [fault.message for fault in found] == ["kernel conv::Conv has no attribute 'pad'; did you mean 'pads'?"]
        return notes_of(found[0])[1:]

    assert notes(1) == ["used by operator 'Other0'"]
    assert notes(2) == ["used by operators 'Other0' and 'Other1'"]
    assert notes(4) == ["used by operators 'Other0', 'Other1', 'Other2' and 'Other3'"]
    assert notes(6) == ["used by operators 'Other0', 'Other1', 'Other2' and 3 others"]


def test_cases_that_differ_in_attributes_alone_have_their_own_shapes() -> None:
    text = edited(
        CONVOLVE,
        ("3, 2]}", "3, 2]}\n      - {name: padded, X: [2, 4, 5, 6], W: [6, 4, 3, 2], pads: [1, 1, 1, 1]}"),
    )
    schema, found = load(text)
    assert found == []
    assert schema
    assert [dict(case.all_shapes)["Y"] for case in schema.ops[0].cases] == [(2, 6, 3, 5), (2, 6, 5, 7)]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
def test_many_operators_come_out_the_same_by_one_process_and_by_several(repository: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(repository / "bench"))
    import codegen_benchmark  # noqa: PLC0415 - what makes large schemas

    schema = tmp_path / "ops.yaml"
    schema.write_text(codegen_benchmark.large_schema(200), encoding="utf-8")

    def generate(name: str, seed: str, processors: set[int]) -> dict[str, bytes]:
        out = tmp_path / name
        subprocess.run(
            [sys.executable, "-m", "gradsmith_codegen", "generate", "--schema", str(schema), "--out", str(out)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(repository / "codegen")},
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}

    available = os.sched_getaffinity(0)
    alone = generate("alone", "1", {min(available)})
    assert len(alone) > 400
    assert generate("several", "2", available) == alone
