"""How the headers of kernels are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.kernel_terms import Kernel, Rule

HEADER = """\
/* struct NoKernel { */
struct Attributes {
  IntList sizes = {};   ///< struct Inputs { double nothing; };
  std::int64_t
      count = 1;
  double weight{0.5};
  gradsmith::Mode mode = gradsmith::Mode::kNone;
};

struct First {
  static constexpr std::string_view kShapes = "X [N, *D], "  // in two parts
                                              "B [N], Y [N, *D], Z [N]";
  static constexpr std::string_view kTypes = "X T, B T, Y T, Z T1";
  using Attributes = family::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    const gradsmith::ConstTensorRef* B = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    const TensorRef* Z = nullptr;
  };
  static constexpr bool Covers(Backend, std::span<const DataType> types) {
    if (types.empty()) {
      return false;
    }
    return true;
  }
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

Result<Dims> Rule(const Attributes& attributes, const Dims& D);
Result<Dims>
LongRule(const Attributes& attributes, const Dims& D);

struct Second final {
  static constexpr std::string_view kShapes = First::kShapes;
  static constexpr std::string_view kTypes = family::First::kTypes;
  struct Attributes {};
  using Inputs = First::Inputs;
  using Outputs = First::Outputs;
};

struct Helper {
  struct Inputs {};
};
"""


@pytest.fixture
def headers(tmp_path: Path) -> KernelHeaders:
    return with_header(tmp_path, HEADER)


def with_header(folder: Path, text: str) -> KernelHeaders:
    (folder / "family").mkdir()
    (folder / "family/kernels.h").write_text(text, encoding="utf-8")
    return KernelHeaders([folder])


def test_fields_and_their_types(headers: KernelHeaders) -> None:
    assert headers.kernel_names() == ["family::First", "family::Second"]
    inputs, outputs = {"X": True, "B": False}, {"Y": True, "Z": False}
    attributes = {"sizes": "ints", "count": "int", "weight": "float", "mode": "Mode"}
    first, second = headers.kernel("family::First"), headers.kernel("family::Second")
    assert first
    assert first == Kernel(
        attributes, inputs, outputs, frozenset({"RunCpu"}), first.shapes, first.types, says=first.says
    )
    assert first.says == (
        ("kShapes", "X [N, *D], B [N], Y [N, *D], Z [N]"),
        ("kTypes", "X T, B T, Y T, Z T1"),
    )
    assert second == replace(first, attributes={}, runs=frozenset())
    family = headers.family_of("family::Anything")
    assert family
    rule = Rule(attributes, "Attributes", ("D",))
    assert family.rules == {"family::Rule": rule, "family::LongRule": rule}


def test_what_is_not_there(headers: KernelHeaders, tmp_path: Path) -> None:
    assert headers.kernel("family::Third") is None
    assert headers.kernel("other::First") is None
    assert headers.family_of("other::First") is None
    assert KernelHeaders([tmp_path / "none"]).kernel_names() == []


def test_the_first_folder_of_a_family_counts(headers: KernelHeaders, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = with_header(tmp_path / "other", HEADER.replace("First", "Else"))
    assert other.kernel_names() == ["family::Else", "family::Second"]
    both = KernelHeaders([tmp_path / "other", tmp_path])
    assert both.kernel_names() == other.kernel_names()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("double weight{0.5};", "double weight{0.5}, other;"),
        ("double weight{0.5};", "double Weight() const;"),
        ("using Attributes = family::Attributes;", "struct Attributes : other::Attributes {};"),
        ("using Attributes = family::Attributes;", "struct Attributes : Second::Attributes {};"),
        ("using Attributes = family::Attributes;", "struct Attributes : family::Attributes, Helper {};"),
        ("using Attributes = family::Attributes;", "using Attributes = other::Attributes;"),
        ("using Attributes = family::Attributes;", "using Attributes = First::Attributes;"),
    ],
)
def test_what_is_in_another_form_is_told(tmp_path: Path, old: str, new: str) -> None:
    assert old in HEADER
    kernel = with_header(tmp_path, HEADER.replace(old, new)).kernel("family::First")
    assert kernel
    assert kernel.attributes is None
    assert kernel.inputs == {"X": True, "B": False}
    assert kernel.faults == ("its Attributes are in no form that the generator reads: fields, one to a declaration",)


def test_a_struct_has_what_its_base_has(tmp_path: Path) -> None:
    derived = "struct More : Attributes { double bound = 0; };\nstruct Most final : public family::More {};\n"
    text = HEADER.replace("struct First {", f"{derived}\nstruct First {{")
    text = text.replace("using Attributes = family::Attributes;", "using Attributes = Most;")
    text = text.replace("struct Attributes {};", "struct Attributes : family::Attributes { int64_t own = 1; };")
    headers = with_header(tmp_path, text)
    first, second = headers.kernel("family::First"), headers.kernel("family::Second")
    assert first
    assert second
    fields = {"sizes": "ints", "count": "int", "weight": "float", "mode": "Mode"}
    assert first.attributes == {**fields, "bound": "float"}
    assert second.attributes == {**fields, "own": "int"}


def test_rules_of_unknown_attributes(tmp_path: Path) -> None:
    text = f"{HEADER}\nResult<Dims> Other(const other::Thing& thing);\nResult<Dims> None();\n"
    family = with_header(tmp_path, text).family_of("family::Other")
    assert family
    assert (family.rules["family::Other"], family.rules["family::None"]) == (
        Rule(None, "Thing", ()),
        Rule(None, "", ()),
    )


def test_only_transposed_convolutions_have_an_output_padding() -> None:
    kernels = KernelHeaders()
    for name in ("Conv", "ConvGrad"):
        forward = kernels.kernel(f"conv::{name}")
        transposed = kernels.kernel(name.replace("Conv", "conv::ConvTranspose"))
        assert forward
        assert forward.attributes
        assert transposed
        assert transposed.attributes == {**forward.attributes, "output_padding": "ints", "output_shape": "ints"}


@pytest.mark.parametrize("other", ["std::optional<ConstTensorRef>", "RequiredOutput", "const TensorRef*"])
def test_an_argument_of_another_type_is_told(tmp_path: Path, other: str) -> None:
    text = HEADER.replace("const gradsmith::ConstTensorRef* B", f"{other} B")
    kernel = with_header(tmp_path, text).kernel("family::First")
    assert kernel
    assert kernel.inputs is None
    assert kernel.outputs == {"Y": True, "Z": False}
    assert kernel.faults[0].startswith("its Inputs are in no form")


def test_a_gradient_of_no_kernel_is_told(tmp_path: Path) -> None:
    said = 'static constexpr std::string_view kGradientOf = "{}, Y of X";\n  '
    first = "struct First {\n  "
    assert first in HEADER
    mistyped = with_header(tmp_path, HEADER.replace(first, first + said.format("Secnd"))).kernel("family::First")
    assert mistyped
    assert mistyped.faults == (
        "kGradientOf is of no kernel of its header: family::Secnd; did you mean 'family::Second'?",
    )
    (tmp_path / "right").mkdir()
    right = with_header(tmp_path / "right", HEADER.replace(first, first + said.format("Second"))).kernel(
        "family::First"
    )
    assert right
    assert right.faults == ()
