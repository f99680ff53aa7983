"""Whatever a caller passes, as much of it is looked at as can be meant, and sentences stay short."""

from __future__ import annotations

import array
import collections
import itertools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import gradsmith
import numpy as np
import processes
import pytest
from gradsmith import _core, _text, _tuning

X, W = np.ones((1, 1, 6)), np.ones((1, 1, 2))
MOST = 1 << 20
LONGEST_SENTENCE = 1200


class Endless:
    """Says that it has as many items as there can be, and counts those that are looked at."""

    def __init__(self, item: Any) -> None:
        self.item = item
        self.seen = 0

    def __len__(self) -> int:
        return (1 << 63) - 1

    def __getitem__(self, at: int) -> Any:
        self.seen += 1
        if self.seen > MOST:
            raise AssertionError(f"more than {MOST} items are looked at")
        return self.item

    def __iter__(self) -> Iterator[Any]:
        return (self[0] for _ in itertools.count())


def sentence_of(call: Callable[[], Any], *kinds: type[Exception]) -> str:
    with pytest.raises(kinds or (TypeError, ValueError, NotImplementedError)) as caught:
        call()
    sentence = str(caught.value)
    assert len(sentence) <= LONGEST_SENTENCE, sentence[:LONGEST_SENTENCE]
    return sentence


def test_outputs_without_an_end_are_refused() -> None:
    names = Endless("Y")
    assert "outputs holds more than 1024 names; expected names of outputs: Y" in sentence_of(
        lambda: gradsmith.conv(X, W, outputs=names)
    )
    assert names.seen == 1025
    told = processes.check(
        """
        import itertools, gradsmith, numpy as np
        dY, X, W = (np.ones((1, 1, size)) for size in (2, 3, 2))
        try:
            gradsmith.conv_grad(dY, X, W, outputs=itertools.repeat("dX"))
        except ValueError as error:
            print(error)
        """
    )
    assert told.startswith("ConvGrad: outputs holds more than 1024 names")


@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads", "dilations"])
def test_no_more_of_a_list_is_read_than_it_may_hold(name: str) -> None:
    numbers = Endless(1)
    told = sentence_of(lambda: gradsmith.conv(X, W, **{name: numbers}), ValueError)
    assert f"attribute {name} is [1, 1, 1, 1, 1, 1, 1, 1, ...]; expected at most 8" in told
    assert numbers.seen <= 10
    told = sentence_of(lambda: gradsmith.conv(X, W, **{name: range(1, 10**18)}), ValueError)
    assert "expected at most 8" in told
    assert "sequence of integers" in sentence_of(lambda: gradsmith.conv(X, W, **{name: Endless("1")}), TypeError)


def test_what_dlpack_says_of_a_device_is_a_pair() -> None:
    class Array:
        def __dlpack__(self, **keywords: Any) -> Any:
            return X.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return place

    place = Endless(1)
    assert "expected a type of devices" in sentence_of(lambda: gradsmith.conv(Array(), Array()), TypeError)
    assert place.seen <= 10


class Lengthy(list[Any]):
    """Says that it has another length than it has."""

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(
    "out", [Lengthy(), Lengthy([None] * 9), type("Tuple", (tuple,), {"__len__": lambda self: 3})()]
)
def test_out_is_as_long_as_it_is(out: Any) -> None:
    dY = np.ones((1, 1, 5))
    assert "expected a dict of arrays by name, or a tuple" in sentence_of(
        lambda: gradsmith.conv_grad(dY, X, W, out=out), TypeError
    )


LONG = "x" * 10**6
HUGE = 10**5000


class LongName(str):
    def __repr__(self) -> str:
        return LONG


