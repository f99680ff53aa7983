"""What the generator reads of the kernels' headers is what the compiler does: the fields, their types, and no more."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from build_tree import REPOSITORY
from gradsmith_codegen.kernel_headers import KernelHeaders

HEADERS = KernelHeaders()

ATTRIBUTE_TYPES = {"int": "std::int64_t", "float": "double", "ints": "IntList"}

PRELUDE = """
#include <concepts>
#include <cstdint>
using namespace gradsmith;
struct Anything {
  template <typename T>
  operator T() const;
};
"""


def test_every_family_is_read() -> None:
    written = {f"{path.parent.name}" for path in (REPOSITORY / "runtime").glob("*/kernels.h")}
    assert {name.split("::")[0] for name in HEADERS.kernel_names()} == written
    assert len(HEADERS.kernel_names()) >= 6


def values_of(name: str, attributes: Mapping[str, str]) -> list[str]:
    """One for each of the fields; those of a base are a single one."""
    folder, _, struct = name.partition("::")
    text = (REPOSITORY / "runtime" / folder / "kernels.h").read_text()
    body = text[text.index(f"struct {struct} {{") :]
    found = re.search(r"using Attributes = (?:\w+::)?(\w+);", body)
    base = re.search(rf"^struct {found[1]} : (?:\w+::)?(\w+) \{{", text, re.MULTILINE) if found else None
    if base is None:
        return ["Anything{}"] * len(attributes)
    return [f"{folder}::{base[1]}{{}}", *["Anything{}"] * (len(attributes) - fields_of(base[1], text))]


def fields_of(struct: str, text: str) -> int:
    """How many a struct has, with those of its bases."""
    found = re.search(rf"^struct {struct}(?: : (?:\w+::)?(\w+))? \{{(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    own = len(re.findall(r"^  [\w:]+ \w+(?: = [^;]*)?;", found[2], re.MULTILINE))
    return own + (fields_of(found[1], text) if found[1] else 0)


@pytest.mark.parametrize("family", sorted({name.split("::")[0] for name in HEADERS.kernel_names()}))
def test_the_compiler_agrees(family: str, tmp_path: Path) -> None:
    names = [name for name in HEADERS.kernel_names() if name.startswith(f"{family}::")]
    lines = [f'#include "{family}/kernels.h"', PRELUDE]
    for number, name in enumerate(names):
        lines += [f"namespace kernel_{number} {{", *assertions_of(name), "}"]
    source = tmp_path / "fields.cc"
    source.write_text("\n".join(lines) + "\n")
    include = [f"-I{path}" for path in (REPOSITORY / "runtime", REPOSITORY / "runtime/include")]
    result = subprocess.run(
        ["c++", "-std=c++20", "-fsyntax-only", *include, str(source)], check=False, text=True, capture_output=True
    )
    assert result.returncode == 0, result.stderr


def assertions_of(name: str) -> list[str]:
    """A struct has all the fields where it can be made of as many values, and not of one more."""
    kernel, found = HEADERS.kernel(name), HEADERS.family_of(name)
    assert kernel is not None
    assert found is not None
    assert kernel.attributes is not None
    assert kernel.inputs
    assert kernel.outputs
    assert "RunCpu" in kernel.runs
    fields = {
        "Attributes": {field: ATTRIBUTE_TYPES.get(kind, kind) for field, kind in kernel.attributes.items()},
        "Inputs": dict.fromkeys(kernel.inputs, "const ConstTensorRef*"),
        "Outputs": dict.fromkeys(kernel.outputs, "const TensorRef*"),
    }
    lines: list[str] = []
    for member, types in fields.items():
        struct = f"{name}::{member}"
        lines += [f"static_assert(std::same_as<decltype({struct}::{field}), {kind}>);" for field, kind in types.items()]
        values = values_of(name, types) if member == "Attributes" else ["Anything{}"] * len(types)
        made, one_more = ", ".join(values), ", ".join([*values, "Anything{}"])
        lines.append(f"template <typename T> concept Has{member} = requires {{ T{{{made}}}; }};")
        lines.append(f"template <typename T> concept HasMore{member} = requires {{ T{{{one_more}}}; }};")
        lines.append(f"static_assert(Has{member}<{struct}> && !HasMore{member}<{struct}>);")
    for run in ("RunCpu", "RunCuda"):
        lines.append(f"template <typename T> concept Has{run} = requires {{ &T::{run}; }};")
        lines.append(f"static_assert(Has{run}<{name}> == {str(run in kernel.runs).lower()});")
    for number, (rule, taken) in enumerate(found.rules.items()):
        assert taken.attributes is not None
        made = f"{rule}({', '.join(['attributes', *['Dims{}'] * taken.arguments])})"
        concept = f"template <typename T> concept Rules{number} = requires(T attributes)"
        lines.append(f"{concept} {{ {{ {made} }} -> std::same_as<Result<Dims>>; }};")
        # A rule that takes no attributes is for kernels without.
        is_subset = taken.attributes.keys() <= kernel.attributes.keys()
        is_taken = str(is_subset and (bool(taken.attributes) or not kernel.attributes)).lower()
        lines.append(f"static_assert(Rules{number}<{name}::Attributes> == {is_taken});")
    lines += [f'static_assert({name}::{constant} == "{text}");' for constant, text in kernel.says]
    return lines
