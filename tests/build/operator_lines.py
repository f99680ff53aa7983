"""How many lines each operator costs, all told: PYTHONPATH=codegen python3 tests/build/operator_lines.py

Counted are lines with more on them than a comment; a sentence in an entry is one, however long it is. An operator that
has formulas is its entry of `ops.yaml` and its line in the table of JAX's functions. One on a kernel pattern
(`runtime/patterns`) is its entry, and its share of its family's folder, oracle and tests, which the family's operators
have in common. Families on no pattern are not counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gradsmith_codegen.cpp_names import snake_case

REPOSITORY = Path(__file__).resolve().parents[2]

_ENTRY = re.compile(r"^  - name: (\w+)$", re.MULTILINE)


def code_lines(text: str) -> int:
    """Of C++."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def entry_lines(text: str) -> int:
    """Of YAML."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def entries() -> dict[str, str]:
    """The text of each operator's entry."""
    _, *parts = _ENTRY.split((REPOSITORY / "ops.yaml").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def family_of(entry: str) -> str:
    """Empty where the entry has formulas."""
    kernel = re.search(r"^    kernel: (\w+)::", entry, re.MULTILINE)
    return kernel[1] if kernel else ""


def family_files(family: str) -> Iterator[Path]:
    """What its operators have in common: kernels on the CPU and the GPU, oracle, and tests."""
    for pattern in (f"runtime/{family}/**/*", f"tests/reference/{family}*", f"tests/runtime/**/{family}_*test.cc"):
        found = sorted(path for path in REPOSITORY.glob(pattern) if path.suffix in (".h", ".cc", ".cu", ".cuh"))
        if not found:
            raise FileNotFoundError(f"family {family} has no {pattern}")
        yield from found


def is_on_a_pattern(family: str) -> bool:
    return any('#include "patterns/' in path.read_text(encoding="utf-8") for path in family_files(family))


def lines_of_peer(name: str) -> int:
    """In the table of what JAX calls the forward operators."""
    table = (REPOSITORY / "tests/python/test_against_jax.py").read_text(encoding="utf-8")
    return len(re.findall(rf'^    "{snake_case(name)}": ', table, re.MULTILINE))


def count() -> tuple[dict[str, int], dict[str, int]]:
    """The lines of operators that have formulas, and of those on a pattern."""
    known = entries()
    families = Counter(family_of(entry) for entry in known.values())
    on_patterns = {family for family in families if family and is_on_a_pattern(family)}
    shared = {
        family: sum(code_lines(path.read_text(encoding="utf-8")) for path in family_files(family)) / families[family]
        for family in on_patterns
    }
    with_formulas, others = {}, {}
    for name, entry in known.items():
        family = family_of(entry)
        if not family:
            with_formulas[name] = 1 + entry_lines(entry) + lines_of_peer(name)
        elif family in on_patterns:
            others[name] = 1 + entry_lines(entry) + round(shared[family])
    return with_formulas, others


def main() -> int:
    for counted in count():
        for name, lines in counted.items():
            print(f"{lines:4} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
