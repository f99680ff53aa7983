"""Some rows of a schema: which they are, what is generated of them, and images with the code of some architectures."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from gradsmith_codegen import images
from gradsmith_codegen.cli import main
from gradsmith_codegen.data_types import DataType
from gradsmith_codegen.model import Schema
from gradsmith_codegen.problem_lines import read_problems
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.selection import Selection, select, type_of
from gradsmith_codegen.verbs import Refused
from schemas import SCALE, load


@pytest.fixture(scope="module")
def schema(ops_yaml: Path) -> Schema:
    schema, diagnostics = load_schema(ops_yaml)
    assert diagnostics == []
    assert schema
    return schema


def rows(schema: Schema) -> dict[str, str]:
    """For each operator its rows and its backends, as words."""
    return {
        op.name: " ".join([*(row.name for row in op.rows), *(one.value for one in op.backends)]) for op in schema.ops
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Selection(ops=("ConvGrad:float",)), {"ConvGrad": "float cpu cuda"}),
        (
            Selection(ops=("ReluGrad", "ConvGrad:half")),
            {"ConvGrad": "half cpu cuda", "ReluGrad": "float double half bf16 cpu cuda"},
        ),
        (Selection(ops=("Relu:half", "Relu:float", "Relu:half")), {"Relu": "float half cpu cuda"}),
        (
            Selection(("ConvGrad:float", "BatchNormalizationGrad"), ("half", "BFloat16"), ("cuda",)),
            {
                "ConvGrad": "float cuda",
                "BatchNormalizationGrad": "half half_float_stats half_float_params bf16 bf16_float_stats "
                "bf16_float_params cuda",
            },
        ),
    ],
)
def test_what_is_selected(schema: Schema, wanted: Selection, found: dict[str, str]) -> None:
    assert rows(select(schema, wanted)) == found


def test_types_and_backends_alone_select_of_all_operators(schema: Schema) -> None:
    selected = rows(select(schema, Selection(types=("double",), backends=("cpu",))))
    assert {"Conv", "ReluGrad"} <= set(selected)
    assert all("double" in words and "float " not in words and words.endswith("cpu") for words in selected.values())


def test_labels_and_masks_are_not_what_a_row_computes_in(schema: Schema) -> None:
    selected = rows(select(schema, Selection(("SoftmaxCrossEntropyWithLabelsGrad", "Where"), ("float",))))
    assert all(words.startswith("float") for words in selected.values())
    assert len(selected) == 2
    (op,) = [one for one in schema.ops if one.name == "SoftmaxCrossEntropyWithLabels"]
    turned = [replace(row, types=tuple(sorted(row.types, key=lambda one: one[1].is_floating))) for row in op.rows]
    assert {row.types[0][1] for row in turned} == {DataType.INT32, DataType.INT64}
    assert all(type_of(row).is_floating for row in turned)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Selection(("ConvGard",)), "there is no operator 'ConvGard'; did you mean 'ConvGrad'?"),
        (
            Selection(("ConvGrad:flaot",)),
            "there is no row of operator 'ConvGrad' called 'flaot'; did you mean 'float'?",
        ),
        (Selection(types=("fp",)), "there is no element type 'fp'; expected one of "),
        (Selection(backends=("gpu",)), "there is no backend 'gpu'; did you mean 'cuda'?"),
        (Selection(types=("fp16",)), "there is no element type 'fp16'; did you mean 'half' (MLFloat16)?"),
        (Selection(("ConvGrad",), ("int32",)), "operator 'ConvGrad' has no row of type int32"),
        (Selection(types=("uint8",)), "no row is of the types and backends that are selected"),
    ],
)
def test_what_there_is_not(schema: Schema, wanted: Selection, message: str) -> None:
    with pytest.raises(Refused) as refused:
        select(schema, wanted)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Selection(("Scale",), backends=("cuda",)), "operator 'Scale' has no backend cuda"),
        (Selection(("Scale:float",), backends=("cuda",)), "operator 'Scale' has no backend cuda"),
        (Selection(backends=("cuda",)), "no row is of the types and backends that are selected"),
    ],
)
def test_an_operator_that_is_named_has_the_backend(wanted: Selection, message: str) -> None:
    on_the_cpu, _ = load(SCALE)
    assert on_the_cpu
    with pytest.raises(Refused) as refused:
        select(on_the_cpu, wanted)
    assert str(refused.value) == message


def test_problems_in_no_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "problems.txt"
    path.write_bytes(b"Relu float X=2\n\xff\n")
    with pytest.raises(Refused, match="is no text in UTF-8: byte 15 is none"):
        read_problems(path)


def test_problems_name_rows(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "problems.txt"
    path.write_text(
        "# all\n\nConvGrad half X=1x2x3x3 W=4x2x1x1  # one\nRelu float X=3\nConvGrad half X=2x2x3x3 W=4x2x1x1\n"
    )
    assert rows(selected_by(schema, path)) == {"ConvGrad": "half cpu cuda", "Relu": "float cpu cuda"}
    together = select(schema, Selection(("Relu:half", "Tanh:half"), problems=tuple(read_problems(path))))
    assert rows(together) == {
        "ConvGrad": "half cpu cuda",
        "Relu": "float half cpu cuda",
        "Tanh": "half cpu cuda",
    }
    for text, message in (("Relu\n", ":1: 'Relu' names no row"), ("# none\n", " has no problems")):
        path.write_text(text)
        with pytest.raises(Refused, match=message):
            read_problems(path)


def selected_by(schema: Schema, path: Path) -> Schema:
    return select(schema, Selection(problems=tuple(read_problems(path))))


def test_problems_have_dims_as_programs_record_them(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "problems.txt"
    for dims in ("scalar", "2x0x3", "2x3,4,scalar", "-1"):
        path.write_text(f"Relu float X={dims} layout=NHWC\n")
        assert rows(selected_by(schema, path)) == {"Relu": "float cpu cuda"}


RECORDING = "recording holds the operators of all libraries of a program; lines of other libraries can be removed"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ConvGrad floatt X=8", "there is no row of operator 'ConvGrad' called 'floatt'; did you mean 'float'?"),
        ("MyVeryOwn float X=8", f"there is no operator 'MyVeryOwn'; a {RECORDING}"),
        ("ConvGard float X=8", f"there is no operator 'ConvGard'; did you mean 'ConvGrad'? A {RECORDING}"),
        ("Relu float X=8y3x9x9", "'X=8y3x9x9' has no dims; expected some such as X=2x3x9"),
        ("Relu float X=", "'X=' has no dims; expected some such as X=2x3x9"),
        ("Relu float X=8x3x", "'X=8x3x' has no dims; expected some such as X=2x3x9"),
    ],
)
def test_what_is_wrong_with_a_problem_is_told_with_its_place(
    schema: Schema, tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "problems.txt"
    path.write_text(f"# of a program\nRelu float X=3\n{line}\n")
    with pytest.raises(Refused) as refused:
        selected_by(schema, path)
    assert str(refused.value) == f"{path}:3: {message}"


def test_generated_is_what_is_selected(ops_yaml: Path, tmp_path: Path) -> None:
    options = [
        "--only",
        "ConvGrad:float",
        "--only",
        "SigmoidGrad",
        "--only",
        "ReduceL2",
        "--type",
        "half",
        "--shards",
        "1",
    ]
    out = ["--without", "docs", "--without", "tests", "--without", "python", "--out", str(tmp_path)]
    assert main(["generate", "--schema", str(ops_yaml), *options, *out]) == 0
    headers = sorted(path.name for path in (tmp_path / "include/gradsmith/ops").iterdir())
    assert headers == ["conv_grad.h", "reduce_l2.h", "sigmoid_grad.h"]
    table = (tmp_path / "src/dispatch_table.cc").read_text()
    assert table.count("std::array<Row, 2> kRows") == 3
    # Its rows stand in the entry of Conv, of which there is the place alone.
    assert "namespace generated::conv_stub {\nextern const std::int32_t kEntryLine;" in table
    assert "conv_stub::kRows" not in table
    kernels = (tmp_path / "src/formulas_0.cu").read_text().split("// ops.yaml")[1:]
    assert len(kernels) == 2
    assert all("KERNELS_OF(" in one and one.count("f16, __half)") == 1 and "float" not in one for one in kernels)
    assert "kImage_selected_formulas_0" in (tmp_path / "src/ops_shard_0.cc").read_text()
    assert not (tmp_path / "python").exists()


# ----------------------------------------------------------------------------------------------------
# Images


def image(*entries: tuple[int, int, bytes]) -> bytes:
    """As nvcc 12 writes one: entries of a kind, 1 for PTX and 2 for machine code, and an architecture."""
    body = b""
    for kind, architecture, code in entries:
        head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x0101, 64, len(code), 0, 0, 7, 8, architecture, 0, 0, 0, 0, 0)
        body += head + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


WHOLE = image((2, 75, b"old " * 2), (2, 80, b"mid " * 4), (2, 90, b"new " * 6), (1, 90, b"ptx " * 2))


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (["90"], image((2, 90, b"new " * 6), (1, 90, b"ptx " * 2))),
        (["90-real"], image((2, 90, b"new " * 6))),
        (["75", "90-virtual"], image((2, 75, b"old " * 2), (1, 90, b"ptx " * 2))),
        (["75", "80", "90"], WHOLE),
    ],
)
def test_images_keep_the_code_of_some_architectures(wanted: list[str], kept: bytes) -> None:
    assert images.only(WHOLE, wanted) == kept


def test_images_without_an_architecture_are_told() -> None:
    with pytest.raises(
        Refused, match="no code for architecture 86; the library has 75-real, 80-real, 90-real, 90-virtual"
    ):
        images.only(WHOLE, ["86"])


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), WHOLE[:-1], b"\x00" + WHOLE[1:]])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        images.only(data, ["90"])