CALLS: dict[str, Callable[[], Any]] = {
    "an input": lambda: gradsmith.conv(LONG, W),
    "an input of bytes": lambda: gradsmith.conv(b"x" * 10**6, W),
    "an input of lists": lambda: gradsmith.conv([[LONG] * 1000] * 1000, W),
    "an input of a long type": lambda: gradsmith.conv(type(LONG, (), {"__module__": LONG})(), W),
    "an input without a repr": lambda: gradsmith.conv(type("Bad", (), {"__repr__": lambda self: 1 / 0})(), W),
    "a type without a name": lambda: gradsmith.conv(type("Bad", (), {"__module__": 5})(), W),
    "a name of an output": lambda: gradsmith.conv(X, W, outputs=LONG),
    "names of outputs": lambda: gradsmith.conv(X, W, outputs=[LONG]),
    "outputs": lambda: gradsmith.conv(X, W, outputs=HUGE),
    "out": lambda: gradsmith.conv(X, W, out={LONG: X}),
    "out of many names": lambda: gradsmith.conv(X, W, out=dict.fromkeys(range(10**6))),
    "an array to write to": lambda: gradsmith.conv(X, W, out={"Y": LONG}),
    "an integer": lambda: gradsmith.conv(X, W, group=HUGE),
    "an integer in a list": lambda: gradsmith.conv(X, W, strides=[HUGE]),
    "no integer": lambda: gradsmith.conv(X, W, group=LONG),
    "no integers": lambda: gradsmith.conv(X, W, strides=[LONG]),
    "a text for integers": lambda: gradsmith.conv(X, W, strides=LONG),
    "no number": lambda: gradsmith.batch_normalization(X, *[np.ones(1)] * 4, epsilon=LONG),
    "a number past all": lambda: gradsmith.batch_normalization(X, *[np.ones(1)] * 4, epsilon=HUGE),
    "an enumerator": lambda: gradsmith.conv(X, W, auto_pad=LONG),
    "an enumerator's repr": lambda: gradsmith.conv(X, W, auto_pad=LongName(LONG)),
    "a keyword": lambda: gradsmith.conv(X, W, **{LONG: 1}),
    "a context": lambda: gradsmith.conv(X, W, context=LONG),
    "a policy": lambda: gradsmith.policy(**{LONG: 1}),
    "a mode": lambda: gradsmith.Context(search_mode=LONG),
    "threads": lambda: gradsmith.Context(threads=HUGE),
    "a limit": lambda: gradsmith.Context(workspace_limit=-HUGE),
    "a budget": lambda: gradsmith.Context(search_budget_seconds=-HUGE),
    "a flag": lambda: gradsmith.Context(allow_tf32=LONG),
    "a cache": lambda: gradsmith.Context(cache=LONG),
    "no cache": lambda: gradsmith.Context(cache=HUGE),
    "a cache that no file can be": lambda: gradsmith.Context(cache="a\0b"),
    "a file to load": lambda: gradsmith.cache.load(LONG),
    "a file to write": lambda: gradsmith.cache.export(LONG.encode()),
    "a type to explain": lambda: gradsmith.explain("Conv", LONG),
    "many types to explain": lambda: gradsmith.explain("Conv", *["float"] * 10**5),
    "a device": lambda: gradsmith.is_available(LONG),
    "a device to explain for": lambda: gradsmith.explain("Conv", "float", device=LONG),
    "a problem": lambda: gradsmith.tune(LONG, device="cpu"),
    "a dim of a problem": lambda: gradsmith.tune("Conv float X=" + "9x" * 500, device="cpu"),
    "problems": lambda: gradsmith.tune("\n" * (1 << 25), device="cpu"),
    "no problem": lambda: gradsmith.tune([HUGE], device="cpu"),
    "a function": lambda: gradsmith.tune(type("F", (), {"__call__": print, "__qualname__": LONG})(), device="cpu"),
}


@pytest.mark.parametrize("name", CALLS)
def test_sentences_are_short(name: str) -> None:
    sentence_of(CALLS[name])


def test_what_has_no_operator_is_explained_shortly() -> None:
    for op in (LONG, LongName(LONG), [LONG]):
        assert len(gradsmith.explain(op, "float")) <= LONGEST_SENTENCE


def test_nesting_has_no_end_either() -> None:
    nested: Any = 1
    for _ in range(10**5):
        nested = [nested]
    assert "strides is [[[[" in sentence_of(lambda: gradsmith.conv(X, W, strides=nested), TypeError)
    assert "outputs holds [[[" in sentence_of(lambda: gradsmith.conv(X, W, outputs=[nested]), TypeError)


