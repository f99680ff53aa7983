"""Text in lines that are short enough, for the comments of C++ and the docstrings of Python."""

from __future__ import annotations

COLUMN_LIMIT = 100


def wrapped(text: str, start: str) -> str:
    """Lines that each begin with `start`, as clang-format and textwrap break them: words stay whole."""
    if len(start) + len(text) <= COLUMN_LIMIT:
        return start + text
    lines = [start]
    for word in text.split(" "):
        if word and len(lines[-1]) + len(word) > COLUMN_LIMIT and lines[-1] != start:
            lines.append(start)
        lines[-1] += f"{word} "
    return "\n".join([line.rstrip() for line in lines])
