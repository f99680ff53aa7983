"""The headers that programs include."""

from __future__ import annotations

import re
from pathlib import Path


def headers_of(include: Path) -> list[str]:
    return sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))


def one_of_each(include: Path) -> list[str]:
    """Of headers that include the same and use the same names of others, which a template writes for one operator after
    the other, the first: each takes a second to compile. gradsmith/ops.h includes them all."""
    alike: dict[tuple[str, ...], str] = {}
    for header in headers_of(include):
        text = (include / header).read_text(encoding="utf-8")
        code = re.sub(r"//.*", "", text)
        key = (*re.findall(r"^#include .*", text, re.MULTILINE), *sorted(set(re.findall(r"\b\w+::\w+", code))))
        alike.setdefault(key, header)
    assert "gradsmith/ops.h" in alike.values()
    assert any(header.startswith("gradsmith/ops/") for header in alike.values())
    return list(alike.values())