@pytest.mark.parametrize("line", ["", "# nothing", "Conv float X=1x1x6 W=1x1x2"])
def test_problems_without_an_end_are_refused_before_any_is_tuned(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def tune_problem(*told: Any) -> None:
        raise AssertionError("a problem is tuned")

    monkeypatch.setattr(_core, "tune_problem", tune_problem)
    lines = Endless(line)
    told = sentence_of(lambda: gradsmith.tune(lines, device="cpu"), ValueError)
    assert re.search(r"more than \d+ lines", told)
    assert lines.seen <= MOST
    assert _tuning.problems_of(itertools.repeat(line, 9)) == ([line] * 9 if line.startswith("C") else [])


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (1, "1"),
        (True, "True"),
        (HUGE, "an integer of 16610 bits"),
        ("x" * 99, "'" + "x" * 59 + "..."),
        (b"x" * 99, "b'" + "x" * 58 + "..."),
        ([1] * 99, "[" + "1, " * 19 + "1,..."),
        ((1, "2"), "(1, '2')"),
        ({"a": [1, {2}]}, "{'a': [1, {2}]}"),
        (set(), "set()"),
        (np.float32(2), "np.float32(2.0)"),
        (np.ones(2), "array([1., 1.])"),
        (range(3), "range(0, 3)"),
        (type("Text", (str,), {})("x" * 99), "'" + "x" * 59 + "..."),
        (type("Integer", (int,), {})(HUGE), "an integer of 16610 bits"),
        (type("List", (list,), {"__len__": lambda self: -1, "__iter__": None})([1, 2]), "[1, 2]"),
        (type("Bad", (), {"__module__": "m", "__repr__": lambda self: 1 / 0})(), "a m.Bad"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_quoted(value: Any, quoted: str) -> None:
    assert _text.quoted(value) == quoted


class Counted:
    """Counts how often it is looked at."""

    seen = 0

    def __repr__(self) -> str:
        Counted.seen += 1
        return "x"


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "deque": collections.deque,
    "deque of a length": lambda items: collections.deque(items, maxlen=len(items)),
    "OrderedDict": lambda items: collections.OrderedDict(enumerate(items)),
    "defaultdict": lambda items: collections.defaultdict(list, enumerate(items)),
    "Counter": lambda items: collections.Counter(dict(enumerate(items))),
    "ChainMap": lambda items: collections.ChainMap({}, dict(enumerate(items))),
    "UserDict": lambda items: collections.UserDict(enumerate(items)),
    "UserList": collections.UserList,
    "keys": lambda items: {(number, one): one for number, one in enumerate(items)}.keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda items: collections.OrderedDict(enumerate(items)).items(),
    "mappingproxy": lambda items: types.MappingProxyType(dict(enumerate(items))),
    "list": list,
    "tuple": tuple,
    "dict": lambda items: dict(enumerate(items)),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("depth", [0, 1, 8])
def test_no_more_of_a_container_is_looked_at_than_is_quoted(name: str, depth: int) -> None:
    value = CONTAINERS[name]([Counted() for _ in range(1000)])
    for _ in range(depth):
        value = CONTAINERS[name]([value] * 70) if name != "keys" else [value] * 70
    Counted.seen = 0
    told = _text.quoted(value)
    assert Counted.seen <= 1000 // 4
    assert len(told) <= 63
    assert told == _text.written(value)


def test_other_containers_are_cut() -> None:
    assert _text.quoted(array.array("d", [1.0] * 10**6)) == "array('d', [" + "1.0, " * 9 + "1.0..."
    assert _text.quoted(collections.OrderedDict(a=1)) == "OrderedDict({'a': 1})"
    assert _text.quoted(collections.deque([1, 2])) == "deque([1, 2])"
    assert _text.quoted({1: 2}.values()) == "dict_values([2])"


def test_interrupts_within_a_repr_pass() -> None:
    def interrupt(value: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _text.quoted(type("Bad", (), {"__repr__": interrupt})())
