"""ops.yaml with as few of its operators as show all that there is of them: for tests of what is made of each alike."""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

OF_FORMULAS = 6  # the first of them, which differ most
OF_ROWS = 2  # the first whose formulas reduce: an operator and its gradient


def few_operators() -> str:
    """The schema with each family's first operator and its gradients, some that have formulas, and what those share.

    An entry is whole: its gradient's forward operator, and whatever it is an alias of, are there as well.
    """
    text = (REPOSITORY / "ops.yaml").read_text(encoding="utf-8")
    head, *entries = re.split(r"^(?=  - name: )", text, flags=re.MULTILINE)
    kept: set[int] = set()
    wanted = [number for number, entry in enumerate(entries) if "\n    formulas:" in entry][:OF_FORMULAS]
    wanted += [number for number, entry in enumerate(entries) if reduces(entry)][:OF_ROWS]
    wanted += [number for number, entry in enumerate(entries) if entry.startswith("  - name: SoftmaxGrad\n")]
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        family = re.search(r"^    kernel: (\w+)::", entry, re.MULTILINE)
        if family and seen.setdefault(family[1], number) in (number, number_of(entries, gradient_of(entry))):
            wanted.append(number)
    while wanted:
        number = wanted.pop()
        if number in kept:
            continue
        kept.add(number)
        if gradient_of(entries[number]):
            wanted.append(number_of(entries, gradient_of(entries[number])))
        for alias in re.findall(r"[:\[ ]\*(\w+)", re.sub(r'"[^"]*"', "", entries[number])):
            wanted += [at for at, entry in enumerate(entries) if re.search(rf"&{alias}\b", entry)]
    return head + "".join(entries[number] for number in sorted(kept))


def reduces(entry: str) -> bool:
    """Whether formulas of an entry name the dims of a mean."""
    formulas = re.search(r"^    formulas:.*(?:\n      .*)*", entry, re.MULTILINE)
    return formulas is not None and re.search(r"\bmean\(.+, [A-Z]\)", formulas[0]) is not None


def gradient_of(entry: str) -> str:
    found = re.search(r"^    gradient_of: (\w+)$", entry, re.MULTILINE)
    return found[1] if found else ""


def number_of(entries: list[str], op: str) -> int:
    """Where the entry of an op is; -1 where there is none."""
    return next((at for at, entry in enumerate(entries) if entry.startswith(f"  - name: {op}\n")), -1)


def main(output: Path) -> None:
    """Writes the schema where it is not yet as it would be: builds of it stay up to date."""
    text = few_operators()
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
