"""The gradients of ConvGrad and ConvTransposeGrad."""

from __future__ import annotations

from typing import Any

from ._double_backward import Call, per_channel


def gradients_of(call: Call) -> dict[str, Any]:
    """Y is linear in X and in W, and dX and dW are the two transposes of that.

    With the gradients gX of dX, gW of dW and gB of dB, the loss is that of (gX, dX) + (gW, dW) + (gB, dB), which is
    (dY, conv(gX, W) + conv(X, gW) + gB).
    """
    dy, x, w = (call.inputs[name] for name in ("dY", "X", "W"))
    of_x, of_w, of_b = (call.given.get(name) for name in ("dX", "dW", "dB"))
    gradients: dict[str, Any] = {}
    if "dY" in call.needed:
        pairs = [pair for pair in ((of_x, w), (x, of_w)) if pair[0] is not None and pair[1] is not None]
        # The bias goes with either convolution.
        terms = [
            call.forward(*pair, of_b if index == 0 else None, **call.attributes) for index, pair in enumerate(pairs)
        ]
        if of_b is not None and not pairs:
            terms = [of_b.reshape(per_channel(dy)).expand_as(dy).clone()]
        if terms:
            gradients["dY"] = sum(terms[1:], start=terms[0])
    if "X" in call.needed and of_w is not None:
        gradients["X"] = call.gradient(dy, x, of_w, **call.attributes, outputs=["dX"])[0]
    if "W" in call.needed and of_x is not None:
        gradients["W"] = call.gradient(dy, of_x, w, **call.attributes, outputs=["dW"])[0]
    return gradients
