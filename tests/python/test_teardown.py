"""How the package ends, and what there can be but one of: exit, sub-interpreters, modules that are imported anew."""

from __future__ import annotations

import importlib.util

import processes
import pytest

WITHIN = {
    "a call": "call()",
    "a call of many threads": "call(context=g.Context(threads=3))",
    "a shape that is refused": "call(strides=(0,) * 99)",
    "an array's own code": "g.conv(Slow(X), W)",
    "what tells an array's device": "g.conv(SlowPlace(X), W)",
    "names of outputs": "call(outputs=slowly('Y', 'Y'))",
    "an attribute": "call(strides=[SlowInt(1), 1])",
    "a number": "g.batch_normalization(X, *[np.ones(8)] * 4, epsilon=SlowFloat(1))",
    "a sentence": "call(group=SlowRepr())",
    "the search of a library": "g.conv(type('New', (np.ndarray,), {'__module__': SlowText()})((1, 8, 9, 9)), W)",
    "a problem": "g.tune('Conv float X=9x64x40x40 W=64x64x3x3', device='cpu')",
    "outputs that are adopted": "g.conv(Bare(X), Bare(W))",
}
"""What daemon threads do, over and over, when the interpreter ends."""

EXIT = """
import sys, threading, time
import numpy as np
import gradsmith as g

X, W = np.ones((8, 8, 40, 40)), np.ones((8, 8, 3, 3))
sys.setswitchinterval(1e-5)

def call(**told):
    return g.conv(X, W, **told)

def slowly(*names):
    for name in names:
        time.sleep(0.002)
        yield name

class Bare:
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)
    def __dlpack_device__(self):
        return (1, 0)

class Slow(Bare):
    def __dlpack__(self, **keywords):
        time.sleep(0.002)
        return self.array.__dlpack__(**keywords)

class SlowPlace(Bare):
    def __dlpack_device__(self):
        time.sleep(0.002)
        return (1, 0)

class SlowInt:
    def __init__(self, value):
        self.value = value
    def __index__(self):
        time.sleep(0.002)
        return 1

class SlowFloat(SlowInt):
    def __float__(self):
        time.sleep(0.002)
        return 1.0

class SlowRepr:
    def __repr__(self):
        time.sleep(0.002)
        return "slow"

class SlowText:
    def __str__(self):
        time.sleep(0.002)
        return "text"

def forever():
    while True:
        started.set()
        try:
            WITHIN
        except (TypeError, ValueError):
            pass

started = threading.Event()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
started.wait()
time.sleep(0.02 + float(sys.argv[1]))
sys.exit(7)
"""


@pytest.mark.parametrize("within", WITHIN)
def test_exit_does_not_wait_for_daemon_threads(within: str) -> None:
    code = EXIT.replace("WITHIN", WITHIN[within])
    for turn in range(2):
        done = processes.run(code, str(0.003 * turn))
        assert (done.returncode, done.stderr) == (7, "")


def test_exit_does_not_wait_for_daemon_threads_with_arrays_that_are_read_through_dlpack() -> None:
    pytest.importorskip("array_api_strict")
    code = EXIT.replace("WITHIN", "g.conv(s.asarray(X), s.asarray(W))").replace(
        "import gradsmith as g", "import gradsmith as g, array_api_strict as s"
    )
    done = processes.run(code, "0")
    assert (done.returncode, done.stderr) == (7, "")


def test_calls_are_made_while_the_interpreter_ends() -> None:
    told = processes.check(
        """
        import atexit, threading
        import numpy as np

        def call():
            print(gradsmith.conv(np.ones((1, 1, 3)), np.ones((1, 1, 2))).Y.tolist())

        def call_elsewhere():
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()

        atexit.register(call)
        import gradsmith
        atexit.register(call_elsewhere)

        class Late:
            def __del__(self, call=call):
                call()
        late = Late()
        late.cycle = late
        """
    )
    assert told.splitlines() == ["[[[2.0, 2.0]]]"] * 3


SUBINTERPRETERS = next((one for one in ("_xxsubinterpreters", "_interpreters") if importlib.util.find_spec(one)), None)

SUBINTERPRETER = """
import sys
import {module} as interpreters

def run(code):
    one = interpreters.create()
    try:
        interpreters.run_string(one, code)
    finally:
        interpreters.destroy(one)

IMPORT = '''
try:
    import {imported}
except ImportError as error:
    print(error, flush=True)
else:
    print("imported", flush=True)
'''
"""
REFUSED = "gradsmith cannot be imported in a sub-interpreter; expected the main interpreter"


