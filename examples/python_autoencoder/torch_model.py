"""The autoencoder in PyTorch, around an autograd function that is written by hand."""

from __future__ import annotations

from typing import Any

import gradsmith
import torch


class Autoencode(torch.autograd.Function):
    """Conv, BatchNormalization, ReLU and ConvTranspose as one function; its backward pass calls our gradients."""

    @staticmethod
    def forward(ctx: Any, images: Any, w_f: Any, scale: Any, bias: Any, w_b: Any, shift: Any) -> Any:
        features = gradsmith.conv(images, w_f).Y
        unused = torch.zeros_like(scale)
        normalized = gradsmith.batch_normalization(
            features, scale, bias, unused, unused, outputs=("Y", "saved_mean", "saved_inv_std")
        )
        code = normalized.Y.clamp(min=0)
        ctx.save_for_backward(images, w_f, features, scale, normalized.saved_mean, normalized.saved_inv_std, code, w_b)
        return gradsmith.conv_transpose(code, w_b, shift).Y

    @staticmethod
    def backward(ctx: Any, of_drawn: Any) -> Any:
        images, w_f, features, scale, saved_mean, saved_inv_std, code, w_b = ctx.saved_tensors
        of_decoder = gradsmith.conv_transpose_grad(of_drawn, code, w_b)
        of_normalized = of_decoder.dX * (code > 0)
        of_norm = gradsmith.batch_normalization_grad(of_normalized, features, scale, saved_mean, saved_inv_std)
        of_encoder = gradsmith.conv_grad(of_norm.dX, images, w_f, outputs="dW")
        return None, of_encoder.dW, of_norm.dScale, of_norm.dBias, of_decoder.dW, of_decoder.dB


def reconstruct(parameters: dict[str, Any], images: Any) -> Any:
    return Autoencode.apply(images, *(parameters[name] for name in ("w_f", "scale", "bias", "w_b", "shift")))


def loss_and_gradients(parameters: dict[str, Any], images: Any) -> tuple[float, dict[str, Any]]:
    """As numpy_model's; here autograd calls the backward pass."""
    leaves = {name: one.detach().requires_grad_() for name, one in parameters.items()}
    loss = ((reconstruct(leaves, images) - images) ** 2).sum() / (2 * len(images))
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return float(loss.detach()), dict(zip(leaves, gradients, strict=True))
