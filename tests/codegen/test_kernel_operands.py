"""The header `operands.h` that the generator makes of a family's `kernels.h`."""

from __future__ import annotations

from pathlib import Path

from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.kernel_operands import FamilyOperands, KernelOperands, families_of
from gradsmith_codegen.library import BUILTIN, Library
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.render import render
from schemas import SCALE, load

HEADER = """
namespace mylib::mix {
struct Attributes {};
struct Mix {
  static constexpr std::string_view kShapes =
      "X [N, *D], a_b [N], aB [N], list [*E], state [N], Y [N, *D], state in_place_of state, Y in_place_of X";
  static constexpr std::string_view kTypes = "X T, a_b float, aB T1, list T, state T, Y T";
  static constexpr std::string_view kLimits = "a_b shape_only";
  using Attributes = mix::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    RequiredInput a_b = nullptr;
    const ConstTensorRef* aB = nullptr;
    RequiredInputs list;
    RequiredInput state = nullptr;
  };
  struct Outputs { RequiredOutput Y = nullptr; const TensorRef* state = nullptr; };
  static Status RunCuda();
};
struct Anywhere {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = mix::Attributes;
  struct Inputs { RequiredInput a_b = nullptr; RequiredInput aB = nullptr; };
  struct Outputs { RequiredOutput Y = nullptr; };
  static Status Run();
};
struct Alone {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = mix::Attributes;
  using Inputs = Anywhere::Inputs;
  using Outputs = Anywhere::Outputs;
  static Status RunCpu();
};
}
"""


def families(folder: Path) -> tuple[FamilyOperands, ...]:
    (folder / "mix").mkdir()
    (folder / "mix/kernels.h").write_text(HEADER)
    headers = KernelHeaders([folder, RUNTIME], "mylib")
    return families_of(headers, Library("mylib", headers.own_families))


def kernels(folder: Path) -> dict[str, KernelOperands]:
    (family,) = families(folder)
    return {kernel.name: kernel for kernel in family.kernels}


def test_operands_are_the_inputs_that_are_read_then_the_outputs(tmp_path: Path) -> None:
    mix = kernels(tmp_path)["Mix"]
    assert [one.name for one in mix.inputs] == ["X", "aB", "list", "state"]
    assert [one.name for one in mix.outputs] == ["Y", "new state"]


def test_an_operand_says_its_type_and_shape(tmp_path: Path) -> None:
    found = kernels(tmp_path)
    meanings = {one.enumerator: one.meaning for one in found["Mix"].all}
    assert meanings["kX"] == "T [N, *D]"
    assert meanings["kAB"] == "T1 [N], may be absent"
    assert meanings["kList"] == "a list of T [*E]"
    assert meanings["kNewState"] == "T [N], may be absent"
    assert found["Anywhere"].outputs[0].meaning == "any type any shape"


def test_outputs_in_place_are_paired_with_their_inputs(tmp_path: Path) -> None:
    pairs = kernels(tmp_path)["Mix"].in_place
    assert [(source.enumerator, output.enumerator) for source, output in pairs] == [
        ("kState", "kNewState"),
        ("kX", "kY"),
    ]


def test_enumerators_differ_where_names_do(tmp_path: Path) -> None:
    assert [one.enumerator for one in kernels(tmp_path)["Anywhere"].inputs] == ["kAB", "kAB_"]


def test_kernels_of_the_cpu_alone_have_none(tmp_path: Path) -> None:
    assert list(kernels(tmp_path)) == ["Mix", "Anywhere"]


def test_a_library_has_its_own_families(tmp_path: Path) -> None:
    assert [family.namespace for family in families(tmp_path)] == ["mylib::mix"]
    of_runtime = families_of(KernelHeaders(), BUILTIN)
    assert [family.name for family in of_runtime] == sorted(KernelHeaders().headers)


def test_what_the_header_says(tmp_path: Path) -> None:
    schema, _ = load(SCALE)
    assert schema
    plan = make_plan(schema, 1, Library("mylib", frozenset(["mix"])), families(tmp_path))
    texts = dict(render([one for one in artefacts(plan) if one.path == "src/mix/operands.h"]))
    text = texts["src/mix/operands.h"]
    assert "#ifndef MYLIB_MIX_OPERANDS_H_" in text
    assert "namespace mylib::mix::operands {" in text
    assert "{.input = kX, .output = kY}," in text
    assert '.id = ::gradsmith::internal::ProblemKey::HashOfText("mylib::Mix"),' in text
