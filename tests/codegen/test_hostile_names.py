"""Names that everything else has a use for, and texts that would be code: all that is generated compiles, and says what
the schema says."""

from __future__ import annotations

import ast
import doctest
import itertools
import os
import re
import subprocess
import sys
import tokenize
from io import BytesIO
from pathlib import Path

import hostile
import pytest
from gradsmith_codegen import output
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.depfile import depfile
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import Plan, make_plan
from gradsmith_codegen.reader import load_source
from gradsmith_codegen.render import render
from schemas import HEADERS, SCALE

FILE_NAME = "".join(name for name in hostile.FILE_NAMES if "/" not in name) + ".yaml"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wtrigraphs", "-Werror"]

# What the standard's headers and the runtime's need their own names for comes first; then every name is a macro.
PRELUDE = """\
#include <bits/stdc++.h>
#include "core/stub.h"
#include "core/validate.h"
#include "hostile/kernels.h"
#include "support/op_tests.h"
#include "reference/hostile.h"
"""


def _plan(folder: Path, name: str, text: str) -> Plan:
    header = folder / "kernels/hostile/kernels.h"
    header.parent.mkdir(parents=True)
    header.write_text(hostile.KERNELS_H, encoding="utf-8")
    oracle = folder / "kernels/reference/hostile.h"
    oracle.parent.mkdir()
    oracle.write_text(hostile.ORACLE_H, encoding="utf-8")
    schema, diagnostics = load_source(source_of(name, text), headers=KernelHeaders([header.parents[1], RUNTIME]))
    assert "\n".join(diagnostic.message for diagnostic in diagnostics) == ""
    assert schema
    return make_plan(schema, shards=1)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is generated for the hostile schema, under a hostile name."""
    folder = tmp_path_factory.mktemp("hostile")
    docs = [text for text in hostile.TEXTS if not text.rstrip().endswith("\\") and "\\ " not in text]
    plan = _plan(folder, FILE_NAME, hostile.schema(itertools.cycle(docs)))
    output.write(folder / "out", plan)
    assert output.compare(folder / "out", plan) == ""
    return folder / "out"


def _paths(folder: Path, suffix: str) -> list[Path]:
    found = sorted(folder.rglob(f"*{suffix}"))
    assert found
    return found


def _compile(generated: Path, repository: Path, text: str) -> str:
    kernels = generated.parent / "kernels"
    places = [
        generated / "include",
        kernels,
        repository / "runtime/include",
        repository / "runtime",
        repository / "tests",
    ]
    command = ["c++", "-std=gnu++20", "-fsyntax-only", *WARNINGS, *[f"-I{place}" for place in places], "-x", "c++", "-"]
    return subprocess.run(command, input=text, text=True, check=False, capture_output=True).stderr


def _prelude(repository: Path) -> str:
    headers = sorted(path.name for path in (repository / "runtime/include/gradsmith").glob("*.h"))
    own = "".join(f'#include "gradsmith/{name}"\n' for name in headers if name not in ("gradsmith.h", "cuda.h"))
    return own + PRELUDE


def _macros() -> str:
    return "".join(f"#undef {name}\n#define {name} ]not code[\n" for name in hostile.names())


def test_cpp_compiles_among_macros_of_all_names(generated: Path, repository: Path) -> None:
    """The headers leave the macros as they were; a source ends them."""
    still = "".join(f"#ifndef {name}\n#error {name} is gone\n#endif\n" for name in hostile.names())
    names = ["src/dispatch_table.cc", "src/ops_shard_0.cc", "tests/generated_tests_0.cc"]
    sources = [f'{_macros()}#include "{generated / name}"\n' for name in names]
    text = [_prelude(repository), _macros(), '#include "gradsmith/ops.h"\n', still, *sources]
    assert _compile(generated, repository, "".join(text)) == ""


def test_python_compiles_and_its_texts_run_nothing(generated: Path) -> None:
    for path in _paths(generated, ".py") + _paths(generated, ".pyi"):
        data = path.read_bytes()
        assert tokenize.detect_encoding(BytesIO(data).readline)[0] == "utf-8"
        tree = ast.parse(data)
        allowed = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign)
        first, *others = tree.body
        assert all(isinstance(node, allowed) for node in others)
        for node in ast.walk(tree):
            doc = ast.get_docstring(node) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) else None
            examples = doctest.DocTestParser().get_examples(doc or "")
            assert not any("PWNED" in example.source or "abort" in example.source for example in examples)


FAKE_PACKAGE = {
    "__init__.py": "",
    "_arguments.py": "import inspect\nwithout_unknown = inspect.signature\n",
    "_core.py": "class Op:\n    def __init__(self, *_): pass\n    def call(self, *given): return given\n",
    "_policy.py": "class entered:\n    @staticmethod\n    def get(): return [entered]\n    policies = 'P'\n",
}
USE = """
import doctest, sys, gradsmith._ops
from gradsmith._ops import FUNCTIONS
for function in FUNCTIONS.values():
    function(*range({inputs}))
    try:
        function(*range({inputs}), unknown_word=1)
    except AttributeError as error:
        assert "unknown" in str(error), error
