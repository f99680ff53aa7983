"""Labels that are no places of a table, where the schema says that these are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

gradsmith: Any = pytest.importorskip("gradsmith", reason="the Python package is not on PYTHONPATH: build it first")
if not hasattr(gradsmith, "weigh"):
    pytest.skip("the package on PYTHONPATH has other operators", allow_module_level=True)
X = np.arange(24, dtype="float32").reshape(2, 3, 4)
WEIGHT = np.array([2, 3, 5], "float32")
GOOD = np.array([[0, 1, 2, 0], [2, 2, 1, 0]])


def test_places_are_looked_up() -> None:
    np.testing.assert_array_equal(gradsmith.weigh(X, GOOD, WEIGHT).Y, X * WEIGHT[GOOD][:, None])


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("bad", [3, -1, 2**31 - 1])
def test_what_is_no_place_is_refused(bad: int, dtype: str) -> None:
    label = GOOD.astype(dtype)
    label[1, 2] = bad
    told = rf"Weigh\[float_{dtype}\] on cpu .*: label\[1, 2\] is {bad}; expected 0 to 2, the places along C, or "
    y = np.full_like(X, 7)
    with pytest.raises(ValueError, match=told + "ignore_index, -100"):
        gradsmith.weigh(X, label, WEIGHT, out={"Y": y})
    np.testing.assert_array_equal(y, 7)


def test_the_first_in_row_major_order_is_told() -> None:
    label = np.asfortranarray(GOOD)
    label[1, 0] = label[0, 3] = 9
    with pytest.raises(ValueError, match=r"label\[0, 3\] is 9"):
        gradsmith.weigh(X, label, WEIGHT)


def test_one_label_is_never_refused() -> None:
    label = GOOD.copy()
    label[0, 1] = -100
    expected = X * WEIGHT[GOOD][:, None]
    expected[0, :, 1] = X[0, :, 1]
    np.testing.assert_array_equal(gradsmith.weigh(X, label, WEIGHT).Y, expected)
    with pytest.raises(ValueError, match=r"label\[0, 1\] is -100.* or ignore_index, 9"):
        gradsmith.weigh(X, label, WEIGHT, ignore_index=9)


def test_where_there_is_no_place_none_is_right() -> None:
    nothing = np.zeros((1, 0), "float32")
    with pytest.raises(ValueError, match=r"label\[0\] is 0; expected none, for C is 0, or ignore_index, -100"):
        gradsmith.weigh(nothing, np.zeros(1, "int64"), np.zeros(0, "float32"))
