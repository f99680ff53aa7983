"""Gradient operators on the arrays that you have: NumPy, PyTorch, CuPy, JAX, and what else speaks DLPack.

Each operator is a function. Inputs are positional, attributes are keywords, and the result is a named tuple of
arrays of the inputs' library, on their device::

    >>> import numpy as np
    >>> import gradsmith
    >>> dY, X, W = np.ones((1, 1, 2, 2)), np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2))
    >>> gradsmith.conv_grad(dY, X, W, outputs="dW").dW
    array([[[[ 8., 12.],
             [20., 24.]]]])

`ops` lists the operators, `help` of one says all of it, and `explain` says which types it takes. `Context` and
`policy` set how kernels are chosen. `gradsmith.torch` has the same functions with autograd.
"""

from . import _cudnn, _ops, cache
from . import _libraries as _libraries  # before a call, for which none may be found anew
from ._ops import *  # noqa: F403 - the operators that ops.yaml holds
from ._policy import Context, policy
from ._prefix_of_wheel import get_cmake_dir
from ._table import Operator, Row, Tensor, explain, is_available, missing_for, ops
from ._tuning import Progress, Tuned, tune

_cudnn.point_to_pip()

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Operator",
    "Progress",
    "Row",
    "Tensor",
    "Tuned",
    "cache",
    "explain",
    "get_cmake_dir",
    "is_available",
    "missing_for",
    "ops",
    "policy",
    "tune",
    *_ops.__all__,
]
