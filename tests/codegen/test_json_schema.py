"""The JSON Schema that editors read, with a validator of another's."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import hostile
import pytest
import yaml
from gradsmith_codegen import vocabulary
from gradsmith_codegen.cli import main
from gradsmith_codegen.json_schema import FILE_NAME, json_schema, text
from schemas import CONVOLVE, SCALE, edited, load

BAD = Path(__file__).parent / "bad"

# Faults of keys, of kinds of values and of words, which a file shows without a look at a whole operator:
# docs/schema-tools.md lists them. That the text is no YAML, or means something else than it looks like, is for who
# reads YAML to say.
OF_SHAPE = {
    *("G004", "G008", "G009", "G010", "G011", "G012", "G013", "G014", "G015", "G016", "G023", "G024", "G025", "G026"),
    *("G027", "G028", "G029", "G030", "G031", "G032", "G033", "G034", "G035", "G037", "G101", "G103"),
}
# Others that it catches as well, where it knows what the rule is about.
CAUGHT_BESIDES = {
    "G006_alias_in_itself",
    "G019_nested",
    "G102_long",
    "G102_odd_name",
    "G338_three_parts",
    "G401_bool_default",
    "G401_default",
    "G401_default_list",
    "G401_floats_default",
    "G401_mapping",
    "G401_mapping_for_an_enum",
    "G401_real_number",
    "G401_string_default",
    "G401_text_for_an_enum",
    "G408_enum",
    "G410_foreign_enum",
    "G801_cut_off",
}
MISSED = {
    "G008_keys_of_cases": "the operator says which keys its cases have",
    "G008_unknown_case_key": "likewise",
    "G010_shape_for_shapes": "the operator says which of its tensors are lists",
    "G011_base_60_number": "to YAML it is a number, as is meant",
    "G011_bool_default": "to YAML it is a truth value, as is meant",
    "G011_hexadecimal": "to YAML it is a number, as is meant",
    "G011_infinity": "to YAML it is a number, as is meant",
    "G011_octal": "to YAML it is a number, as is meant",
    "G011_underscore": "to YAML it is a number, as is meant",
    "G011_yes": "to YAML it is a truth value, as is meant",
    "G012_not_64_bits": "the number may be a value of a list of floats",
    "G014_unknown_tensor_type": "it may be a type parameter",
    "G014_output_of_a_reduction": "likewise",
    "G014_int": "likewise",
    "G035_reference": "what is referred to is in another file",
    "G027_length": "two numbers are in the wrong order",
}


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@pytest.fixture(scope="module")
def validator() -> Any:
    kind = pytest.importorskip("jsonschema").Draft7Validator
    kind.check_schema(json_schema())
    return kind(json_schema())


def _faults(validator: Any, document: str) -> list[str]:
    tree = yaml.load(document, Loader=LOADER)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(tree)]


def test_the_file_is_that_to_which_ops_yaml_points(repository: Path, ops_yaml: Path, refresh: bool) -> None:
    first, _, _ = ops_yaml.read_text(encoding="utf-8").partition("\n")
    assert first == f"# yaml-language-server: $schema={FILE_NAME}"
    if refresh:
        (repository / FILE_NAME).write_text(text(), encoding="utf-8")
    assert (repository / FILE_NAME).read_text(encoding="utf-8") == text()


def test_the_verb_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == text()


@pytest.mark.parametrize("path", ["ops.yaml", "tests/kernels/ops.yaml"])
def test_schemas_without_faults_pass(validator: Any, repository: Path, path: str) -> None:
    assert _faults(validator, (repository / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "schema", [SCALE, CONVOLVE, hostile.schema(cycle(hostile.TEXTS))], ids=["Scale", "Convolve", "hostile"]
)
def test_small_schemas_pass(validator: Any, schema: str) -> None:
    assert _faults(validator, schema) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cases:", "repeatable: {cpu: never}\n    cases:"),
        ("kernel: scale::Scale", "formulas: {Y: 0}"),
        ("default: 1.0", "optional: true, max: .inf"),
        ("default: 1.0", "default: 1, optional: false"),
        ("length: [0, 3]", "length: 3"),
        ('shape: [N, "*D"]', 'shape: [ceil(N / 32), 3, "C/group"]'),
        ("X: [2, 3]", "X: [[2, 3], []]"),
        ("like: X", "like: X, in_place_of: X, optional: true"),
    ],
)
def test_what_may_be_written_passes(validator: Any, old: str, new: str) -> None:
    assert _faults(validator, edited(SCALE, (old, new))) == []


LONG = "abcdefghi_" * 3 + "abcdefg"  # 37 characters
STEPS = "factor: {type: float, default: 1.0}"
FORMULAS = "kernel: scale::Scale"
SEAMS = "formulas: {Y: X}\n    seams:\n      - "


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("name: Scale", f"name: S{LONG[1:].replace('_', 'x')}", "name"),
        ("name: plain", f"name: {LONG}", "cases[0].name"),
        ("factor:", f"{LONG}:", "attributes"),
        ("float: {T:", f"{LONG}: {{T:", "rows"),
        ("D: {length: [0, 3]}", f"D: {{length: [0, 3]}}\n      {LONG}: {{}}", "dims"),
        ("Y: {type: T, like: X}", f"{LONG}: {{type: T, like: X}}", "outputs"),
        ("[0, 3]", "[0, 3, 4]", "dims.D.length"),
        ("[0, 3]", "[0]", "dims.D.length"),
        ("[0, 3]", "9", "dims.D.length"),
        ("[0, 3]", "[0, 3], length_if: {factor: [0, 1, 2]}", "dims.D.length_if.factor"),
        ("[0, 3]", "[0, 3], split: [G, H, I]", "dims.D.split"),
        ('shape: [N, "*D"]', "shape_of: Y, may_be_on_host: true", "inputs.X"),
        ('shape: [N, "*D"]', "shape_of: Y, shape_only: true", "inputs.X"),
        ('shape: [N, "*D"]', "shape_of: Y, gradient_of: Y", "inputs.X"),
        ('shape: [N, "*D"]', "shape_of: Y, list: n", "inputs.X"),
        (STEPS, "factor: {type: ints, default: [1], min: 0.5}", "attributes.factor.min"),
        (STEPS, "factor: {type: ints, default: [1], max: 1.5}", "attributes.factor.max"),
        (STEPS, "factor: {type: int, default: 1, min: 0.5}", "attributes.factor.min"),
        (STEPS, f"factor: {{type: ints, default: [{2**63}]}}", "attributes.factor.default[0]"),
        (STEPS, f"factor: {{type: ints, default: [], min: {-(2**63) - 1}}}", "attributes.factor.min"),
        (STEPS, f"factor: {{type: ints, default: [], max: {2**63}}}", "attributes.factor.max"),
        (FORMULAS, "formulas: {Y: [X]}", "formulas.Y"),
        (FORMULAS, "formulas: {Y: {X: 1}}", "formulas.Y"),
        (FORMULAS, "formulas: {Y: ''}", "formulas.Y"),
        (FORMULAS, "formulas: {Y: null}", "formulas.Y"),
        (FORMULAS, f"{SEAMS}{{at: {{X: [0]}}, gives: {{Y: 0}}}}", "seams[0].at.X"),
        (FORMULAS, f"{SEAMS}{{at: {{X: 0}}, gives: {{Y: ''}}}}", "seams[0].gives.Y"),
        (FORMULAS, f"{FORMULAS}\n    operations: [1]", "operations"),
    ],
)
def test_what_may_not_be_written_fails(validator: Any, old: str, new: str, place: str) -> None:
    bad = edited(SCALE, (old, new))
    (fault,) = _faults(validator, bad)
    assert fault.startswith(f"$.ops[0].{place}: ")
    assert load(bad)[1]  # it is a fault to the reader as well


def test_bad_files(validator: Any) -> None:
    caught, expected = set(), set()
    for path in BAD.glob("*.yaml"):
        try:
            faults = _faults(validator, path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, yaml.YAMLError):
            assert path.name[:4] in ("G002", "G003", "G005", "G017", "G020", "G021") or path.stem == "G010_key"
            continue
        if faults:
            caught.add(path.stem)
        if path.name[:4] in OF_SHAPE and path.stem not in MISSED or path.stem in CAUGHT_BESIDES:
            expected.add(path.stem)
    assert caught == expected


def test_what_it_misses_is_there() -> None:
    assert {name for name in (*MISSED, *CAUGHT_BESIDES) if not (BAD / f"{name}.yaml").exists()} == set()


def test_a_fault_is_told_where_it_is(validator: Any) -> None:
    (fault,) = _faults(validator, edited(SCALE, ("{T: float}", "{T: flaot}")))
    assert fault.startswith("$.ops[0].rows.float.T: 'flaot' is not one of ['float', ")


def test_keys_have_the_words_that_editors_show() -> None:
    schema = json_schema()
    operator = schema["definitions"]["operator"]["properties"]
    assert set(operator) == {*vocabulary.OP.all}
    for definition in (schema, *schema["definitions"].values()):
        for key, value in definition.get("properties", {}).items():
            assert value["description"].endswith("."), key
