"""bench/operator_cost.py: it compiles by a build's own commands, and what it tells is the difference."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import operator_cost
import pytest
from build_tree import REPOSITORY, configure


@pytest.mark.skipif(shutil.which("ninja") is None, reason="there is no ninja")
def test_an_operator_costs_and_one_that_is_there_already_does_not(tmp_path: Path) -> None:
    configure(REPOSITORY, tmp_path, "Ninja", f"-DPython3_EXECUTABLE={sys.executable}")
    script = [sys.executable, str(REPOSITORY / "bench/operator_cost.py"), "--build", str(tmp_path)]
    told = subprocess.run([*script, "Relu", "Mish+MishGrad"], check=True, text=True, capture_output=True).stdout
    none, both = re.findall(r"^(\S+): (-?[\d.]+) s \(-?0\.0 of kernels\), (-?\d+) KB$", told, re.MULTILINE)
    assert (none[0], none[2]) == ("Relu", "0")
    assert both[0] == "Mish+MishGrad"
    assert int(both[2]) > 1  # the difference of seconds may be less than what they vary by


def test_seconds_are_those_that_a_processor_was_busy() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass"
    assert operator_cost.seconds_of([sys.executable, "-c", work]) >= 0.3
    assert operator_cost.seconds_of([sys.executable, "-c", "import time; time.sleep(1)"]) < 1
