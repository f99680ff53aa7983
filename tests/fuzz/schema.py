"""Whatever stands in a schema's file, the answer is a schema, from which all files can be written, or diagnostics."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from fuzzing import CODEGEN_TESTS, REPOSITORY, bytes_changed, lines_changed, main
from gradsmith_codegen import plan, render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.diagnostics import Diagnostic, Severity, Source, format_json, format_text
from gradsmith_codegen.loader import read_source
from gradsmith_codegen.reader import load_source
from schemas import CONVOLVE, HEADERS, SCALE

# What means something in YAML or in a schema, or looks as if it did.
SNIPPETS = [
    *("no", "010", "1_000", "12:30", "1e3", "~", "''", "[]", "{}", "- a", "? b", "*conv_attributes", "&x", "!!int"),
    *("<<: *epsilon", "\t", "\x00", "\u2028", "\ufeff", "名", "*D", "C / 0", "-1", "9" * 30, "...", "---", "%", "|"),
    *(": ", ", ", "'", '"', '"""', "*/", "??/", "#", "[" * 70, "{a: " * 9, "like: X", "optional: true", "Conv", "X"),
    *("gradient_of: Y", "T", "min: 2", "D", "group", "length: D", "\\", "\r", "null", "true", "[1, 2", "SAME_UPPER"),
    *("!x", "&a *a", "EOF", "README", "Context", "{{ x }}", "{% raw %}", "\x1b[31m", "\udcff", "gradient_of: [X, Y]"),
]

# Values that mean something in another place.
VALUES: list[object] = [
    *("D", "X", "Y", "T", "N", "M", "group", "ints", "int", "enum", "AutoPad", "half", "cpu", "Convolve", "2 * D"),
    *("*D", "*K", "C / group", "conv::OutputSpatial(D)", "conv::OutputSpatial(K, D)", "pool::X", "SAME_LOWER"),
    *(0, 1, -1, 9, 1.5, 2**62, True, None, "no", [], {}, [1], [0, 0], [3, 1], [2, 4, 5, 6]),
    *(["N", "*D"], ["X", "W"], ["G", "K"]),
]
KEYS = [
    *("X", "W", "Y", "like", "optional", "gradient_of", "in_place_of", "min", "max", "length", "rule", "multiple_of"),
    *("given_by", "split"),
    *("shape", "type", "dims", "layout", "group"),
]


def _places(value: object) -> list[tuple[Any, Any]]:
    """Every container of the tree, once, with every key or index in it."""
    places: list[tuple[Any, Any]] = []
    left, seen = [value], set()
    while left:
        container = left.pop()
        if not isinstance(container, (dict, list)) or id(container) in seen:
            continue
        seen.add(id(container))
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        places += [(container, key) for key in keys]
        left += [container[key] for key in keys]
    return places


def rearranged(data: bytes, chance: random.Random) -> bytes:
    """Values missing, doubled under other keys, or of another place."""
    try:
        schema = yaml.safe_load(data)
    except Exception:
        return data  # PyYAML's own constructors raise whatever they like of what is far from a schema
    places = _places(schema)
    if not places:
        return data
    container, key = chance.choice(places)
    change = chance.randrange(4)
    if change == 0:
        del container[key]
    elif change == 1 and isinstance(container, dict):
        container[chance.choice(KEYS)] = container[key]
    else:
        container[key] = chance.choice(VALUES)
    return yaml.safe_dump(schema, sort_keys=False).encode("utf-8", "surrogatepass")


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ops.yaml"
        path.write_bytes(data)
        source, diagnostics = read_source(path)
    schema = None
    if not diagnostics:
        schema, diagnostics = load_source(source, headers=HEADERS)
    if schema is None:
        assert any(one.severity is Severity.ERROR for one in diagnostics), "neither a schema nor an error"
    _check_told(diagnostics, source)
    if schema is None:
        return
    assert all(case.all_shapes for op in schema.ops for case in op.cases)
    for name, text in render.render(artefacts(plan.make_plan(schema, 2))):
        assert ".." not in Path(name).parts and not Path(name).is_absolute(), name
        if name.endswith((".py", ".pyi")):
            compile(text, name, "exec")


def _check_told(diagnostics: list[Diagnostic], source: Source) -> None:
    """Can be told, in a bounded text, of places that there are."""
    told = format_text(diagnostics, source)
    assert bool(told) == bool(diagnostics)
    assert all(one.isprintable() or one == "\n" for one in told), "moves the terminal's cursor"
    assert len(told) < 1_000_000
    assert format_json(diagnostics, source)
    for diagnostic in diagnostics:
        for span in (diagnostic.span, *(note.span for note in diagnostic.notes)):
            assert span is None or 1 <= span.line <= len(source.lines)
            assert span is None or 1 <= span.column <= len(source.lines[span.line - 1]) + 1
            assert span is None or span.length >= 1


MUTATORS = [lines_changed(SNIPPETS), lines_changed(SNIPPETS), rearranged, bytes_changed]
SEEDS = [
    *[text.encode() for text in [CONVOLVE, SCALE] * 20],
    *[path.read_bytes() for path in [REPOSITORY / "ops.yaml", *sorted((CODEGEN_TESTS / "bad").glob("*.yaml"))]],
]

if __name__ == "__main__":
    sys.exit(main("schema", one_input, MUTATORS, 400, SEEDS))
