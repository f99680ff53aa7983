"""The cache of choices, whose file may hold, and be, anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gradsmith
import processes
import pytest

HEADER = b"gradsmith decisions, format 3\n"


def line(key: int, kernel: bytes, problem: bytes) -> bytes:
    """A line of a cache's file, whose checksum is FNV-1a."""
    text = b"%x\t%s\t0\tbenchmark\t0.5\t1e-07\t%s" % (key, kernel, problem)
    checksum = 2166136261
    for byte in text:
        checksum = (checksum ^ byte) * 16777619 % 2**32
    return b"%s\t%d\n" % (text, checksum)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    file = tmp_path / "decisions.txt"
    file.write_bytes(
        HEADER
        + line(1, b"engine 1", b"a problem")
        + line(2, b"\x1b[31mred\x07", b"no UTF-8: \xff\xfe")
        + line(3, b"\xc2\x9b2J", "café \u202e".encode())
    )
    return file


def cache(*arguments: str, file: bytes | str) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environb, b"GRADSMITH_CACHE": os.fsencode(file), b"PYTHONIOENCODING": b"utf-8"}
    command = [sys.executable, "-m", "gradsmith", "cache", *arguments]
    return subprocess.run(command, env=variables, check=False, capture_output=True, timeout=processes.PATIENCE)


def is_shown_safely(output: bytes) -> bool:
    return all(one.isprintable() or one == "\n" for one in output.decode("utf-8"))


def test_texts_of_a_file_are_printable(hostile: Path) -> None:
    with gradsmith.policy(cache=hostile):
        choices = gradsmith.cache.choices()
    assert [choice.kernel for choice in choices] == ["\\xc2\\x9b2J", "\\x1b[31mred\\x07", "engine 1"]
    assert [choice.problem for choice in choices] == ["café \\xe2\\x80\\xae", "no UTF-8: \\xff\\xfe", "a problem"]


def test_the_list_reaches_a_terminal_safely(hostile: Path) -> None:
    listed = cache(file=str(hostile))
    assert listed.returncode == 0, listed.stderr
    assert is_shown_safely(listed.stdout)
    assert b"\\x1b[31mred\\x07" in listed.stdout
    told = json.loads(cache("--json", file=str(hostile)).stdout)
    assert [choice["problem"] for choice in told][1] == "no UTF-8: \\xff\\xfe"


def test_a_path_reaches_a_terminal_safely(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\x1b]0;title\x07\xff"
    for arguments in (), ("--export", os.fsdecode(file)), ("--load", os.fsdecode(file)), ("--clear",):
        told = cache(*arguments, file=file)
        assert told.returncode == 0, told.stderr
        assert told.stderr == b""
        assert is_shown_safely(told.stdout), told.stdout
    Path(os.fsdecode(file)).write_text("my thesis\n")
    told = cache(file=file)
    assert b"is not a decision file" in told.stderr
    assert is_shown_safely(told.stderr), told.stderr


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "decisions.txt"
    os.mkfifo(file)
    listed = cache(file=str(file))
    assert listed.returncode == 0
    assert b"it is a FIFO, and only regular files are opened" in listed.stderr
    for arguments in ("--export", str(file)), ("--load", str(file)), ("--clear",):
        told = cache(*arguments, file=str(file))
        assert told.returncode == 1
        assert b"it is a FIFO, and only regular files are opened" in told.stderr
    assert file.is_fifo()


def test_a_file_that_others_may_write_is_refused_but_where_it_is_loaded(hostile: Path, tmp_path: Path) -> None:
    hostile.chmod(0o666)
    with gradsmith.policy(cache=hostile):
        assert gradsmith.cache.choices() == []
        with pytest.raises(RuntimeError, match="others may write to it: its mode is 0666"):
            gradsmith.cache.clear()
    with gradsmith.policy(cache=tmp_path / "mine.txt"):
        gradsmith.cache.load(hostile)
        assert len(gradsmith.cache.choices()) == 3
        with pytest.raises(RuntimeError, match="others may write to it: its mode is 0666"):
            gradsmith.cache.export(hostile)
    assert hostile.stat().st_mode & 0o777 == 0o666
