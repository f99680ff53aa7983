"""Writes sources of tests into one, which takes the compiler less time than each by itself.

Each of them gets a namespace of its own, so that none need know what the others declare:

    python3 unite_sources.py <united source> <source>...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NAMESPACE = re.compile(r"^namespace (gradsmith\S*) \{$", re.MULTILINE)


def united(sources: list[Path]) -> str:
    """Lines and files are told as those of the sources."""
    texts = []
    for number, source in enumerate(sources):
        text = NAMESPACE.sub(rf"namespace \1::source_{number} {{", source.read_text(encoding="utf-8"))
        texts.append(f'#line 1 "{source}"\n{text}')
    return "\n".join(texts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(united([Path(source) for source in sys.argv[2:]]), encoding="utf-8")
