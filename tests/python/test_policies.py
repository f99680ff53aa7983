"""Contexts: which policies a call is made under, in which thread, and that the lock is released."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradsmith
import numpy as np
import problems
import processes
import pytest
from gradsmith._policy import current, of_text


def test_policies_nest_and_end() -> None:
    assert current() == gradsmith.Context()
    with gradsmith.policy(deterministic=True):
        with gradsmith.policy(allow_tf32=True) as inner:
            assert (inner.deterministic, inner.allow_tf32) == (True, True)
            assert current() is inner
        assert current() == gradsmith.Context(deterministic=True)
    assert current() == gradsmith.Context()


def test_an_error_ends_a_policy_too() -> None:
    with pytest.raises(KeyError), gradsmith.policy(deterministic=True):
        raise KeyError
    assert current().deterministic is None


def test_equal_policies_share_one_context() -> None:
    assert gradsmith.policy(threads=2) is gradsmith.policy(threads=2)


def test_a_policy_is_its_threads_own() -> None:
    def of_thread(mode: str) -> object:
        with gradsmith.policy(search_mode=mode):
            time.sleep(0.01)
            return current().search_mode

    with gradsmith.policy(deterministic=True), ThreadPoolExecutor(4) as pool:
        modes = ["default", "heuristic", "benchmark"] * 4
        assert list(pool.map(of_thread, modes)) == modes


def test_a_context_can_be_entered_within_itself() -> None:
    context = gradsmith.Context(threads=1)
    with context, gradsmith.policy(allow_tf32=True), context:
        assert current() is context
    assert current() == gradsmith.Context()


def test_calls_take_a_context() -> None:
    for threads in (1, 2, 3):
        problems.check(gradsmith.conv_grad(*problems.arrays(), context=gradsmith.Context(threads=threads)))


def test_unknown_policies_and_modes_are_refused() -> None:
    with pytest.raises(TypeError, match="there is no policy 'determinstic'; expected deterministic, allow_tf32"):
        gradsmith.policy(determinstic=True)
    with pytest.raises(ValueError, match="search_mode is 'fast'; expected 'default', 'heuristic' or 'benchmark'"):
        gradsmith.policy(search_mode="fast")


@pytest.mark.parametrize(
    ("policies", "kind", "sentence"),
    [
        ({"deterministic": 1}, TypeError, "deterministic is 1 (int); expected True, False or None"),
        ({"allow_tf32": None}, TypeError, "allow_tf32 is None (NoneType); expected True or False"),
        ({"allow_reduced_accuracy": 1}, TypeError, "allow_reduced_accuracy is 1 (int); expected True or False"),
        ({"workspace_limit": -1}, ValueError, "workspace_limit is -1; expected a number of bytes, 0 or more"),
        ({"workspace_limit": 1 << 64}, ValueError, "expected a number of bytes"),
        ({"workspace_limit": 0.5}, TypeError, "workspace_limit is 0.5 (float); expected a number of bytes or None"),
        ({"workspace_limit": True}, TypeError, "workspace_limit is True (bool)"),
        ({"search_mode": 1}, TypeError, "search_mode is 1 (int); expected 'default', 'heuristic', 'benchmark' or"),
        ({"search_budget_seconds": "1"}, TypeError, "search_budget_seconds is '1' (str); expected a number"),
        ({"search_budget_seconds": -1.0}, ValueError, "search_budget_seconds is -1.0; expected 0 or more"),
        ({"search_budget_seconds": float("nan")}, ValueError, "search_budget_seconds is nan; expected 0 or more"),
        ({"first_choice_seconds": None}, TypeError, "first_choice_seconds is None (NoneType); expected a number"),
        ({"first_choice_seconds": -1}, ValueError, "first_choice_seconds is -1; expected 0 or more"),
        ({"threads": -1}, ValueError, "threads is -1; expected 0, for one on each processor, or more"),
        ({"threads": 1 << 40}, ValueError, "threads is 1099511627776"),
        ({"threads": "2"}, TypeError, "threads is '2' (str); expected a number of threads"),
        ({"workspace_limit": np.ones(3)}, TypeError, "(ndarray); expected a number of bytes or None"),
        ({"search_mode": "\ud800"}, ValueError, r"search_mode is '\ud800'; expected 'default'"),
        ({"on_search_progress": 3}, TypeError, "on_search_progress is 3 (int); expected a function or None"),
    ],
)
def test_policies_of_another_kind_or_out_of_range_are_refused(
    policies: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    for make in (gradsmith.Context, gradsmith.policy):
        with pytest.raises(kind) as caught:
            make(**policies)
        assert str(caught.value).startswith(next(iter(policies)))
        assert sentence in str(caught.value)


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_policies_take_what_stands_for_an_integer(kind: Any) -> None:
    context = gradsmith.Context(workspace_limit=kind(5), threads=kind(2), search_budget_seconds=kind(1))
    assert context == gradsmith.Context(workspace_limit=5, threads=2, search_budget_seconds=1)
    assert [type(one) for one in (context.workspace_limit, context.threads)] == [int, int]
    assert of_text(context.text) == context


@pytest.mark.parametrize("context", [True, "deterministic", 0, object])
def test_what_is_no_context_is_refused(context: Any) -> None:
    with pytest.raises(TypeError, match=r"context is .*; expected a gradsmith\.Context"):
        gradsmith.conv_grad(*problems.arrays(), context=context)


def test_only_what_was_entered_is_left() -> None:
    context = gradsmith.Context(threads=1)
    with pytest.raises(RuntimeError, match="a context is left that was not entered in this thread or task"):
        context.__exit__(None, None, None)
    with gradsmith.policy(allow_tf32=True) as surrounding:
        with pytest.raises(RuntimeError, match="expected it in a `with`"):
            context.__exit__(None, None, None)
        assert current() is surrounding
    with pytest.raises(RuntimeError):
        current().__exit__(None, None, None)
    assert current() == gradsmith.Context()


def test_a_generator_that_ends_late_ends_its_own_policy() -> None:
    def generator() -> Generator[None, None, None]:
        with gradsmith.policy(deterministic=True):
            yield

    late = generator()
    next(late)
    with gradsmith.policy(allow_tf32=True) as inner:
        late.close()
        assert current() is inner
    assert current() == gradsmith.Context()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_contexts_can_be_copied_and_pickled(copied: Callable[[Any], Any], tmp_path: Path) -> None:
    context = gradsmith.Context(deterministic=True, workspace_limit=1 << 40, cache=tmp_path / "c", threads=2)
    for one in (context, context.preparing()):
        again = copied(one)
        assert again == one
        assert again is not one
        mine = np.zeros(1, "float32")
        gradsmith.conv_grad(*problems.arrays(), out={"dB": mine}, context=again)
        assert mine == (0 if again.is_preparing else 4)


def test_policies_in_text_are_those_of_the_context(tmp_path: Path) -> None:
    context = gradsmith.Context(deterministic=True, cache=tmp_path / "c", on_search_progress=print)
    text = context.text
    assert of_text(text) is context
    del context
    again = of_text(text)
    assert (again.deterministic, again.cache_name()) == (True, str(tmp_path / "c"))
    assert of_text(text) is again
    assert of_text(current().text) is current()


def test_the_cache_is_the_contexts(tmp_path: Path) -> None:
    surrounding = gradsmith.cache.path()
    with gradsmith.policy(cache=tmp_path / "choices.txt"):
        assert gradsmith.cache.path() == str(tmp_path / "choices.txt")
        assert gradsmith.cache.choices() == []
        with gradsmith.policy(cache="off"):
            assert gradsmith.cache.path() == ""
        gradsmith.cache.export(tmp_path / "exported.txt")
        gradsmith.cache.load(tmp_path / "exported.txt")
        gradsmith.cache.clear()
        problems.check(gradsmith.conv_grad(*problems.arrays()))
    assert gradsmith.cache.path() == surrounding
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not bool"):
        gradsmith.policy(cache=False)


@pytest.mark.skipif(os.name != "posix", reason="paths are text here")
def test_paths_need_not_be_utf8(tmp_path: Path) -> None:
    name = bytes(tmp_path) + b"/\xff.txt"
    for cache in (name, os.fsdecode(name)):
        with gradsmith.policy(cache=cache) as context:
            assert os.fsencode(gradsmith.cache.path()) == name
            gradsmith.cache.export(os.fsdecode(name + b"2"))
            gradsmith.cache.load(name + b"2")
            with pytest.raises(ValueError, match=r"cannot read .*\\xff\.txt3"):
                gradsmith.cache.load(name + b"3")
            problems.check(gradsmith.conv_grad(*problems.arrays()))
            assert of_text(context.text).cache_name() == os.fsdecode(name)
    with pytest.raises(ValueError, match="null"):
        gradsmith.Context(cache="a\0b")


def test_a_prepared_call_leaves_its_outputs_alone() -> None:
    mine = np.full(1, 7, "float32")
    gradsmith.conv_grad(*problems.arrays(), out={"dB": mine}, context=gradsmith.Context().preparing())
    assert mine == 7


def test_other_threads_run_while_a_kernel_does() -> None:
    """A thread that counts gets on during a long call; it could not if the call held the interpreter's lock."""
    x = np.ones((8, 64, 64, 64), "float32")
    w = np.ones((64, 64, 3, 3), "float32")
    counts, is_done = [0], threading.Event()

    def count() -> None:
        while not is_done.is_set():
            counts[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    # Python hands the lock on before and after the call, so one that was held would let it count once or twice. On a
    # busy machine the counter may not get on in one call; in one of many it does.
    most = 0
    for _ in range(200):
        before = counts[0]
        gradsmith.conv(x, w, context=gradsmith.Context(threads=1))
        most = max(most, counts[0] - before)
        if most > 5:
            break
    is_done.set()
    counter.join()
    assert most > 5


def test_many_threads_get_their_own_results() -> None:
    def one(number: int) -> bool:
        dY, x, w = problems.arrays()
        result = gradsmith.conv_grad(dY * number, x, w)
        return bool((result.dX == number * problems.DX).all() and (result.dW == number * problems.DW).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(400)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_calls_work_in_a_forked_child() -> None:
    """The child has none of its parent's threads."""
    processes.check(
        """
        import os, numpy as np, gradsmith
        x, w = np.ones((4, 8, 32, 32), 'float32'), np.ones((8, 8, 3, 3), 'float32')
        context = gradsmith.Context(threads=2)
        expected = gradsmith.conv(x, w, context=context).Y
        child = os.fork()
        same = bool((gradsmith.conv(x, w, context=context).Y == expected).all())
        if child == 0:
            os._exit(0 if same else 3)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not same)
        """
    )


def test_a_callback_needs_no_hash() -> None:
    @dataclass
    class Callback:
        calls: int = 0

        def __call__(self, *told: object) -> None:
            self.calls += 1

    callback = Callback()
    with gradsmith.policy(on_search_progress=callback) as context:
        assert context.on_search_progress is callback
