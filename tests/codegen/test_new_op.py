"""Entries for new operators: whatever is written passes the check, and leaves the rest of the file alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from gradsmith_codegen import spelling
from gradsmith_codegen.cli import main
from gradsmith_codegen.diagnostics import format_text
from gradsmith_codegen.loader import read_source, source_of
from gradsmith_codegen.model import Op, Schema
from gradsmith_codegen.new_op import SchemaText, Wish
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.text import NO_TEXT
from schemas import KERNELS, SCALE, edited


@dataclass(frozen=True)
class Told:
    status: int
    out: str
    err: str


NewOp = Callable[..., Told]
Formulas = dict[str, list[tuple[str, str]]]


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(SCALE, encoding="utf-8")
    return path


@pytest.fixture
def new_op(schema: Path, capsys: pytest.CaptureFixture[str]) -> NewOp:
    """Runs the verb on a small schema, or on what it was made of before."""

    def run(*arguments: str) -> Told:
        try:
            status = main(["new-op", *arguments, "--schema", str(schema), "--kernels", str(KERNELS)])
        except SystemExit as end:
            status = int(str(end.code))
        return Told(status, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def all_ops(ops_yaml: Path) -> SchemaText:
    source, _ = read_source(ops_yaml)
    schema, _ = load_source(source)
    assert schema
    return SchemaText(source, schema)


@pytest.fixture(scope="module")
def formulas_of(all_ops: SchemaText) -> Formulas:
    """The formulas of each operator, as they are written."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    ops = yaml.load(all_ops.source.text, Loader=loader)["ops"]
    return {op["name"]: [(name, str(text)) for name, text in op.get("formulas", {}).items()] for op in ops}


def _schema(text: str) -> Schema:
    source = source_of("ops.yaml", text)
    schema, diagnostics = load_source(source)
    assert schema, format_text(diagnostics, source)
    return schema


def _but_for_words(op: Op) -> Op:
    return replace(op, name="", doc=NO_TEXT, line=0, history=())  # a new operator has none


# -- Like another ---


def test_the_entry_of_each_operator_can_be_copied(all_ops: SchemaText) -> None:
    """Aliases stand for what has an anchor there, and all else is the same."""
    entries = [all_ops.entry(Wish(f"{op.name}2", like=op.name)) for op in all_ops.schema.ops]
    copied = _schema("\n".join([all_ops.source.text, *entries]))
    found = {op.name: op for op in copied.ops}
    for op in all_ops.schema.ops:
        assert _but_for_words(found[f"{op.name}2"]) == _but_for_words(op), op.name


def test_a_copy(new_op: NewOp) -> None:
    told = new_op("Stretch", "--like", "Scale")
    expected = SCALE[SCALE.index("  - name") :].replace("Scale\n    doc", "Stretch\n    doc")
    assert told == Told(0, expected, "")