print(*FUNCTIONS)
"""


def test_the_package_can_be_imported_and_used(generated: Path, tmp_path: Path) -> None:
    package = tmp_path / "gradsmith"
    (package / "_ops").mkdir(parents=True)
    for name, text in FAKE_PACKAGE.items():
        (package / name).write_text(text, encoding="utf-8")
    for path in (generated / "python/gradsmith/_ops").glob("*.py"):
        (package / "_ops" / path.name).write_bytes(path.read_bytes())
    use = USE.format(inputs=len(hostile.INPUTS.split()))
    result = subprocess.run(
        [sys.executable, "-c", use], cwd=tmp_path, text=True, check=False, capture_output=True, env={**os.environ}
    )
    assert result.stderr == ""
    assert result.stdout.split() == hostile.ops()
    assert not (tmp_path / "PWNED").exists()


def test_every_operator_has_files_of_its_own_whatever_the_case(generated: Path) -> None:
    paths = (generated / "manifest.txt").read_text(encoding="utf-8").splitlines()
    assert len({path.lower() for path in paths}) == len(paths)
    assert len(_paths(generated / "docs", ".md")) == len(hostile.ops()) + 1


def test_pages_are_tables_and_text(generated: Path) -> None:
    """What is code in Markdown or HTML is escaped, and no text opens a cell or a line of its own."""
    for path in _paths(generated / "docs", ".md"):
        comment, *lines = path.read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(r"<!-- [^<>]* -->", comment)
        columns = 0
        for line in lines:
            bare = re.sub(r"\\.", "", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
            bare = re.sub(r"\[(\w+)\]\(\1_?\.md\)", "", bare)
            assert not re.search(r"[`*\[\]~$]|<[a-z/!?]|(?<![\w])_|_(?![\w])", bare, re.IGNORECASE), line
            if line.startswith("|"):
                cells = len(re.findall(r"(?<!\\)\|", line)) - 1
                assert cells == (columns or cells), line
                columns = cells
            else:
                columns = 0
                assert not re.match(r" *([-+>=]|#(?!#? ))|[0-9]+[.)]", line), line


def test_nothing_of_the_files_name_has_a_line_of_its_own(generated: Path) -> None:
    for path in (path for path in generated.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8")
        assert text.isascii() or all(one.isprintable() or one == "\n" for one in text)
        assert not re.search(r"^\s*(open\(|#error)", text, re.MULTILINE)


@pytest.mark.parametrize("name", hostile.FILE_NAMES)
def test_a_file_of_any_name_is_taken(name: str) -> None:
    schema, diagnostics = load_source(source_of(f"{name.replace('/', '_')}.yaml", SCALE), headers=HEADERS)
    assert diagnostics == []
    assert schema
    for path, text in render(artefacts(make_plan(schema, shards=1))):
        assert text.encode("utf-8")
        if path.endswith((".py", ".pyi")):
            ast.parse(text)


@pytest.mark.parametrize("name", ['x\nopen("PWNED", "w")\n#', "bytes \udcff\udc80", "quotes ' \" \\"])
def test_a_file_of_any_name_is_taken_from_the_file_system(tmp_path: Path, repository: Path, name: str) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_bytes((repository / "ops.yaml").read_bytes())
    command = [sys.executable, "-m", "gradsmith_codegen", "generate", "--schema", str(path), "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": str(repository / "codegen")}
    for check in ([], ["--check"]):
        result = subprocess.run([*command, *check], cwd=tmp_path, env=environment, check=False, capture_output=True)
        assert (result.returncode, result.stderr) == (0, b"")


def test_a_depfile_cannot_name_a_file_of_two_lines(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="line's end"):
        depfile(tmp_path / "stamp", [tmp_path / "a\nb"])
