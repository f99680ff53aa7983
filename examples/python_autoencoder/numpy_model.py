"""The autoencoder in plain NumPy: both passes are written out."""

from __future__ import annotations

import gradsmith
import numpy as np
from digits import Images

Parameters = dict[str, Images]


def initial_parameters(random: np.random.Generator, filters: int, side: int) -> Parameters:
    """Encoder and decoder filters are drawn apart: nothing ties w_b to w_f."""
    shape = (filters, 1, side, side)
    scale = 1 / side
    return {
        "w_f": random.normal(scale=scale, size=shape).astype(np.float32),
        "scale": np.ones(filters, np.float32),
        "bias": np.zeros(filters, np.float32),
        "w_b": random.normal(scale=scale, size=shape).astype(np.float32),
        "shift": np.zeros(1, np.float32),
    }


def normalize(features: Images, scale: Images, bias: Images) -> gradsmith.BatchNormalizationResult[Images]:
    """Per channel, by the statistics of this batch; running ones are not kept."""
    unused = np.zeros_like(scale)
    return gradsmith.batch_normalization(
        features, scale, bias, unused, unused, outputs=("Y", "saved_mean", "saved_inv_std")
    )


def reconstruct(parameters: Parameters, images: Images) -> Images:
    features = gradsmith.conv(images, parameters["w_f"]).Y
    code = np.maximum(normalize(features, parameters["scale"], parameters["bias"]).Y, 0)
    result: Images = gradsmith.conv_transpose(code, parameters["w_b"], parameters["shift"]).Y
    return result


def loss_and_gradients(parameters: Parameters, images: Images) -> tuple[float, Parameters]:
    """Half the squared error of an image, in the mean, and its gradients."""
    w_f, scale, bias, w_b, shift = (parameters[name] for name in ("w_f", "scale", "bias", "w_b", "shift"))
    features = gradsmith.conv(images, w_f).Y
    normalized = normalize(features, scale, bias)
    code = np.maximum(normalized.Y, 0)
    error = gradsmith.conv_transpose(code, w_b, shift).Y - images

    of_decoder = gradsmith.conv_transpose_grad(error / len(images), code, w_b)
    of_normalized = of_decoder.dX * (normalized.Y > 0)
    of_norm = gradsmith.batch_normalization_grad(
        of_normalized, features, scale, normalized.saved_mean, normalized.saved_inv_std
    )
    of_encoder = gradsmith.conv_grad(of_norm.dX, images, w_f, outputs="dW")
    loss = float((error**2).sum()) / (2 * len(images))
    return loss, {
        "w_f": of_encoder.dW,
        "scale": of_norm.dScale,
        "bias": of_norm.dBias,
        "w_b": of_decoder.dW,
        "shift": of_decoder.dB,
    }