@pytest.mark.parametrize(
    ("with_history", "without"),
    [
        ("{name: F, history: [{version: 1, change: f}], doc", "{name: NF, doc"),
        ("{history: [{version: 1, change: f}], name: F, doc", "{name: NF, doc"),
        ('{name: F, "history": [{version: 1, change: f}],  # F\'s\n     doc', "{name: NF, doc"),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_copy_in_braces_has_no_history(
    new_op: NewOp, schema: Path, with_history: str, without: str, is_last: bool
) -> None:
    rest = (
        ": f, kernel: scale::Scale, backends: [cpu], inputs: {X: {type: T, shape: [N]}},\n"
        "     outputs: {Y: {type: T, like: X}}, attributes: {factor: {type: float, default: 1.0}},\n"
        "     rows: {float: {T: float}}, cases: [{name: a, X: [2]}]"
    )
    if is_last:
        with_history = "{name: F, doc"
        rest += ",\n     history: [{version: 1, change: f}]"
    schema.write_text(f"{SCALE}  - {with_history}{rest}}}\n", encoding="utf-8")
    without += rest.partition(",\n     history")[0]
    assert new_op("NF", "--like", "F") == Told(0, f"  - {without}}}\n", "")


def test_a_copy_has_no_history_where_it_came_first(new_op: NewOp, schema: Path) -> None:
    expected = new_op("Stretch", "--like", "Scale").out
    history = "- history:\n      - {version: 1, change: new}\n    name: Scale\n"
    schema.write_text(edited(SCALE, ("- name: Scale\n", history)), encoding="utf-8")
    assert new_op("Stretch", "--like", "Scale") == Told(0, expected, "")


@pytest.mark.parametrize("before", ["    kernel:", "    cases:"])
@pytest.mark.parametrize("history", ["[{version: 1, change: new}]", "\n      - {version: 1, change: new} # 1"])
def test_a_copy_has_no_history(new_op: NewOp, schema: Path, before: str, history: str) -> None:
    expected = new_op("Stretch", "--like", "Scale").out
    schema.write_text(edited(SCALE, (before, f"    history: {history}\n{before}")), encoding="utf-8")
    assert new_op("Stretch", "--like", "Scale") == Told(0, expected, "")
    schema.write_text(f"{SCALE}    history: {history}\n", encoding="utf-8")
    assert new_op("Stretch", "--like", "Scale") == Told(0, expected, "")


def test_a_copy_has_its_name_in_its_documentation(new_op: NewOp, schema: Path) -> None:
    schema.write_text(edited(SCALE, ("doc: Y is X times factor.", 'doc: "Scale: X, rescaled."')), encoding="utf-8")
    assert '    doc: "Stretch: X, rescaled."\n' in new_op("Stretch", "--like", "Scale").out
    assert '    doc: "Half: of X"\n' in new_op("Stretch", "--like", "Scale", "--doc", "Half: of X").out


def test_what_has_an_anchor_is_repeated_by_an_alias(new_op: NewOp, schema: Path) -> None:
    text = edited(
        SCALE,
        ("    attributes:\n", "    attributes: &attributes # of two\n"),
        ("{type: float, default: 1.0}", "&factor {type: float, default: 1.0} # which is more"),
        ("{T: float}", "&float {T: float} # one row"),
    )
    text += "  - {name: Other, doc: Other., kernel: scale::Scale, backends: [cpu], inputs: {X: {type: T, shape: [N]}}, "
    text += "outputs: {Y: {type: T, like: X}}, attributes: *attributes, rows: {float: *float}, "
    text += "cases: [{name: plain, X: [2]}]}\n"
    text += text[text.rindex("  - {") :].replace("Other", "Third").replace("*attributes", "{factor: *factor}")
    schema.write_text(text, encoding="utf-8")
    out = new_op("Stretch", "--like", "Scale").out
    assert "    attributes: *attributes\n" in out
    assert "      float: *float # one row\n" in out
    assert "factor:" not in out.replace("by factor", "")
    other = text[text.index("  - {name: Other") : text.index("  - {name: Third")]
    assert new_op("Fourth", "--like", "Other").out == other.replace("Other", "Fourth")


# -- From formulas ---


def test_formulas_alone(new_op: NewOp) -> None:
    told = new_op("Silu", "--formula", "Y: X * sigmoid(X)")
    assert told == Told(
        0,
        """\
  - name: Silu
    doc: Y = X * sigmoid(X).
    formulas:
      Y: X * sigmoid(X)
    backends: [cpu, cuda]
    inputs:
      X: {type: T, shape: ["*D"]}
    outputs:
      Y: {type: T, like: X}
    dims:
      D: {length: [0, 8]}
    rows:
      float: {T: float}
      double: {T: double}
      half: {T: MLFloat16}
      bf16: {T: BFloat16}
    cases:
      - {name: vectors, X: [4, 16]}
      - {name: odd, X: [3, 5, 7]}
""",
        "",
    )


def test_an_attribute_and_a_name_between(new_op: NewOp) -> None:
    formulas = ("--formula", "z: alpha * X", "--formula", "Y: where(keep, z, 0)")
    out = new_op("Foo", *formulas, "--attribute", "alpha=0.5", "--attribute", "keep=true", "--doc", "A doc, of it").out
    assert '    doc: "A doc, of it"\n' in out
    assert "    formulas:\n      z: alpha * X\n      Y: where(keep, z, 0)\n" in out
    assert "      alpha: {type: float, default: 0.5}\n      keep: {type: bool, default: true}\n" in out
    assert '    inputs:\n      X: {type: T, shape: ["*D"]}\n    outputs:\n      Y: {type: T, like: X}\n' in out


def test_a_number_with_an_exponent_is_one_to_yaml(new_op: NewOp) -> None:
    out = new_op("Foo", "--formula", "Y: X * eps", "--attribute", "eps=1e-5").out
    assert "      eps: {type: float, default: 1.0e-5}\n" in out


def test_a_condition_is_an_input_of_truth_values(new_op: NewOp) -> None:
    out = new_op("Masked", "--formula", "Y: where(mask, X, 0)").out
    assert '      mask: {type: bool, shape: ["*D"]}\n      X: {type: T' in out
    assert "      Y: {type: T, like: X}\n" in out


def test_a_reduction_is_along_an_axis(new_op: NewOp) -> None:
    out = new_op("Spread", "--formula", "Y: X - mean(X, B)", "--formula", "top: max(X, B)").out
    assert '      X: {type: T, shape: ["*D", B, "*F"]}\n' in out
    assert '      Y: {type: T, like: X}\n      top: {type: T, shape: ["*D", "*F"]}\n' in out
    assert "      D: {length: axis}\n      F: {length: [0, 7]}\n" in out
    assert "      axis: {type: int, default: -1, axis_of: X}\n" in out
    assert "      - {name: first_axis, X: [7, 3], axis: 0}\n" in out


def test_rows_that_are_there_are_repeated_by_an_alias(all_ops: SchemaText) -> None:
    assert "    rows: *one_type\n" in all_ops.entry(Wish("Silu", formulas=[("Y", "X * sigmoid(X)")]))


# Clip's defaults are infinite, cross entropy has labels and a table; the others reduce over more than a dim, or over a
# part of one.
MORE_THAN_FORMULAS = {
    "BitmaskDropout",
    "Clip",
    "GroupNormalization",
    "InPlaceAccumulatorV2",
    "InstanceNormalization",
    "MeanVarianceNormalization",
    "SoftmaxCrossEntropyLoss",
    "SoftmaxCrossEntropyLossInternalGrad",
    "SoftmaxCrossEntropyWithLabels",
}


def test_formulas_of_operators_that_there_are_give_entries_that_pass(
    all_ops: SchemaText, formulas_of: Formulas
) -> None:
    """Of the forward operators from the formulas alone, and with their entries of the gradients."""
    entries = []
    for op in all_ops.schema.ops:
        if op.formulas and not op.gradient_of and op.name not in MORE_THAN_FORMULAS:
            formulas = formulas_of[op.name]
            attributes = [(one.name, spelling.value(one.default)) for one in op.scalars if one.default is not None]
            entries.append(all_ops.entry(Wish(f"{op.name}2", formulas=formulas, attributes=attributes)))
        elif not op.gradient_of:
            entries.append(all_ops.entry(Wish(f"{op.name}2", like=op.name)))
    assert len(entries) > 60
    _schema("\n".join([all_ops.source.text, *entries]))


def test_a_gradient_takes_from_its_forward_operator_what_formulas_do_not_say(
    all_ops: SchemaText, formulas_of: Formulas
) -> None:
    gradients = [op for op in all_ops.schema.ops if op.formulas and op.gradient_of == op.name.removesuffix("Grad")]
    # LayerNormalization's bias is called B, as ONNX has it, and its gradient dBias, as in batch normalization.
    gradients = [op for op in gradients if op.name != "LayerNormalizationGrad"]
    entries = [all_ops.entry(Wish(f"Two{op.gradient_of}", like=op.gradient_of)) for op in gradients]
    source = source_of("ops.yaml", "\n".join([all_ops.source.text, *entries]))
    schema, _ = load_source(source)
    assert schema
    forward = SchemaText(source, schema)
    for op in gradients:
        formulas = formulas_of[op.name]
        entries.append(forward.entry(Wish(f"Two{op.name}", formulas=formulas)))
    made = {op.name: op for op in _schema("\n".join([all_ops.source.text, *entries])).ops}
    for op in gradients:
        new = made[f"Two{op.name}"]
        assert new.gradient_of == f"Two{op.gradient_of}"
        # Which inputs share a gradient formulas do not say either: it is that of the first.
        assert [(one.name, one.gradient_of) for one in new.outputs] == [
            (one.name, one.gradient_of[:1]) for one in op.outputs
        ]
        assert {one.name for one in new.inputs} == {one.name for one in op.inputs}, op.name
        assert [dict(row.types) for row in new.rows] == [dict(row.types) for row in op.rows]


LABEL, TABLE = 'label: {type: int64, shape: ["*B", "*F"]}', "w: {type: T, shape: [C]}"
X_OF_ROWS = 'X: {type: T, shape: ["*B", C, "*F"]}'


@pytest.mark.parametrize(
    ("formula", "lines"),
    [
        ("Y: X * w[label]", [X_OF_ROWS, TABLE, LABEL, "Y: {type: T, like: X}"]),
        ("Y: where(index(C) == label, X, 0)", [LABEL, X_OF_ROWS, "Y: {type: T, like: X}"]),
        ("Y: -w[label] * sum(where(label == index(C), X, 0), C)",
         [TABLE, LABEL, X_OF_ROWS, 'Y: {type: T, shape: ["*B", "*F"]}']),
        ("Y: where(index(C) < label and label < count(C), X, 0)", [LABEL, X_OF_ROWS]),
        ("Y: where(given(w), w[label], 1) * X", [TABLE.replace("}", ", optional: true}"), LABEL, X_OF_ROWS]),
        ("Y: where(mask, X, 0) - mean(X, C)", ['mask: {type: bool, shape: ["*B", "*F"]}', X_OF_ROWS]),
        ("Y: where(mask, 1, 0)", ['mask: {type: bool, shape: ["*D"]}', 'Y: {type: T, shape: ["*D"]}']),
        ("Y: where(bit(m, D), X, 0)", ["m: {type: uint32, shape: [ceil(D / 32)]}", 'X: {type: T, shape: ["*D"]}']),
        ("Y: where(bit(m, N), X, 0)", ["m: {type: uint32, shape: [ceil(N / 32)]}", 'X: {type: T, shape: ["*N"]}']),
        ("Y: X * axis - mean(X, C)", [X_OF_ROWS, "along: {type: int, default: -1, axis_of: X}"]),
        ("Y: 2 * T", ['T: {type: T1, shape: ["*D"]}', "float: {T1: float}"]),
        ("Y: no * 2", ['"no": {type: T, shape: ["*D"]}', 'Y: {type: T, like: "no"}']),
        ("Y: pi * X", ['X: {type: T, shape: ["*D"]}']),
    ],
)  # fmt: skip
def test_what_inputs_are_is_told_by_how_they_are_read(new_op: NewOp, formula: str, lines: list[str]) -> None:
    told = new_op("Foo", "--formula", formula)
    assert (told.status, told.err) == (0, "")
    found = [line.strip() for line in told.out.split("\n")]
    assert [line for line in lines if line not in found] == []


OPERANDS = ["X", "alpha", "w[label]", "index(C)", "count(C)", "pi", "2", "mean(X, C)", "max(X * X, C)", "min(X, Z)"]
CONDITIONS = ["X > 0", "mask", "index(C) == label", "not mask", "label < count(C)", "given(w)", "keep"]


def test_whatever_is_written_passes_the_check(schema: Path) -> None:
    """Of formulas that are made of everything but what no pattern has together, none is refused."""
    text = schema.read_text(encoding="utf-8").replace("kernel: scale::Scale", "formulas: {Y: X * factor}")
    source = source_of("ops.yaml", text)
    found, _ = load_source(source)
    assert found
    of = SchemaText(source, found)
    given = (("alpha", "0.5"), ("keep", "true"))
    entries: list[str] = []
    for one in OPERANDS:
        for other in OPERANDS:
            for condition in CONDITIONS:
                formula = f"where({condition}, {one}, {other}) + X"
                attributes = [pair for pair in given if pair[0] in formula]
                table = "w[label] * " if "given(w)" in formula and "[" not in formula else ""
                formulas = [("Y", f"{table}{formula}")]
                entries.append(of.entry(Wish(f"Foo{len(entries)}", formulas=formulas, attributes=attributes)))
    assert len(entries) == len(OPERANDS) ** 2 * len(CONDITIONS)
    _schema("\n".join([text, *entries]))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("inf", "a: {type: float, default: .inf, max: .inf}"),
        ("-inf", "a: {type: float, default: -.inf, min: -.inf}"),
        (".inf", "a: {type: float, default: .inf, max: .inf}"),
        ("pi", "a: {type: float, default: 3.141592653589793}"),
    ],
)
def test_a_default_may_be_infinite_or_pi(new_op: NewOp, given: str, line: str) -> None:
    told = new_op("Foo", "--formula", "Y: min(X, a)", "--attribute", f"a={given}")
    assert told.status == 0
    assert f"      {line}\n" in told.out


