"""What programs get that are compiled as an older C++, or with macros that are named as something in the headers."""

from __future__ import annotations

import shutil
import string
import subprocess
from pathlib import Path

import pytest
from installed_headers import headers_of, one_of_each

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
    headers = one_of_each(prefix / "include")
    assert {"gradsmith/status.h", "gradsmith/types.h"} <= set(headers)
    for header in headers:
        assert SENTENCE in errors_as_cpp17(prefix, tmp_path, header)[0], header


# Macros of others: of X11, of Windows, of macOS and of old C, and what programs themselves like to define.
X11 = "Status None Bool True False Always Success Above Below Complex Convex CursorShape DestroyAll Expose Unsorted"
WINDOWS = "max min interface small near far ERROR IN OUT OPTIONAL CONST VOID DELETE DIFFERENCE TRUE FALSE IGNORE STRICT"
OTHERS = "check verify require major minor DEBUG INFO WARNING FATAL OVERFLOW UNDERFLOW DOMAIN VALID INVALID NOTSET SAME"
CAPITALS = " ".join(string.ascii_uppercase)
FOREIGN = [*X11.split(), *WINDOWS.split(), *OTHERS.split(), *CAPITALS.split(), "SAME_UPPER", "SAME_LOWER"]
STANDARD_LIBRARYS = {"max", "min"}  # which it takes away for good


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_macros_of_others_are_put_aside_and_brought_back(prefix: Path, tmp_path: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    numbers = {name: number for number, name in enumerate(FOREIGN, 1000)}
    defined = "".join(f"#define {name} {number}\n" for name, number in numbers.items())
    kept = "".join(f"#if {name} != {numbers[name]}\n#error {name}\n#endif\n" for name in {*numbers} - STANDARD_LIBRARYS)
    headers = [header for header in headers_of(prefix / "include") if "/foreign_macros_" not in header]
    source = tmp_path / "program.cc"
    source.write_text(defined + "".join(f"#include <{header}>\n{kept}" for header in headers))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{prefix}/include", str(source)]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr


def test_headers_follow_those_of_x11(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.cc"
    text = "#include <X11/Xlib.h>\n#include <X11/Xutil.h>\n"
    source.write_text(text)
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{prefix}/include", str(source)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("there are no headers of X11")
    call = "gradsmith::ConvGrad<float>(gradsmith::Context(), {}, {}, {}).ok()"
    source.write_text(f"{text}#include <gradsmith/gradsmith.h>\nint main() {{ return {call} ? Success : True; }}\n")
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
