"""The files that the generator writes: where each goes, and what its template is given."""

from __future__ import annotations

from dataclasses import dataclass

from .plan import Plan
from .python_names import PythonPlan


@dataclass(frozen=True)
class Artefact:
    """A file to be: its path below the output folder, its template, and what that is given."""

    path: str
    template: str
    context: dict[str, object]
    weight: int  # about how long it takes to render and write, in 30 us


def artefacts(plan: Plan) -> list[Artefact]:
    """What the generator writes, kind by kind."""
    stubs, formulas, tests, headers, pages = [], [], [], [], []
    for shard in range(plan.shards):
        ops = plan.shard(shard)
        with_formulas = [op for op in ops if op.has_formulas]
        context = {
            "plan": plan,
            "ops": ops,
            "with_formulas": with_formulas,
            "shard": shard,
            "entries": plan.entries(ops),
        }
        stubs.append(Artefact(f"src/ops_shard_{shard}.cc", "ops_shard.cc.jinja", context, 17 * len(ops)))
        context_of_formulas = {"plan": plan, "ops": with_formulas, "shard": shard}
        for kind, weight in (("h", 6), ("cu", 2)):
            path, template = f"src/formulas_{shard}.{kind}", f"formulas_shard.{kind}.jinja"
            formulas.append(Artefact(path, template, context_of_formulas, weight * len(with_formulas)))
        path = f"tests/generated_tests_{shard}.cc"
        tests.append(Artefact(path, "generated_tests.cc.jinja", context, 7 * len(ops)))
    include = f"include/{plan.library.name}"
    for op in plan.ops:
        context = {"plan": plan, "op": op}
        headers.append(Artefact(f"{include}/ops/{op.snake}.h", "op_header.h.jinja", context, 6))
        pages.append(Artefact(f"docs/{op.page}.md", "op_page.md.jinja", context, 9))
    context, weight = {"plan": plan}, len(plan.ops) // 3
    tables = [
        Artefact(f"{include}/ops.h", "ops.h.jinja", context, weight),
        Artefact("src/dispatch_table.cc", "dispatch_table.cc.jinja", context, weight),
        Artefact("docs/README.md", "support_matrix.md.jinja", context, weight),
    ]
    operands = [
        Artefact(f"src/{one.name}/operands.h", "kernel_operands.h.jinja", {"plan": plan, "family": one}, 3)
        for one in plan.families
    ]
    operands += [
        Artefact(f"src/{one.name}/shape_rules.h", "shape_rules.h.jinja", {"plan": plan, "family": one}, 1)
        for one in plan.rules
    ]
    return [*stubs, *formulas, *tests, *headers, *pages, *tables, *operands, *_python_artefacts(plan)]


def _python_artefacts(plan: Plan) -> list[Artefact]:
    """The part of the Python package that is generated."""
    package = f"python/{plan.library.name}"
    folder = f"{package}/_ops"
    python = PythonPlan(plan)
    functions, stubs = [], []
    for op in python.ops:
        context: dict[str, object] = {"plan": plan, "op": op}
        path = f"{folder}/{op.plan.snake}_op"
        functions.append(Artefact(f"{path}.py", "python_op.py.jinja", context, 7))
        stubs.append(Artefact(f"{path}.pyi", "python_op.pyi.jinja", context, 2))
    context = {"plan": plan, "python": python}
    of_all = [
        Artefact(f"{folder}/__init__.py", "python_ops.py.jinja", context, 3 * len(plan.ops)),
        Artefact(f"{package}/torch.pyi", "python_torch.pyi.jinja", context, len(plan.ops) // 3),
    ]
    return [*functions, *stubs, *of_all]
