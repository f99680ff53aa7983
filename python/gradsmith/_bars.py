"""Lines on a terminal that show how long work goes; elsewhere nothing is written."""

from __future__ import annotations

import os
from typing import TextIO

_DEFAULT_COLUMNS = 80


class Line:
    """A line that is written over. It is cut to the terminal's width, for one that wraps cannot be written over."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._is_open = False

    def show(self, text: str) -> None:
        if self._stream:
            self._stream.write(f"\r\x1b[K{text[: _columns(self._stream) - 1]}")
            self._stream.flush()
            self._is_open = True

    def clear(self) -> None:
        self._close("\r\x1b[K")

    def end(self) -> None:
        """Leaves what was shown last."""
        self._close("\n")

    def _close(self, text: str) -> None:
        if self._stream and self._is_open:
            self._stream.write(text)
            self._stream.flush()
            self._is_open = False


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_COLUMNS
    except (OSError, ValueError):  # a terminal that is none of the system's
        return _DEFAULT_COLUMNS


class CountBar:
    """Which of how many problems is at work."""

    def __init__(self, stream: TextIO | None, total: int) -> None:
        self._line = Line(stream)
        self._total = total
        self._done = 0

    def show(self, what: str) -> None:
        self._done += 1
        self._line.show(f"[{self._done}/{self._total}] {what}")

    def clear(self) -> None:
        self._line.clear()
