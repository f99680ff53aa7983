"""Code that may take its process down, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

PATIENCE = 300
"""Seconds after which a process counts as one that never ends."""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code, with this folder's modules at hand, and without what the user's cache remembers."""
    paths = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *arguments],
        env={**os.environ, "GRADSMITH_CACHE": "off", **environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def check(code: str, *arguments: str, **environment: str) -> str:
    """What the code prints, where it ends well."""
    done = run(code, *arguments, **environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
