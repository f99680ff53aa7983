"""The program gpu_benchmark, as it is started and stepped through its cases."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Program:
    """gpu_benchmark, and the environment in which it finds cuDNN."""

    def __init__(self, path: Path, cudnn: str) -> None:
        self.path = path
        self.environment = dict(os.environ)
        if cudnn:
            self.environment["GRADSMITH_CUDNN_LIBRARY"] = cudnn
            folders = [str(Path(cudnn).parent), *library_folders(Path(cudnn)), os.environ.get("LD_LIBRARY_PATH", "")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))

    def lines(self, *arguments: str, cache: Path | None = None) -> list[dict[str, Any]]:
        environment = self.environment | ({"GRADSMITH_CACHE": str(cache) if cache else "off"})
        command = [str(self.path), *arguments]
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in output.stdout.splitlines()]

    def steps(self, arguments: list[str], deadline: float, case_limit: float = math.inf) -> Iterator[dict[str, Any]]:
        """One line for each case, measured when it is asked for; none after the deadline but the last, which counts.
        Where the program dies, or is ended as a line took longer than the limit, the last says so."""
        command = [str(self.path), "--step", *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, env=self.environment, text=True, **pipes) as process:  # type: ignore[call-overload]
            while True:
                line = next_line(process, case_limit)
                if line["kind"] == "end":
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.close()
                    yield line
                    break
                yield line
                with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended, and its last line is to be read
                    if time.monotonic() < deadline:
                        print("go", file=process.stdin, flush=True)
                    else:
                        process.stdin.close()


def next_line(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
    timer.start()
    try:
        text = process.stdout.readline() if process.stdout else ""
    finally:
        timer.cancel()
    if not text.endswith("\n"):
        return {"kind": "end", "died": True, "late": late.is_set()}
    line: dict[str, Any] = json.loads(text)
    return line


def library_folders(cudnn: Path) -> list[str]:
    """Where pip has the libraries that its cuDNN needs: site-packages/nvidia/*/lib."""
    nvidia = cudnn.parent.parent.parent
    return sorted(str(folder) for folder in nvidia.glob("*/lib")) if nvidia.name == "nvidia" else []


def cudnn_of_torch() -> str:
    try:
        folders = list(importlib.import_module("nvidia.cudnn").__path__)
    except ImportError:
        return ""
    found = [path for folder in folders for path in Path(folder).glob("lib/libcudnn.so.9*")]
    return str(sorted(found)[0]) if found else ""