@pytest.mark.skipif(SUBINTERPRETERS is None, reason="this Python has no module for sub-interpreters")
@pytest.mark.parametrize("imported", ["gradsmith", "gradsmith._core", "gradsmith.cache"])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_sub_interpreter_is_refused_and_does_no_harm(imported: str, is_first: bool) -> None:
    code = SUBINTERPRETER.format(module=SUBINTERPRETERS, imported=imported)
    code += """
if sys.argv[1] == "True":
    run(IMPORT)
import numpy as np
import gradsmith as g
X, W = np.ones((1, 1, 3)), np.ones((1, 1, 2))
for _ in range(2):
    print(g.conv(X, W, context=g.Context(threads=2)).Y.tolist(), flush=True)
    run(IMPORT)
print(g.conv(X, W).Y.tolist())
"""
    right = "[[[2.0, 2.0]]]"
    expected = [right, REFUSED, right, REFUSED, right]
    assert processes.check(code, str(is_first)).splitlines() == ([REFUSED, *expected] if is_first else expected)


PURGE = """
import gc, importlib, sys
import numpy as np
import gradsmith

X, W = np.ones((1, 1, 3)), np.ones((1, 1, 2))

def check(package):
    Y = package.conv(X, W, context=package.Context(threads=2)).Y
    assert Y.tolist() == [[[2, 2]]], Y
    with package.policy(threads=1):
        assert package.conv(X, W).Y.tolist() == [[[2, 2]]]
    class New(np.ndarray):
        pass
    assert package.conv(X.view(New), W).Y.tolist() == [[[2, 2]]]
    try:
        package.conv(X, W, strides=(0,))
    except ValueError as error:
        assert "strides is [0]" in str(error)
    else:
        raise AssertionError
    assert package.explain("Conv", "float").startswith("Conv(float) on cpu is there")
    assert len(package.ops()) > 3
    package.cache.choices()

def purge(of=lambda name: True):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gradsmith" and of(name)]:
        del sys.modules[name]

check(gradsmith)
"""


@pytest.mark.parametrize(
    "code",
    [
        "first = gradsmith; purge(); import gradsmith; check(gradsmith); check(first); check(gradsmith)",
        "del gradsmith; purge(); gc.collect(); import gradsmith; check(gradsmith)",
        "for _ in range(3):\n    purge(); gc.collect(); import gradsmith; check(gradsmith)",
        "purge(lambda name: name == 'gradsmith._core'); import gradsmith; check(gradsmith)",
        "purge(lambda name: name == 'gradsmith._core'); import gradsmith._core; check(gradsmith)",
        "purge(lambda name: name == 'gradsmith'); import gradsmith; check(gradsmith)",
        "purge(lambda name: name != 'gradsmith._core'); import gradsmith; check(gradsmith)",
        "importlib.reload(gradsmith); check(gradsmith)",
        "importlib.reload(gradsmith._core); check(gradsmith)",
        "context = gradsmith.Context(); purge(); import gradsmith; del context; gc.collect(); check(gradsmith)",
    ],
)
def test_modules_may_be_imported_anew(code: str) -> None:
    assert processes.run(PURGE + code).stderr == ""
    processes.check(PURGE + code)


@pytest.mark.parametrize("order", ["list(names)", "reversed(names)", "sorted(names)"])
def test_all_modules_may_be_reloaded(order: str) -> None:
    """Policies are those of the `with` that a call is within, whichever module is from before."""
    processes.check(
        PURGE
        + f"""
names = [name for name in sys.modules if name.partition(".")[0] == "gradsmith"]
first = gradsmith.conv, gradsmith.policy, gradsmith.Context
for name in {order}:
    try:
        importlib.reload(sys.modules[name])
    except ImportError as error:
        assert name == "gradsmith._policy", name
        assert "cannot be reloaded; reload gradsmith, or start a new process" in str(error)
    else:
        assert name != "gradsmith._policy"
    check(gradsmith)
from gradsmith import _policy
for call, policy, Context in (first, (gradsmith.conv, gradsmith.policy, gradsmith.Context)):
    with policy(threads=1) as context:
        assert _policy.current() is context
    assert call(X, W, context=Context()).Y.tolist() == [[[2, 2]]]
"""
    )
