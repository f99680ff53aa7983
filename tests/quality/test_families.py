"""Nobody outside a family's own files names it: tools, benchmarks and bindings find families in tables and folders.

Nor does it name the family's operators in quotes, as tables would that know each family.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_tree import REPOSITORY

RUNTIME = REPOSITORY / "runtime"
FAMILIES = sorted(path.parent.name for path in RUNTIME.glob("*/kernels.h"))
# What serves all families. Tests of this and that may take a family as their example.
FOLDERS = ("runtime", "tools", "bench", "python", "codegen", "templates", "cmake", "docs/site", "examples")
FOLDERS_OF_TESTS = ("support", "emulated_gpu", "fake_cudnn", "fuzz", "gpu", "plugin")
CPP = (".h", ".cc", ".cu", ".cuh")
SUFFIXES = (*CPP, ".in", ".jinja", ".py", ".cmake")

# The files that may name a family or its operators, each with the reason.
EXCEPTIONS = {
    "bench/call_cost.py": "what a call costs on the host is measured on an operator of many arguments",
    "bench/gpu_patterns.py": "a table of docs/performance.md, which says what operators its rows are of",
    "bench/gpu_summary.py": "tables of docs, which say what suites, types and operators they show",
    "bench/pooling.py": "a benchmark of these operators alone, run by hand",
    "bench/small_batch_norms.py": "a benchmark of this operator alone, run by hand",
    "codegen/gradsmith_codegen/faults.py": "a message shows the form of a kernel's name by an example",
    "examples/quick_start/dynamic.cc": "an example of calls by name",
    "tests/fuzz/door_calls.py": "calls of some operators, which may go wrong",
    "tests/fuzz/schema.py": "pieces of entries that are put where they do not belong",
}


def is_source(path: Path) -> bool:
    return path.suffix in SUFFIXES or path.name == "CMakeLists.txt"


def sources() -> Iterator[Path]:
    tests = (f"tests/{folder}" for folder in FOLDERS_OF_TESTS)
    for folder in (*FOLDERS, *tests):
        yield from (path for path in sorted((REPOSITORY / folder).rglob("*")) if is_source(path))
    yield from (REPOSITORY / "CMakeLists.txt", REPOSITORY / "tests/CMakeLists.txt", REPOSITORY / "run")


def is_of(family: str, path: Path) -> bool:
    """Whether a folder of the path is the family's, or the file has its name in front: conv_case.cc, gpu_conv.py."""
    inside = path.relative_to(REPOSITORY)
    return family in inside.parts[:-1] or re.match(rf"(.*_)?{family}(_|\.|$)", inside.name) is not None


@functools.cache
def code_of(path: Path) -> str:
    """Without comments and doc strings, which may give examples."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in CPP:
        return re.sub(r"//.*|/\*.*?\*/", "", text)
    if path.suffix == ".py":
        return python_code(text)
    return re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE)


def python_code(text: str) -> str:
    """Its tokens, one on each line; a string that is a statement is a doc string."""
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type != tokenize.COMMENT]
    begins = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENCODING}
    code = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        is_statement = before is None or before.type in begins
        if not (token.type == tokenize.STRING and is_statement and token.line.strip().startswith(('"""', 'r"""'))):
            code.append(token.string)
    return "\n".join(code)


@functools.cache
def operators_of(family: str) -> list[str]:
    """Those of ops.yaml on its kernels."""
    entries = re.split(r"^  - name: ", (REPOSITORY / "ops.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [
        entry.partition("\n")[0] for entry in entries[1:] if re.search(rf"^    kernel: {family}::", entry, re.MULTILINE)
    ]


def names_of(family: str, code: str) -> list[str]:
    """Where the code includes a header of the family, is in its namespace, or names it, a file or an operator of it."""
    patterns = (
        rf"""(?P<quote>["'])(?:{family}(?:_[a-z]+)*|{"|".join(operators_of(family))})(?P=quote)""",
        rf'#include ["<]{family}/[^">]+[">]',
        rf"\bnamespace (?:gradsmith::)?{family}\b",
        rf"\b{family}::",
        rf"\bruntime/{family}\b",
    )
    return [found[0] for pattern in patterns for found in re.finditer(pattern, code)]


def offences(family: str) -> dict[str, list[str]]:
    named = ((path, names_of(family, code_of(path))) for path in sources() if not is_of(family, path))
    return {str(path.relative_to(REPOSITORY)): names for path, names in named if names}


def advice(family: str, found: dict[str, list[str]]) -> str:
    """What to do about it. A file may have an operator's name in quotes and mean something else."""
    places = [f"{path}: {', '.join(names)}" for path, names in found.items()]
    return "\n".join(
        [
            f"files outside of the family {family} name it or its operators:",
            *places,
            "Find it in a table or a folder instead. A word in quotes may merely be the same as an operator's name:",
            "then give either another name, or add the file to EXCEPTIONS with the reason.",
        ]
    )


def test_families_are_found() -> None:
    assert {"batch_norm", "conv", "pool"} <= set(FAMILIES)
    assert len(list(sources())) > 300


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_else_names_a_family(family: str) -> None:
    found = {path: names for path, names in offences(family).items() if path not in EXCEPTIONS}
    assert not found, advice(family, found)


def test_every_exception_is_one() -> None:
    named = {path for family in FAMILIES for path in offences(family)}
    assert set(EXCEPTIONS) <= named


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('#include "conv/cuda/form.h"', ['#include "conv/cuda/form.h"']),
        ("namespace gradsmith::conv {", ["namespace gradsmith::conv"]),
        ('conv::Task task; kernel.starts_with("conv::")', ["conv::", "conv::"]),
        ("set_source_files_properties(runtime/conv/a.cc)", ["runtime/conv"]),
        ('kinds = {"conv": \'ConvGrad\', "conv_transpose": op}', ['"conv"', "'ConvGrad'", '"conv_transpose"']),
        ('#include "gpu/conv_case.h"\nreference::convert(x); deconv::Task', []),
        ('"convolution" "deconv" "Convolve" "a conv of images" ConvGrad(x, options.conv)', []),
    ],
)
def test_what_names_a_family(code: str, names: list[str]) -> None:
    assert names_of("conv", code) == names


def test_words_in_quotes_may_merely_be_the_same() -> None:
    told = advice("conv", {"bench/words.py": ['"Conv"']})
    assert 'bench/words.py: "Conv"' in told
    assert "may merely be the same as an operator's name" in told


def test_operators_are_found_by_their_kernels() -> None:
    assert {"Conv", "ConvTransposeGrad"} <= set(operators_of("conv"))
    assert "BatchNormalizationReluGrad" in operators_of("batch_norm")
    assert not {"Sigmoid", "MaxPool"} & set(operators_of("conv"))


def test_examples_in_comments_are_none() -> None:
    code = python_code('"""Of conv::Conv."""\n\nx = 1  # conv::Conv\n\n\ndef f():\n    """As conv::Conv."""\n')
    assert names_of("conv", code) == []
    assert names_of("conv", python_code('x = "conv::Conv"\n')) == ["conv::"]


def test_whose_a_file_is() -> None:
    for path in ("runtime/conv/axes.h", "bench/gpu/conv/startup.cc", "bench/gpu_conv.py", "tests/reference/conv.cc"):
        assert is_of("conv", REPOSITORY / path), path
    for path in ("tools/support.cc", "bench/convert.py", "runtime/cuda/graph.h"):
        assert not is_of("conv", REPOSITORY / path), path
