"""Which texts of the generator's sources are made when it reads the bad files.

A text is a constant that functions load and that has words in it, a part of an f-string included. As a program, this
writes the places of those that are said, for what is remembered between calls would hide some from a trace of a test.
"""

from __future__ import annotations

import dis
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "codegen/gradsmith_codegen"
BAD = Path(__file__).parent / "bad"

Place = tuple[str, int, int]  # a file below SOURCES, a line, a column


def codes(code: CodeType) -> Iterator[CodeType]:
    """Those of functions, and of what is in functions; not what a module or a class does at once."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_flags & 2:  # it has variables of its own
                yield one
            yield from codes(one)


def is_text(value: object) -> bool:
    return isinstance(value, str) and " " in value.strip()


def texts_of(code: CodeType) -> dict[int, tuple[int, int, str]]:
    """By the place of an instruction in the code, where the text stands."""
    return {
        one.offset: (one.positions.lineno or 0, one.positions.col_offset or 0, str(one.argval))
        for one in dis.get_instructions(code)
        if one.positions and is_text(one.argval)
    }


def texts(source: Path) -> dict[Place, str]:
    name = source.relative_to(SOURCES).as_posix()
    compiled = compile(source.read_text(encoding="utf-8"), str(source), "exec")
    found = [one for code in codes(compiled) for one in texts_of(code).values()]
    return {(name, line, column): text for line, column, text in found}


class Listener:
    """Follows instruction by instruction the functions that have texts, and no others."""

    def __init__(self) -> None:
        self.said: set[Place] = set()
        self._texts: dict[CodeType, dict[int, tuple[int, int, str]]] = {}

    def called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code not in self._texts:
            is_own = code.co_filename.startswith(str(SOURCES))
            self._texts[code] = texts_of(code) if is_own and code.co_flags & 2 else {}
        if not self._texts[code]:
            return None
        frame.f_trace_opcodes = True
        return self.stepped

    def stepped(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        found = self._texts[frame.f_code].get(frame.f_lasti) if event == "opcode" else None
        if found:
            name = Path(frame.f_code.co_filename).relative_to(SOURCES).as_posix()
            self.said.add((name, *found[:2]))
        return self.stepped


def main() -> None:
    sys.path[:0] = [str(SOURCES.parent), str(Path(__file__).parent)]
    from gradsmith_codegen.diagnostics import format_text
    from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
    from gradsmith_codegen.loader import read_source
    from gradsmith_codegen.reader import load_source
    from schemas import KERNELS

    os.chdir(BAD)
    listener = Listener()
    sys.settrace(listener.called)
    headers = KernelHeaders([KERNELS, RUNTIME])
    for path in [Path("missing.yaml"), *sorted(Path().glob("*.yaml"))]:
        source, diagnostics = read_source(path)
        if not diagnostics:
            _, diagnostics = load_source(source, headers=headers)
        format_text(diagnostics, source)
    sys.settrace(None)
    print(json.dumps(sorted(listener.said)))


if __name__ == "__main__":
    main()