@pytest.mark.parametrize(
    ("given", "default"),
    [
        (".5", "0.5"),
        ("-.5", "-0.5"),
        (".5e-3", "0.5e-3"),
        ("1.5e5", "1.5e+5"),
        ("1e5", "1.0e+5"),
        ("5.", "5."),
        ("0e-400", "0.0e-400"),
    ],
)
def test_a_default_is_spelled_as_yaml_reads_it(new_op: NewOp, given: str, default: str) -> None:
    told = new_op("Foo", "--formula", "Y: X * a", "--attribute", f"a={given}")
    assert (told.status, told.err) == (0, "")
    assert f"      a: {{type: float, default: {default}}}\n" in told.out


@pytest.mark.parametrize("given", ["1e-400", ".1e-330", "-1.5e-324000"])
def test_a_default_does_not_become_0(new_op: NewOp, schema: Path, given: str) -> None:
    told = new_op("Foo", "--formula", "Y: X * a", "--attribute", f"a={given}", "--write")
    assert (told.status, told.out) == (1, "")
    assert ", which is too near to 0 for a double and would be 0\n" in told.err
    assert schema.read_text(encoding="utf-8") == SCALE


# -- Writing ---


def test_writing_leaves_the_rest_alone(new_op: NewOp, schema: Path) -> None:
    before = SCALE + "      # A comment of the last case.\n\n# The end.\n"
    schema.write_text(before, encoding="utf-8")
    printed = new_op("Silu", "--formula", "Y: X * sigmoid(X)").out
    told = new_op("Silu", "--formula", "Y: X * sigmoid(X)", "--write")
    line = SCALE.count("\n") + 3
    assert told == Told(0, f"{schema}:{line}: 'Silu' was added\n", "")
    after = SCALE + "      # A comment of the last case.\n\n" + printed + "\n# The end.\n"
    assert schema.read_text(encoding="utf-8") == after
    assert after.split("\n")[line - 1] == "  - name: Silu"
    assert new_op("SiluGrad", "--formula", "dX: dY * X", "--write").status == 0
    assert main(["check", "--schema", str(schema), "--kernels", str(KERNELS)]) == 0


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_stay(
    new_op: NewOp, schema: Path, end: str, line_end: str, mark: bytes
) -> None:
    before = mark + (SCALE.rstrip("\n") + end).replace("\n", line_end).encode()
    schema.write_bytes(before)
    entry = new_op("Stretch", "--like", "Scale").out
    assert "\r" not in entry
    assert new_op("Stretch", "--like", "Scale", "--write").status == 0
    after = schema.read_bytes()
    body = before.rstrip(b"\r\n")
    assert after.startswith(body)
    assert after[len(body) :] == (f"\n\n{entry.rstrip()}{end}").replace("\n", line_end).encode()


