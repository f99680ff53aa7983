"""The verb `explain`, and what it works out: schedules, bytes, values at seams, formulas in LaTeX."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import formula_language
import pytest
from gradsmith_codegen import formula_latex, special_values
from gradsmith_codegen.cli import main
from gradsmith_codegen.explain_verb import words_of
from gradsmith_codegen.explanation import Explanation, bytes_of, explanation
from gradsmith_codegen.formula_parser import parse
from gradsmith_codegen.model import Op, Schema
from gradsmith_codegen.plan import Plan, make_plan
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.text import plain
from schemas import KERNELS, SCALE, edited, op_of

Explain = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def all_ops(ops_yaml: Path) -> Schema:
    schema, _ = load_schema(ops_yaml)
    assert schema
    return schema


@pytest.fixture(scope="module")
def plan(all_ops: Schema) -> Plan:
    return make_plan(all_ops, shards=1)


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    """Runs the verb on a small schema."""
    path = tmp_path / "my.yaml"
    path.write_text(SCALE, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["explain", *arguments, "--schema", str(path), "--kernels", str(KERNELS)])
        return (status, *capsys.readouterr())

    return run


def of(plan: Plan, name: str) -> Explanation:
    return explanation(next(op for op in plan.ops if op.name == name), plan)


def test_words(explain: Explain) -> None:
    status, out, err = explain("Scale")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "Scale: Y is X times factor.",
        "  my.yaml:5; com.example, since version 1",
        "  #include <LIBRARY/ops/scale.h>, LIBRARY being gradsmith or a library of one's own, as '--library' says",
        "",
        "Inputs",
        "  X: T [N, *D]",
        "",
        "Outputs",
        "  Y: T [N, *D]; required",
        "",
        "Dims",
        "  N; one",
        "  D; 0 to 3",
        "",
        "Attributes",
        "  factor: float; default 1.0; any",
        "",
        "Rows, on cpu",
        "  float: T = float; a call moves at least 4 * 2 * N * D bytes (my.yaml:18)",
        "",
        "Where it is computed",
        "  cpu: the handwritten kernel gradsmith::scale::Scale",
        "",
        "Two calls give the same bits",
        "  cpu: where the context is deterministic",
    ]


@pytest.mark.parametrize("library", ["gradsmith", "mylib"])
def test_the_include_is_the_librarys(explain: Explain, library: str, tmp_path: Path) -> None:
    of_formulas = edited(SCALE, ("kernel: scale::Scale", "formulas: {Y: X * factor}"))
    (tmp_path / "my.yaml").write_text(of_formulas, encoding="utf-8")
    assert explain("Scale", "--library", library)[1].splitlines()[2] == f"  #include <{library}/ops/scale.h>"


def test_the_include_of_an_operator_that_comes_along(ops_yaml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GeluGrad", str(ops_yaml)]) == 0
    assert "\n  #include <gradsmith/ops/gelu_grad.h>\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Gelu", "Special values, in double"),
        ("GeluGrad", "Special values, in double, dY being 1"),
        ("EluGrad", "Special values, in double, attributes at their defaults, dY being 1"),
    ],
)
def test_special_values_say_what_else_is_given(plan: Plan, name: str, title: str) -> None:
    assert title in list(words_of(of(plan, name)))


def test_words_of_gradients(plan: Plan) -> None:
    assert list(words_of(of(plan, "Gelu")))[3] == "  its gradient is GeluGrad"
    assert list(words_of(of(plan, "GeluGrad")))[3] == "  the gradient of Gelu"


def test_json(explain: Explain) -> None:
    status, out, _ = explain("Scale", "float", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["inputs"] == [
        {"name": "X", "type": "T", "shape": "[N, *D]", "remarks": "", "doc": "", "gradient_of": []}
    ]
    assert told["attributes"][0]["default"] == 1.0
    assert [row["name"] for row in told["rows"]] == ["float"]
    assert told["special_values"] is None
    assert told["patterns"] == told["passes"] == []


def test_unknown_names(explain: Explain) -> None:
    status, out, err = explain("Scael")
    assert (status, out) == (1, "")
    assert err == "gradsmith-codegen: there is no operator 'Scael'; did you mean 'Scale'?\n"
    status, out, err = explain("Scale", "flaot", "--json")
    assert (status, out) == (1, "")
    assert err.endswith("Scale has no row 'flaot'; its rows are float; did you mean 'float'?\n")


def test_a_schema_with_faults_is_not_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("ops: 1\n", encoding="utf-8")
    assert main(["explain", "Scale", "--schema", str(path)]) == 1
    assert "error" in capsys.readouterr().err


HISTORY = """\
    history:
      - {version: 1, change: it came}
      - {version: 4, change: "row `half`, attribute factor"}
    kernel:"""


def test_versions_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = edited(SCALE, ("since_version: 1", "since_version: 4"), ("    kernel:", f"    since_version: 1\n{HISTORY}"))
    path = tmp_path / "ops.yaml"
    path.write_text(text, encoding="utf-8")
    kernels = ["--kernels", str(KERNELS)]
    assert main(["explain", "Scale", str(path), *kernels]) == 0
    told = capsys.readouterr().out
    assert "since version 1\n" in told
    assert "\nVersions\n  1: it came\n  4: row `half`, attribute factor\n" in told
    assert main(["explain", "Scale", str(path), "--json", *kernels]) == 0
    history = json.loads(capsys.readouterr().out)["history"]
    assert history[1] == {"version": 4, "change": "row `half`, attribute factor"}
    assert main(["generate", str(path), "--out", str(tmp_path / "out"), *kernels]) == 0
    page = (tmp_path / "out/docs/Scale.md").read_text(encoding="utf-8")
    assert "| Version 1 | it came |\n| Version 4 | row \\`half\\`, attribute factor |\n" in page
    assert main(["fmt", "--check", str(path)]) == 0


def test_operators_that_changed_tell_their_versions(plan: Plan) -> None:
    for op in ("ConvGrad", "MaxPoolGrad", "SoftmaxCrossEntropyLossGrad", "BiasGeluGrad"):
        (version,) = of(plan, op).history
        assert version.version == 1
    assert not of(plan, "Relu").history


def test_how_many_dims_an_axis_leaves_is_told(plan: Plan) -> None:
    dims = {one.name: one.how_many for one in of(plan, "ReduceMean").dims}
    assert dims == {"B": "those before axis, of at most 8 in all", "A": "one", "F": "0 to 7"}


def test_everything_is_explained(plan: Plan) -> None:
    for op in plan.ops:
        told = json.dumps(explanation(op, plan).data(), allow_nan=False)
        assert not re.search(r"`|\]\(|\*\*|\\\\[*_|\[]|&\w+;", told), op.name  # Markdown is for pages


# ----------------------------------------------------------------------------------------------------
# Schedules


def test_phases_of_rows(plan: Plan) -> None:
    told = of(plan, "SkipLayerNormalizationGrad")
    assert told.patterns == ["rows"]
    assert told.schedule == [
        "one pass, rows along S: reads dY, total, dTotal, gamma, mean, inv_std; writes dX, dGamma, dBeta, dBias",
        "  phase 1: mean over S in back, 2 of them",
        "  summed over the rows: dGamma, dBeta, dBias",
    ]
    told = of(plan, "ReduceLogSumExp")
    assert [len(phase.reductions) for phase in told.passes[0].phases] == [1, 1]


def test_passes(plan: Plan) -> None:
    told = of(plan, "InstanceNormalizationGrad")
    assert [(one.along, one.writes) for one in told.passes] == [
        (["D"], ["dX", "of_xhat", "of_y"]),
        (["C"], ["dScale", "dB"]),
    ]
    assert told.schedule[0].startswith("pass 1 of 2, rows along D: reads ")


def test_sums_of_a_map(plan: Plan) -> None:
    assert of(plan, "PReluGrad").schedule[-1] == "  summed over what was broadcast: dSlope"


def test_the_pattern_of_a_handwritten_kernel(ops_yaml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "MaxPoolGrad", "half", "--schema", str(ops_yaml)]) == 0
    assert "the handwritten kernel gradsmith::pool::MaxPoolGrad, on the pattern windows" in capsys.readouterr().out


# ----------------------------------------------------------------------------------------------------
# Bytes


def bound(op: Op, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """What the symbols of a case are, lists as products."""
    found: dict[str, int] = {}
    for tensor in (*op.inputs, *op.outputs):
        dims = shapes[tensor.name]
        start = next((place for place, dim in enumerate(tensor.shape) if dim.is_list), len(tensor.shape))
        behind = len(tensor.shape) - start - 1
        for place, dim in enumerate(tensor.shape):
            if dim.is_list and len(tensor.shape.lists) == 1:
                found[dim.symbol] = math.prod(dims[start : len(dims) - behind])
            elif dim.text.isidentifier():
                found.setdefault(dim.symbol, dims[place if place < start else place - len(tensor.shape)])
    return found


def test_bytes_are_those_of_the_tensors(all_ops: Schema) -> None:
    compared = 0
    for op in all_ops.ops:
        for row in op.rows:
            case = op.cases[0]
            shapes, sizes = dict(case.all_shapes), {name: one.size for name, one in row.types}
            read = [one for one in op.inputs if not one.optional and not one.shape_only]
            expected = sum(
                math.prod(shapes[one.name]) * (sizes.get(one.type) or op.types_of(one)[0].size)
                for one in (*read, *op.outputs)
            )
            names = {**bound(op, shapes), **{one.name: one.default for one in op.attributes}, **dict(case.attributes)}
            try:
                moved = eval(bytes_of(op, row), {"__builtins__": {}}, names)
            except NameError:  # of a list of dims that no tensor has alone
                continue
            assert moved == expected, (op.name, row.name)
            compared += 1
    assert compared > 400


# ----------------------------------------------------------------------------------------------------
# Values at seams


TRUTHS = {"true": True, "false": False}


def one_term(entry: Any) -> Any:
    """The entry with its sums over dims without these."""
    texts = {name: re.sub(r"^(sum\(.*), [A-Z]\)$", r"\1)", str(one)) for name, one in entry["formulas"].items()}
    return {**entry, "formulas": texts}


def test_values_are_those_of_the_formulas(all_ops: Schema) -> None:
    compared = 0
    for op in all_ops.ops:
        told = special_values.of(op)
        for point in told.points if told else ():
            assert told
            entry = formula_language.OPS[op.name]
            values = {name: float(one["default"]) for name, one in entry.get("attributes", {}).items()}
            inputs = {
                name: TRUTHS[point[name]] if point[name] in TRUTHS else float(point[name]) for name in told.inputs
            }
            names = {"pi": math.pi, **values, **dict.fromkeys(told.ones, 1.0), **inputs}
            given = formula_language.evaluated(one_term(entry), names, formula_language.IN_DOUBLE)
            for output in op.outputs:
                found = TRUTHS.get(point[output.name]) if output.is_mask else float(point[output.name])
                assert found == pytest.approx(given[output.name], rel=1e-5, nan_ok=True), (op.name, inputs)
                compared += 1
    assert compared > 240


@pytest.mark.parametrize(
    ("op", "points"),
    [
        ("ReluGrad", {"-inf": "0", "0": "0", "inf": "1", "NaN": "0"}),
        ("HardSwishGrad", {"-inf": "0", "-3": "0", "0": "0.5", "3": "1", "inf": "1", "NaN": "1"}),
        ("Log", {"-inf": "NaN", "0": "-inf", "inf": "inf", "NaN": "NaN"}),
        ("Softplus", {"-inf": "0", "0": "0.693147", "inf": "inf", "NaN": "NaN"}),
        ("Reciprocal", {"-inf": "0", "0": "inf", "inf": "0", "NaN": "NaN"}),
        ("Sinh", {"-inf": "-inf", "0": "0", "inf": "inf", "NaN": "NaN"}),
        ("AddGrad", {"-inf": "-inf", "0": "0", "inf": "inf", "NaN": "NaN"}),
        ("ReduceL1", {"-inf": "inf", "0": "0", "inf": "inf", "NaN": "NaN"}),
    ],
)
def test_values_where_there_are_no_numbers(plan: Plan, op: str, points: dict[str, str]) -> None:
    told = of(plan, op).special_values
    assert told
    assert [tuple(point.values())[:2] for point in told.points] == list(points.items())


@pytest.mark.parametrize(
    ("op", "pair", "results"),
    [
        ("Max", ("1", "1"), ("1",)),
        ("Max", ("NaN", "1"), ("NaN",)),
        ("MaxGrad", ("1", "1"), ("0.5", "0.5")),
        ("MaxGrad", ("1", "NaN"), ("1", "1")),
        ("Div", ("1", "0"), ("inf",)),
        ("Div", ("0", "0"), ("NaN",)),
        ("Sub", ("inf", "inf"), ("NaN",)),
        ("MulGrad", ("0", "inf"), ("inf", "0")),
        ("Where", ("true", "1", "NaN"), ("1",)),
        ("Where", ("false", "1", "NaN"), ("NaN",)),
        ("DropoutGrad", ("false", "NaN"), ("0",)),
        ("BitmaskDropout", ("true", "inf"), ("inf",)),
        ("PReluGrad", ("0", "inf"), ("inf", "0")),
        ("InPlaceAccumulatorV2", ("true", "NaN", "1"), ("true", "1")),
        ("SwiGlu", ("inf", "0"), ("NaN",)),
    ],
)
def test_values_of_pairs(plan: Plan, op: str, pair: tuple[str, ...], results: tuple[str, ...]) -> None:
    told = of(plan, op).special_values
    assert told
    assert (*pair, *results) in [tuple(point.values()) for point in told.points]


def says_nothing_of_nan(op: Op) -> bool:
    told = special_values.of(op)
    points = [point[name] for point in told.points for name in told.inputs] if told else []
    return "NaN" not in " ".join([*points, *(plain(one.what) for one in op.special_values)])


def test_each_page_says_what_comes_of_nan(all_ops: Schema) -> None:
    silent = [op.name for op in all_ops.ops if says_nothing_of_nan(op)]
    assert not silent, (
        f"nothing says what comes of NaN in {', '.join(silent)}: give each of them `special_values` in ops.yaml "
        "with a `what` that does, and the `test` that shows it (CONTRIBUTING.md, step 1 of an operator)"
    )


def test_an_entry_without_special_values_says_nothing_of_nan() -> None:
    value = '    special_values: [{what: NaN comes out where it goes in., test: "a.cc: A.B"}]\n'
    assert says_nothing_of_nan(op_of(SCALE))
    assert not says_nothing_of_nan(op_of(edited(SCALE, ("    kernel:", f"{value}    kernel:"))))


def test_what_is_said_of_special_values_is_held_by_a_test(all_ops: Schema, repository: Path) -> None:
    named = {plain(one.test) for op in all_ops.ops for one in op.special_values}
    assert len(named) > 10
    for test in named:
        file, _, name = test.partition(": ")
        text = (repository / "tests" / file).read_text(encoding="utf-8")
        suite, _, case = name.partition(".")
        forms = [f"TEST{kind}({suite}, {case})" for kind in ("", "_F", "_P")] if case else [f" {name}("]
        assert any(form in text for form in forms), test


@pytest.mark.parametrize("op", ["Conv", "ReduceMean", "LpNormalization", "SoftmaxGrad", "LayerNormalization"])
def test_no_values_of_what_is_no_function_of_one_place(plan: Plan, op: str) -> None:
    assert of(plan, op).special_values is None


@pytest.mark.parametrize(
    ("op", "told"),
    [
        ("Tanh", ["NaN comes out wherever it is read."]),
        ("MaxGrad", ["A comparison with NaN does not hold.", "What where does not select does no harm, be it"]),
        ("Clip", ["min and max of NaN and a number are NaN."]),
        ("SqrtGrad", ["mul0 and div0 are 0 where their first argument is, whatever the second is."]),
        ("Pow", ["pow(a, 0) and pow(1, b) are 1, of NaN too."]),
        ("MaxPool", []),
    ],
)
def test_notes(plan: Plan, op: str, told: list[str]) -> None:
    found = of(plan, op).notes
    assert [note[: len(start)] for note, start in zip(found, told, strict=True)] == told


OVER_DIMS = "`max` and `min` over dims pass over NaN; of NaN alone they are -infinity and infinity."


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("max(X, D)", [OVER_DIMS, "NaN comes out wherever else it is read."]),
        ("X - min(X, D)", [OVER_DIMS, "NaN comes out wherever else it is read."]),
        ("max(X, max(X, D))", [OVER_DIMS, "`min` and `max` of NaN and a number are NaN."]),
        ("X - mean(X, D)", ["NaN comes out wherever it is read."]),
    ],
)
def test_notes_on_reductions(formula: str, told: list[str]) -> None:
    kernel = "    kernel: scale::Scale\n"
    unused = ("    attributes:\n      factor: {type: float, default: 1.0}\n", "")
    op = op_of(edited(SCALE, (kernel, f'    formulas: {{Y: "{formula}"}}\n'), unused))
    assert special_values.notes(op) == told


# ----------------------------------------------------------------------------------------------------
# LaTeX


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("a - (b - c)", r"a - (b - c)"),
        ("a - b - c", "a - b - c"),
        ("a * (b + c)", r"a \cdot (b + c)"),
        ("a / b * c", r"\frac{a}{b} \cdot c"),
        ("-a * b", r"-a \cdot b"),
        ("-(a + b)", r"-(a + b)"),
        ("a * -b", r"a \cdot (-b)"),
        ("pow(a + b, 2)", r"{(a + b)}^{2}"),
        ("2.5e-7 * a", r"2.5 \cdot 10^{-7} \cdot a"),
        ("log1p(abs(a))", r"\operatorname{log1p}(\left|a\right|)"),
        ("asin(acosh(a))", r"\arcsin(\operatorname{arcosh}(a))"),
        ("atan2(a, asinh(b))", r"\operatorname{atan2}(a, \operatorname{arsinh}(b))"),
        ("rsqrt(sqrt(a))", r"\frac{1}{\sqrt{\sqrt{a}}}"),
        ("inv_std * pi", r"\mathrm{inv\_std} \cdot \pi"),
        (
            "where(a < b and not (b == c), a, where(a > 1, b, c))",
            r"\begin{cases} a & \text{if } a < b \text{ and } \text{not }(b = c)\\ "
            r"b & \text{if } a > 1\\ c & \text{otherwise} \end{cases}",
        ),
        (
            "a * where(b > 0, a, b)",
            r"a \cdot \left(\begin{cases} a & \text{if } b > 0\\ b & \text{otherwise} \end{cases}\right)",
        ),
        ("mean(a * b, N, S)", r"\operatorname{mean}_{N,S}(a \cdot b)"),
        ("sum(a + b, N) - sum(a)", r"\sum_{N} (a + b) - \sum a"),
        (
            "where(mode == most_of and mode != few, a, b)",
            r"\begin{cases} a & \text{if } \mathrm{mode} = \text{most\_of} \text{ and } \mathrm{mode} \ne \text{few}\\ "
            r"b & \text{otherwise} \end{cases}",
        ),
        (
            "where(bit(mask, N), a, b)",
            r"\begin{cases} a & \text{if } \operatorname{bit}_{N}(\mathrm{mask})\\ b & \text{otherwise} \end{cases}",
        ),
        ("max(a, N) + max(a, b)", r"\max_{N}(a) + \max(a, b)"),
    ],
)
def test_latex(formula: str, latex: str) -> None:
    tree = parse(formula, ("N", "S"), ("mode",))
    assert formula_latex.latex(tree) == latex
