"""Gradsmith's generator: from `ops.yaml` to typed headers, a dispatch table, tests and reference pages.

Reading order, which is also the order of the data: `loader` (text to YAML nodes that know where they stand),
`reader` (nodes to the frozen dataclasses of `model`), `checks` (what must hold of them), `plan`, `render` and
`files`, which `output` leads through; `cli` wires them together. It and `tables` alone print, it alone exits.
Problems travel as values: see `diagnostics`.
"""

__version__ = "0.1.0"