def test_ops_need_not_come_last(new_op: NewOp, schema: Path) -> None:
    head, ops = SCALE[: SCALE.index("ops:")], SCALE[SCALE.index("ops:") :].replace("\n  ", "\n")
    head = "# What all operators share.\n" + head
    schema.write_text(ops + head, encoding="utf-8")
    assert new_op("Stretch", "--like", "Scale", "--write").status == 0
    text = schema.read_text(encoding="utf-8")
    assert text.startswith(ops + "\n- name: Stretch\n  doc: ")
    assert text.endswith("\n" + head)


# -- What is refused ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Scale", "--like", "Scale"], "{file}:5: there is an operator 'Scale' already"),
        (["Foo", "--like", "Scael"], "{file}: there is no operator 'Scael'; did you mean 'Scale'?"),
        (["Foo", "--formula", "Y: X", "--attribute", "b=1"], "no formula reads the attribute 'b'"),
        (["Foo", "--formula", "Y: X * b", "--attribute", "b=1", "--attribute", "b=2"],
         "the attribute 'b' is given twice"),
        (["Foo", "--formula", "Y: X * b", "--attribute", "b=."], "attribute 'b' has the default '.', which is no "),
        (["Foo", "--formula", "Y: X * b", "--attribute", "b=x"], "attribute 'b' has the default 'x', which is no "),
        (["Foo", "--formula", "Y: 1 + pi"], "the formulas read no input"),
        (["Foo", "--formula", "Y: Z", "--formula", "Z: Y"], "no formula is an output's: each is read by another"),
        (["Foo", "--formula", "Y: sum(X)"], "'sum(x)' without a dim sums over what an input is broadcast to"),
        (["Foo", "--formula", "Y: sum(X, A) + sum(X, B)"], "the formulas reduce over A, B; "),
        (["Foo", "--formula", "Y: X *"], "a formula does not read\n--formula:1:6: error[G801]: "),
        (["Foo", "--formula", "Y: X * inf"], "the formulas would have an input 'inf': an infinite number is the def"),
        (["Foo", "--formula", "Y: where(true, X, NaN)"], "the formulas would have an input 'true': what always "),
        (["Foo", "--formula", "Y: exp * X"], "the formulas would have an input 'exp', which is a function: write "),
        (["Foo", "--formula", "Y: X + mean"], "the formulas would have an input 'mean', which is a function: "),
        (["Foo", "--formula", "Y: x[label]"], "the formulas read 'x' and 'label' alone, and no number for each "),
        (["Foo", "--formula", "Y: where(X, X, 0)"], "'X' is read as a condition and as a number: where it is a "),
        (["Foo", "--formula", "Y: where(given(w), w, X)"], "'given(w)' is of an input that may be left out, which "),
        (["Foo", "--formula", "Y: X * a", "--attribute", "a=nan"], "attribute 'a' has the default 'nan', which is no"),
        (["ScaleGrad", "--formula", "dX: dY * q"], "'q' is no tensor or attribute of Scale, nor called like "),
    ],
)  # fmt: skip
def test_what_is_refused(new_op: NewOp, schema: Path, arguments: list[str], message: str) -> None:
    told = new_op(*arguments, "--write")
    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("gradsmith-codegen: " + message.format(file=schema))
    assert schema.read_text(encoding="utf-8") == SCALE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --like --formula is required"),
        (["--like", "Scale"], "the following arguments are required: NAME"),
        (["Foo"], "one of the arguments --like --formula is required"),
        (["Foo", "--like", "Scale", "--formula", "Y: X"], "not allowed with argument"),
        (["Foo", "--like", "Scale", "--attribute", "b=1"], "--attribute is for operators of formulas"),
        (["Foo", "--formula", "X * 2"], "'X * 2' is no formula; expected a name and an expression, such as 'Y: X "),
        (["Foo", "--formula", "Y: X", "--attribute", "b"], "'b' is no attribute; expected a name and a default"),
    ],
)
def test_wrong_usage(new_op: NewOp, arguments: list[str], message: str) -> None:
    told = new_op(*arguments)
    assert told.status == 2
    assert message in told.err


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["foo", "--like", "Scale"], "error[G101]: 'foo' is no operator name"),
        (
            ["Foo", "--formula", "Y: X", "--doc", "a\x01b"],
            "error[G024]: documentation must not hold the control character \\x01",
        ),
        (["Foo", "--formula", "lambda: X", "--formula", "int: X"], "error[G102]"),
    ],
)
def test_an_entry_with_faults_is_not_added(new_op: NewOp, schema: Path, arguments: list[str], fault: str) -> None:
    told = new_op(*arguments, "--write")
    assert (told.status, told.out) == (1, "")
    assert fault in told.err
    assert f"{schema}: '{arguments[0]}' was not added: from line 22 on its entry would have these faults\n" in told.err
    assert schema.read_text(encoding="utf-8") == SCALE


