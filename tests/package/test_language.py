"""What programs get that are compiled as an older C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

SENTENCE = "gradsmith needs C++20: compile with -std=c++20 or later"


def errors_as_cpp17(prefix: Path, folder: Path, header: str) -> list[str]:
    program = folder / "program.cc"
    program.write_text(f"#include <{header}>\n")
    command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{prefix}/include", str(program)]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    return [line for line in result.stderr.splitlines() if "error: " in line]


def test_the_whole_library_gives_one_error(prefix: Path, tmp_path: Path) -> None:
    (error,) = errors_as_cpp17(prefix, tmp_path, "gradsmith/gradsmith.h")
    assert SENTENCE in error


def test_the_first_error_of_each_header_says_why(prefix: Path, tmp_path: Path) -> None:
    headers = sorted(str(path.relative_to(prefix / "include")) for path in prefix.glob("include/gradsmith/**/*.h"))
    assert {"gradsmith/status.h", "gradsmith/types.h", "gradsmith/ops/conv.h"} <= set(headers)
    for header in headers:
        assert SENTENCE in errors_as_cpp17(prefix, tmp_path, header)[0], header
