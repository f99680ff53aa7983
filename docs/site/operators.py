"""Pages of the operators, and the index that filters them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import measured
from gradsmith_codegen.explanation import Explanation
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.reference import Page, pages

INDEX = "generated/docs/README.md"
SUPPORT = "docs/support/README.md"
_NO_PATTERN = "own"  # what the filter calls a kernel on no pattern


def sources(root: Path) -> dict[str, str]:
    """Their texts, by the paths at which the generator's own pages are."""
    schema, faults = load_schema(root / "ops.yaml")
    if schema is None:
        raise SystemExit(f"ops.yaml has faults: {faults[0].message}")
    found = pages(make_plan(schema, shards=1), KernelHeaders())
    figures = measured.of_all()
    support = (root / SUPPORT).read_text(encoding="utf-8")
    texts = {INDEX: _index([page.about for page in found])}
    for page in found:
        note = _note(root, page.about.kernel.partition("::")[0])
        texts[f"generated/docs/{page.name}.md"] = _page(page, note, figures.get(page.about.op, []), support)
    return texts


def _note(root: Path, family: str) -> str:
    """What a family of kernels has said of its operators: runtime/FAMILY/page.md, whose links lead from there, as deep
    as the operators' pages are."""
    path = root / "runtime" / family / "page.md"
    return path.read_text(encoding="utf-8").rstrip() if family and path.is_file() else ""


def _page(page: Page, note: str, figures: list[measured.Measured], support: str) -> str:
    lines = [page.text.rstrip()]
    if note:
        lines += ["", note]
    cells = cells_of(page.about.op, support)
    if cells:
        lines += ["", "## Which source serves which cell", "", *cells, ""]
        lines += ["[What the cells mean](../../docs/support/README.md), and with what they were asked."]
    if figures:
        lines += ["", "## Measured", "", *measured.table(figures), ""]
        lines += ["[How it was measured](../../docs/performance.md)."]
    return "\n".join(lines) + "\n"


def cells_of(op: str, support: str) -> list[str]:
    """The operator's lines of the tables of a page, each under its head."""
    found: list[str] = []
    for table in re.findall(r"(?:^\|.*\n)+", support, re.MULTILINE):
        head, rule, *rows = table.splitlines()
        own = [row for row in rows if row.startswith(f"| {op} |")]
        found += ["", head, rule, *own] if own else []
    return found[1:]


# ----------------------------------------------------------------------------------------------------
# The index


_INDEX = """\
# Operators

Every operator of `ops.yaml`. A combination of types that its page does not list is refused: the typed functions do not
compile for it, and `Registry::Explain` says what the nearest ones are.

<div class='operators-filter' hidden>
<label>Name <input type='search' data-facet='name' placeholder='any'></label>
{choices}
<output></output>
</div>
<div class='table-wrapper docutils container'>
<table class='docutils operators'>
<thead><tr><th>operator</th><th>types</th><th>backends</th><th>pattern</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>

The patterns: `map` computes element by element, `rows` reduces along axes, `windows` takes what a window holds. A
kernel on none of them is the operator's own. [Adding an operator](../../docs/adding-operators.md) says how to write
on one.
"""


def _index(ops: Sequence[Explanation]) -> str:
    """Without its script it is a table of all of them."""
    facets = {
        "type": sorted({one for op in ops for one in _types(op)}),
        "backend": sorted({one for op in ops for one in op.backends}),
        "pattern": sorted({one for op in ops for one in _patterns(op)}),
    }
    choices = [_choice(facet, values) for facet, values in facets.items()]
    return _INDEX.format(choices="\n".join(choices), rows="\n".join(map(_row, ops)))


def _choice(facet: str, values: Sequence[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in ("", *values))
    options = options.replace("<option></option>", "<option value=''>any</option>")
    return f"<label>{facet.capitalize()} <select data-facet='{facet}'>{options}</select></label>"


def _row(op: Explanation) -> str:
    facets = {"name": [op.op.lower()], "type": _types(op), "backend": op.backends, "pattern": _patterns(op)}
    data = " ".join(f"data-{facet}='{escape(' '.join(values))}'" for facet, values in facets.items())
    cells = [
        f"<a href='{escape(op.op)}.html'>{escape(op.op)}</a><p>{escape(op.doc)}</p>",
        escape(", ".join(_types(op))),
        escape(", ".join(op.backends)),
        escape(", ".join(_patterns(op))),
    ]
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _types(op: Explanation) -> list[str]:
    """Of what a row binds, in the order of rows."""
    return list(dict.fromkeys(one for row in op.rows for one in row.types.values()))


def _patterns(op: Explanation) -> list[str]:
    return op.patterns or [_NO_PATTERN]