def test_a_schema_with_faults_is_not_added_to(new_op: NewOp, schema: Path) -> None:
    schema.write_text(edited(SCALE, ("{T: float}", "{T: flaot}")), encoding="utf-8")
    told = new_op("Foo", "--like", "Scale")
    assert (told.status, told.out) == (1, "")
    assert f"{schema}:18:18: error[G014]" in told.err


def test_a_list_in_brackets_is_not_added_to(new_op: NewOp, schema: Path) -> None:
    schema.write_text(json.dumps(yaml.safe_load(SCALE)), encoding="utf-8")
    told = new_op("Foo", "--like", "Scale")
    assert (told.status, told.out) == (1, "")
    assert told.err == f"gradsmith-codegen: {schema}:1: 'ops' must be a list with a '- ' before each operator\n"


# -- The first operator ---

HEAD = "schema_version: 1\ndomain: com.example\nsince_version: 1\n"
CUBE = ("Cube", "--formula", "Y: X * X * X", "--write")
CUBE_GRAD = ("CubeGrad", "--formula", "dX: 3 * X * X * dY", "--write")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"{HEAD}ops:\n"),
        ("", f"{HEAD}ops:\n"),
        ("# mine", f"# mine\n{HEAD}ops:\n"),
        (f"{HEAD}ops: []", f"{HEAD}ops:\n"),
        (f"{HEAD}ops:\n", f"{HEAD}ops:\n"),
        (HEAD, f"{HEAD}ops:\n"),
        ("ops: []  # none yet\n", f"{HEAD}ops:  # none yet\n"),
        ("# mine\nops: ~\ndomain: com.me\n", "# mine\nschema_version: 1\nsince_version: 1\nops:\n"),
    ],
)
def test_the_first_operator_of_a_schema(new_op: NewOp, schema: Path, before: str | None, after: str) -> None:
    schema.unlink()
    if before is not None:
        schema.write_text(before, encoding="utf-8")
    line = after.count("\n") + 1
    assert new_op(*CUBE) == Told(0, f"{schema}:{line}: 'Cube' was added\n", "")
    text = schema.read_text(encoding="utf-8")
    assert text.startswith(f"{after}  - name: Cube\n    doc: Y = X * X * X.\n")
    assert text.endswith("domain: com.me\n") == ("com.me" in (before or ""))
    told = new_op(*CUBE_GRAD)
    assert (told.status, told.err) == (0, "")
    assert "    gradient_of: Cube\n" in schema.read_text(encoding="utf-8")
    assert main(["check", str(schema)]) == 0


