"""The operators with PyTorch's autograd: functions of the same names, registered with torch.library.

Each is `torch.ops.gradsmith.<name>` as well, works under torch.compile, and, where it has a gradient operator, is
differentiated by that::

    import gradsmith.torch

    Y = gradsmith.torch.conv_transpose(X, W, strides=(2, 2)).Y
    Y.sum().backward()

Gradient operators are differentiated in turn, by the formulas of `_double_backward`. Only the gradients that are needed
are computed. A backward pass is made under the policies of its forward pass, also where torch.compile has compiled
both (PyTorch 2.15 or later; before, under those that it runs in).
"""

from . import _autograd

__all__ = list(_autograd.WITH_AUTOGRAD)
globals().update(_autograd.WITH_AUTOGRAD)
