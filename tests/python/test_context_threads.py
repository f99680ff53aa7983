"""The threads of contexts on the CPU: they are shared by those who want as many, and end with the last of them."""

import gc
import os
import time

import gradsmith
import numpy as np

X = np.ones((8, 16, 24, 24))
W = np.ones((16, 16, 3, 3))


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _comes_to(threads: int) -> bool:
    """Whether there are so many threads in the end: one that was joined may be listed for a moment."""
    end = time.monotonic() + 60
    while _threads() != threads and time.monotonic() < end:
        time.sleep(0.01)
    return _threads() == threads


def test_threads_end_with_the_last_context_that_uses_them() -> None:
    expected = gradsmith.conv(X, W).Y
    gc.collect()
    before = _threads()
    for threads in range(30, 60):
        with gradsmith.Context(threads=threads):
            assert np.array_equal(gradsmith.conv(X, W).Y, expected)
    gc.collect()
    assert _comes_to(before)


def test_contexts_that_want_as_many_threads_share_them() -> None:
    before = _threads()
    contexts = [gradsmith.Context(threads=21) for _ in range(5)]
    for context in contexts:
        gradsmith.conv(X, W, context=context)
        gradsmith.conv(X, W, context=context.preparing())
    assert _comes_to(before + 20)
    del contexts[1:], context
    gc.collect()
    gradsmith.conv(X, W, context=contexts[0])
    assert _comes_to(before + 20)
    contexts.clear()
    gc.collect()
    assert _comes_to(before)