def test_ends_of_lines_stay(new_op: NewOp, schema: Path) -> None:
    schema.write_bytes(b"ops: []\r\n")
    assert new_op(*CUBE).status == 0
    assert schema.read_bytes().count(b"\n") == schema.read_bytes().count(b"\r\n") > 10


def test_the_first_operator_beside_included_ones(new_op: NewOp, schema: Path, tmp_path: Path) -> None:
    schema.unlink()
    assert new_op(*CUBE).status == 0
    schema.rename(tmp_path / "other.yaml")
    schema.write_text(f"{HEAD}include: [other.yaml]\n", encoding="utf-8")
    told = new_op(*CUBE_GRAD)
    assert (told.status, told.err) == (0, "")
    assert "    gradient_of: Cube\n" in schema.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["- a\n", "ops: [\n", "{ops: []}\n", "ops: {}\n"])
def test_what_is_no_beginning_of_a_schema_stays(new_op: NewOp, schema: Path, text: str) -> None:
    schema.write_text(text, encoding="utf-8")
    told = new_op(*CUBE)
    assert (told.status, told.out) == (1, "")
    assert schema.read_text(encoding="utf-8") == text


def test_a_file_that_is_not_there_is_made_by_writing(new_op: NewOp, schema: Path) -> None:
    schema.unlink()
    told = new_op("Halve", "--formula", "Y: 0.5 * X")
    assert (told.status, told.out) == (1, "")
    assert told.err.endswith(f"\ngradsmith-codegen: {schema} is made by --write, which adds the entry to it\n")
    assert not schema.exists()


