"""Whether results are right: small cases, run by the program and saved, against PyTorch in float64 on the CPU."""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_kinds import kinds
from gpu_peer import first_line
from gpu_program import Program
from gpu_suites import case_name, read_suite

# Each kind of benchmark has a heading, shapes and types of small cases.
CHECK_SUITES = {
    name: (kind.checks.heading, kind.checks.shapes, kind.checks.types) for name, kind in kinds().items() if kind.checks
}


class Checker:
    """Small cases, run by the program and saved, against float64 on the CPU."""

    def __init__(self, program: Program) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.aten: Any = self.torch.ops.aten
        self.program = program

    def check_all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for kind, (heading, shapes, types) in CHECK_SUITES.items():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                suite = folder / "suite.tsv"
                lines = [f"{s}\t{t}\t{layout}" for s in shapes for t in types for layout in ("NCHW", "NHWC")]
                suite.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
                cases = {case_name(case): case for case in read_suite(suite)}
                arguments = ["--suite", str(suite), "--save", name, "--samples", "1", "--budget", "0.1"]
                for line in self.program.steps(arguments, time.monotonic() + 90):
                    if line["kind"] == kind:
                        found += self.check(cases[line["name"]], line, folder)
        return found

    def check(self, case: dict[str, str], line: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
        if "error" in line:
            return [{"name": line["name"], "ok": False, "error": None, "text": line["error"]}]
        try:
            checks = kinds()[line["kind"]].checks
            pairs = checks.outputs(self, case, folder) if checks else {}
        except (OSError, RuntimeError, TypeError, ValueError) as failure:
            return [{"name": line["name"], "ok": False, "error": None, "text": first_line(failure)}]
        results = []
        for output, (value, expected, limit) in pairs.items():
            error = float((value - expected).norm() / expected.norm())
            shown = error if math.isfinite(error) else None
            results.append({"name": f"{line['name']} {output}", "ok": error <= limit, "error": shown, "limit": limit})
        return results

    def read(self, folder: Path, name: str, dims: list[int], dtype: str, last: bool) -> Any:
        data = bytearray((folder / f"{name}.bin").read_bytes())
        flat = self.torch.frombuffer(data, dtype=getattr(self.torch, dtype)).double()
        return flat.view(dims[0], *dims[2:], dims[1]).movedim(-1, 1).contiguous() if last else flat.view(dims)
