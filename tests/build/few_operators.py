"""ops.yaml with some of its operators, for tests of what is made of each alike: few of them, or as many as it takes to
say all that the schema says of any."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

OF_FORMULAS = 6  # the first of them, which differ most
OF_ROWS = 2  # the first whose formulas reduce: an operator and its gradient


def few_operators(also: Iterable[str] = ()) -> str:
    """The schema with each family's first operator and its gradients, some that have formulas, and those named."""
    head, entries = head_and_entries()
    numbers = numbers_of(entries)
    return head + whole(entries, wanted_of_few(entries) + [numbers[name] for name in also])


def covering_operators() -> str:
    """The few, those that handwritten tests name, and others until all that the schema says of any operator is there:
    each function of a formula, each key, each type. The others have two rows at most: rows share their code."""
    head, entries = head_and_entries()
    named = names_in_tests()
    wanted = wanted_of_few(entries) + [number for name, number in numbers_of(entries).items() if name in named]
    with_all_rows = needed(entries, wanted)
    numbers = numbers_of(entries)
    for number, entry in enumerate(entries):
        if number not in with_all_rows:  # a gradient has the rows of its forward operator
            entries[number] = with_two_rows(entry, numbers.get(gradient_of(entry), number))
    said = [what_is_said(entry) for entry in entries]
    left = set().union(*said).difference(*(said[number] for number in wanted))
    while left:
        number = max(range(len(entries)), key=lambda number: len(said[number] & left))
        wanted.append(number)
        left -= said[number]
    return head + whole(entries, wanted)


def names_in_tests() -> set[str]:
    """The words in handwritten tests that may be operators' names; those of what is built without a GPU."""
    folders = (REPOSITORY / "tests" / name for name in ("runtime", "fuzz"))
    sources = [path for folder in folders for path in folder.rglob("*.cc") if not {"cuda", "onednn"} & set(path.parts)]
    word = re.compile(r'(?:"|::)([A-Z]\w+)|\b([A-Z]\w+)(?=[<(])')
    return {name for path in sources for names in word.findall(path.read_text(encoding="utf-8")) for name in names}


def with_two_rows(entry: str, number: int) -> str:
    """An operator's first row and another, which one by its number; all, where others have them by an anchor."""
    found = re.search(r"^    rows:(?: \*(\w+)$|$)(\n(?:      .*\n)*)", entry, re.MULTILINE)
    rows = (rows_of_anchor(found[1]) if found[1] else found[2]).strip("\n").splitlines() if found else []
    if found is None or len(rows) <= 2:
        return entry
    first, *others = rows
    return entry.replace(found[0], "\n".join(["    rows:", first, others[number % len(others)], ""]))


@cache
def rows_of_anchor(name: str) -> str:
    _, entries = head_and_entries()
    (rows,) = re.findall(rf"^    rows: &{name}\n((?:      .*\n)+)", "".join(entries), re.MULTILINE)
    return str(rows)


def head_and_entries() -> tuple[str, list[str]]:
    """The text of ops.yaml before its operators, and that of each of them."""
    head, *entries = re.split(r"^(?=  - name: )", (REPOSITORY / "ops.yaml").read_text(encoding="utf-8"), flags=re.M)
    return head, entries


def wanted_of_few(entries: list[str]) -> list[int]:
    wanted = [number for number, entry in enumerate(entries) if "\n    formulas:" in entry][:OF_FORMULAS]
    wanted += [number for number, entry in enumerate(entries) if reduces(entry)][:OF_ROWS]
    numbers = numbers_of(entries)
    wanted.append(numbers["SoftmaxGrad"])
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        family = re.search(r"^    kernel: (\w+)::", entry, re.MULTILINE)
        if family and seen.setdefault(family[1], number) in (number, numbers.get(gradient_of(entry))):
            wanted.append(number)
    return wanted


def whole(entries: list[str], wanted: list[int]) -> str:
    """The entries of the numbers, and those that they need."""
    return "".join(entries[number] for number in sorted(needed(entries, wanted)))


def needed(entries: list[str], wanted: list[int]) -> set[int]:
    """The numbers, and those of what they need: the forward operator, and whatever one is an alias of."""
    numbers = numbers_of(entries)
    left = list(wanted)
    kept: set[int] = set()
    while left:
        number = left.pop()
        if number in kept:
            continue
        kept.add(number)
        if gradient_of(entries[number]):
            left.append(numbers[gradient_of(entries[number])])
        for alias in re.findall(r"[:\[ ]\*(\w+)", re.sub(r'"[^"]*"', "", entries[number])):
            left += [at for at, entry in enumerate(entries) if re.search(rf"&{alias}\b", entry)]
    return kept


def what_is_said(entry: str) -> set[str]:
    """Keys of the schema, types, dims that hang on an attribute, gradients of several inputs, of formulas functions,
    comparisons and pi, and seams at infinity."""
    code = re.sub(r'^    doc: .*(?:\n      .*)*|\bdoc: "(?:\\.|[^"])*"| # .*$', "", entry, flags=re.MULTILINE)
    words = set(re.findall(r"\b\w+\(|\bpi\b| (?:[<>]=?|[=!]=) | if |gradient_of: \[", code))
    words |= {"inf"} if re.search(r"\bat: \{[^{}]*\binf\b", code) else set()
    words |= {f"{key}:" for key in re.findall(r"(\w+):", code) if key in schema_keys()}
    return words | set(re.findall(r"\b(?:float|double|MLFloat16|bf16|u?int\d+|bool)\b", code))


@cache
def schema_keys() -> set[str]:
    """Those of ops.yaml, by the schema that editors have of it."""
    text = (REPOSITORY / "ops.schema.json").read_text(encoding="utf-8")
    return set(re.findall(r'^ *"(\w+)": \{', text, re.MULTILINE))


def reduces(entry: str) -> bool:
    """Whether formulas of an entry name the dims of a mean."""
    formulas = re.search(r"^    formulas:.*(?:\n      .*)*", entry, re.MULTILINE)
    return formulas is not None and re.search(r"\bmean\(.+, [A-Z]\)", formulas[0]) is not None


def numbers_of(entries: list[str]) -> dict[str, int]:
    """Where the entry of each operator is, by its name."""
    return {entry.removeprefix("  - name: ").partition("\n")[0]: number for number, entry in enumerate(entries)}


def gradient_of(entry: str) -> str:
    found = re.search(r"^    gradient_of: (\w+)$", entry, re.MULTILINE)
    return found[1] if found and found[1] != "none" else ""


def main(which: str, output: Path) -> None:
    """Writes the schema where it is not yet as it would be: builds of it stay up to date."""
    text = {"few": few_operators, "covering": covering_operators}[which]()
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