def test_there_is_nothing_to_copy_in_a_new_schema(new_op: NewOp, schema: Path) -> None:
    schema.write_text("", encoding="utf-8")
    told = new_op("Cube", "--like", "Scale", "--write")
    assert told == Told(1, "", f"gradsmith-codegen: {schema}: there is no operator 'Scale', nor any to copy\n")


def test_a_gradient_without_its_forward_is_warned_of(new_op: NewOp) -> None:
    told = new_op(*CUBE_GRAD)
    assert (told.status, "warning[G514]" in told.err) == (0, True)


# -- Spelling ---


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("plain words", "plain words"),
        ("a, b", '"a, b"'),
        ("a: b", '"a: b"'),
        ("no", '"no"'),
        ("1_000", '"1_000"'),
        ("- x", '"- x"'),
        ("-x", "-x"),
        ('say "x"', 'say "x"'),
        ('"x"', '"\\"x\\""'),
        ("back\\slash, too", '"back\\\\slash, too"'),
        ("tab\there", '"tab\\U00000009here"'),
        ("ends ", '"ends "'),
        ("a #b", '"a #b"'),
    ],
)
def test_texts(words: str, spelled: str) -> None:
    assert spelling.text(words) == spelled
    assert yaml.safe_load(f"[{spelled}]") == [words]


@pytest.mark.parametrize(
    ("formula", "spelled"),
    [
        ("max(A, B)", "max(A, B)"),
        ("-dY", "-dY"),
        ("2", "2"),
        ("X > 0", "X > 0"),
        ("X # c", '"X # c"'),
    ],
)
def test_expressions(formula: str, spelled: str) -> None:
    assert spelling.expression(formula) == spelled


@pytest.mark.parametrize(
    ("number", "spelled"),
    [(0.5, "0.5"), (1e-5, "1.0e-05"), (1e20, "1.0e+20"), (2.0, "2.0"), (float("-inf"), "-.inf"), (-1.5e-7, "-1.5e-07")],
)
def test_reals(number: float, spelled: str) -> None:
    assert spelling.real(number) == spelled
