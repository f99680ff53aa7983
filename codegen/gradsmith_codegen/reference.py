"""Pages of the browsable reference: what the generator writes, with examples, and how calls are computed.

They are made apart from what a build generates, which is to take no time for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import render, special_values
from .artefacts import Artefact
from .cpp_example import cpp_example
from .explain_verb import patterns_of
from .explanation import Explanation, explanation
from .kernel_headers import KernelHeaders
from .plan import Plan
from .python_names import PythonPlan


@dataclass(frozen=True)
class Page:
    name: str  # of its file, without an ending
    text: str  # Markdown
    about: Explanation


def pages(plan: Plan, headers: KernelHeaders) -> list[Page]:
    """Of every operator, in the schema's order."""
    found = []
    for op, python in zip(plan.ops, PythonPlan(plan).ops, strict=True):
        about = explanation(op, plan, patterns=patterns_of(op.op.kernel, headers))
        context = {
            "plan": plan,
            "op": op,
            "told": about,
            "notes": special_values.notes(op.op),
            "example": cpp_example(op),
            "python": python.example if plan.library.is_builtin else None,
        }
        artefact = Artefact(op.page, "reference_page.md.jinja", context, 0)
        ((name, text),) = render.render([artefact])
        found.append(Page(name, text, about))
    return found
