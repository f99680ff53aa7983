"""The threads of contexts on the CPU: they are shared by those who want as many, and end with the last of them."""

import processes

# In a process of its own, so that no other test's threads come or go.
COUNTING = """
import gc, os, time
import gradsmith
import numpy as np

X = np.ones((8, 16, 24, 24))
W = np.ones((16, 16, 3, 3))
expected = gradsmith.conv(X, W).Y

def count():
    return len(os.listdir("/proc/self/task"))

def check(threads):
    # One that was joined may be listed for a moment.
    end = time.monotonic() + 60
    while count() != threads and time.monotonic() < end:
        time.sleep(0.01)
    assert count() == threads, f"{count()} threads; expected {threads}"

gc.collect()
before = count()
"""


def test_threads_end_with_the_last_context_that_uses_them() -> None:
    processes.check(
        COUNTING
        + """
for threads in range(30, 60):
    with gradsmith.Context(threads=threads):
        assert np.array_equal(gradsmith.conv(X, W).Y, expected)
        check(before + threads - 1)
gc.collect()
check(before)
"""
    )


def test_contexts_that_want_as_many_threads_share_them() -> None:
    processes.check(
        COUNTING
        + """
contexts = [gradsmith.Context(threads=21) for _ in range(5)]
for context in contexts:
    gradsmith.conv(X, W, context=context)
    gradsmith.conv(X, W, context=context.preparing())
check(before + 20)
del contexts[1:], context
gc.collect()
gradsmith.conv(X, W, context=contexts[0])
check(before + 20)
contexts.clear()
gc.collect()
check(before)
"""
    )
