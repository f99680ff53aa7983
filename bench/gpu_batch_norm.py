"""What the GPU benchmark measures and expects of batch normalization, alone and with ReLU after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_figures import (
    factor_text,
    figure_at,
    legacy,
    legacy_ratio,
    moved_bytes,
    number,
    ours,
    torch_ratio,
    torch_time,
)
from gpu_kinds import Checks, Family, Kind, Line, Memory, Part, Rows
from gpu_peer import Torch, sets_of
from gpu_suites import LIMITS, TYPES, Case, numbers, suite

PARTS = ("forward", "backward")
EPSILON = 1e-5
GOALS = dict.fromkeys(("f16/f32", "f16/f16", "bf16/f32", "f32/f32", "f64/f64"), (2.0, 2.0))
L2_BYTES = 50e6  # of an H100 or H200


# --- PyTorch --------------------------------------------------------------------------------------------------------


def by_torch(peer: Torch, case: Case, sets: int, relu: bool = False) -> dict[str, Any]:
    """By cuDNN's path and by PyTorch's own kernels; with ReLU by one operator more, forward and backward."""
    dims = numbers(case["shape"])
    last = case["layout"] == "NHWC"
    if last and len(dims) == 3:
        dims.insert(2, 1)  # as ConvShape: nothing is channels last with one axis
    x, dy = (peer.random(sets, dims, TYPES[case["type"]], last) for _ in range(2))
    channel = [peer.random(sets, [dims[1]], TYPES[case["scale_type"]], False) for _ in range(4)]
    scale, bias, mean, var = channel
    sources: dict[str, Any] = {"cudnn": {}, "native": {}}
    for source, forward, backward in (
        ("cudnn", peer.aten.cudnn_batch_norm.default, cudnn_backward),
        ("native", peer.aten.native_batch_norm.default, native_backward),
    ):

        def forwards(i: int, forward: Any = forward) -> Any:
            y, *saved = forward(x[i], scale[i], bias[i], mean[i], var[i], True, 0.1, EPSILON)
            return (peer.aten.relu_.default(y) if relu else y, *saved)

        sources[source]["forward"] = peer.attempt(sets, forwards)
        if "error" in sources[source]["forward"]:
            sources[source]["backward"] = sources[source]["forward"]
            continue
        given = [forwards(i) for i in range(sets)]

        def backwards(i: int, backward: Any = backward, given: Any = given) -> Any:
            y, *saved = given[i]
            upstream = peer.aten.threshold_backward.default(dy[i], y, 0) if relu else dy[i]
            return backward(peer, x[i], upstream, scale[i], mean[i], var[i], saved)

        sources[source]["backward"] = peer.attempt(sets, backwards)
    return sources


def cudnn_backward(peer: Torch, x: Any, dy: Any, scale: Any, mean: Any, var: Any, saved: Any) -> Any:
    backward = peer.aten.cudnn_batch_norm_backward.default
    return backward(x, dy, scale, mean, var, saved[0], saved[1], EPSILON, saved[2])


def native_backward(peer: Torch, x: Any, dy: Any, scale: Any, mean: Any, var: Any, saved: Any) -> Any:
    mask = [True, True, True]
    backward = peer.aten.native_batch_norm_backward.default
    return backward(dy, x, scale, mean, var, saved[0], saved[1], True, EPSILON, mask)


def torch_alone(peer: Torch, case: Case, line: Line) -> dict[str, Any]:
    return by_torch(peer, case, sets_of(line))


def torch_relu(peer: Torch, case: Case, line: Line) -> dict[str, Any]:
    return by_torch(peer, case, sets_of(line), relu=True)


# --- checks ---------------------------------------------------------------------------------------------------------


def outputs_of(checker: Any, case: Case, folder: Path) -> dict[str, Any]:
    """Of a case that was saved, by Checks.outputs."""
    dims = numbers(case["shape"])
    last = case["layout"] == "NHWC"
    kind, scale_kind = case["type"], case["scale_type"]
    stats_kind = "f64" if kind == "f64" else "f32"
    x, dy, y, dx = (checker.read(folder, name, dims, TYPES[kind], last) for name in ("X", "dY", "Y", "dX"))
    channels = [1, dims[1], *[1] * (len(dims) - 2)]

    def of_channels(name: str, which: str) -> Any:
        return checker.read(folder, name, [dims[1]], TYPES[which], False).view(channels)

    scale, bias, dscale, dbias = (of_channels(name, scale_kind) for name in ("scale", "B", "dScale", "dBias"))
    mean, inv_std = (of_channels(name, stats_kind) for name in ("saved_mean", "saved_inv_std"))
    axes = [axis for axis in range(len(dims)) if axis != 1]
    expected_mean = x.mean(axes, keepdim=True)
    expected_inv_std = (x.var(axes, unbiased=False, keepdim=True) + EPSILON).rsqrt()
    normalized = (x - expected_mean) * expected_inv_std
    expected_dscale = (dy * normalized).sum(axes, keepdim=True)
    expected_dbias = dy.sum(axes, keepdim=True)
    count = x.numel() / dims[1]
    expected_dx = scale * expected_inv_std * (dy - (expected_dbias + normalized * expected_dscale) / count)
    return {
        "Y": (y, scale * normalized + bias, LIMITS[kind]),
        "saved_mean": (mean, expected_mean, LIMITS[stats_kind]),
        "saved_inv_std": (inv_std, expected_inv_std, LIMITS[stats_kind]),
        "dX": (dx, expected_dx, LIMITS[kind]),
        "dScale": (dscale, expected_dscale, LIMITS[scale_kind]),
        "dBias": (dbias, expected_dbias, LIMITS[scale_kind]),
    }


CHECKS = Checks(
    heading="case\tshape\ttype\tscale_type\tlayout",
    shapes=["small\t6,16,7,9"],
    types=["f16\tf32", "f16\tf16", "bf16\tf32", "f32\tf32", "f64\tf64"],
    outputs=outputs_of,
)


# --- figures --------------------------------------------------------------------------------------------------------


def legacy_time(case: Line) -> tuple[float | None, float | None]:
    return legacy(case, "backward"), ours(case, "backward")


def image_bytes(case: Line) -> float:
    """Of X, dY or dX."""
    return (moved_bytes(case) or 0) / 3


def floor_bytes(case: Line) -> float:
    """What the gradient moves at least: X and dY are read once for the sums and once for dX, unless the L2 cache holds
    them in between."""
    image = image_bytes(case)
    return (3 if 2 * image <= L2_BYTES else 5) * image


def rows_of(cases: list[Line]) -> Rows:
    heading = ["case", "types", "layout", "ours forward", "ours backward", "torch forward"]
    heading += ["torch cudnn backward", "torch native backward", "legacy forward", "legacy backward"]
    heading += ["torch/ours", "legacy/ours"]
    rows = [heading]
    for case in cases:
        peers = [figure_at(case.get("torch"), source, "backward", "median") for source in ("cudnn", "native")]
        times = [ours(case, "forward"), ours(case, "backward"), torch_time(case, "forward"), *peers]
        times += [legacy(case, "forward"), legacy(case, "backward")]
        cells = [case["case"], f"{case['type']}/{case['scale_type']}", case["layout"], *map(number, times)]
        rows.append([*cells, factor_text(torch_ratio(case)), factor_text(legacy_ratio(case))])
    return rows if cases else []


def kind_of_batch_norms(name: str, title: str, short: str, op: str, is_alone: bool) -> Kind:
    return Kind(
        name=name,
        title=title,
        short=short,
        op=op,
        parts=PARTS,
        gradient="backward",
        outputs="backward",
        rows=rows_of,
        torch_goals=GOALS,
        memory=Memory("batch normalizations of their floor", "backward", image_bytes, floor_bytes),
        legacy_parts=("backward",) if is_alone else (),
        legacy_time=legacy_time,
        legacy_name="cuDNN's legacy SPATIAL mode",
        by_mode=False,
        torch_sources=("cudnn", "native"),  # cuDNN's path and PyTorch's own kernels
        has_roofline=is_alone,
        checks=CHECKS if is_alone else None,
    )


FAMILY = Family(
    kinds=(
        kind_of_batch_norms("batch_norm", "batch normalization", "batch norm", "BatchNormalizationGrad", True),
        kind_of_batch_norms(
            "batch_norm_relu",
            "batch normalization with ReLU",
            "batch norm and ReLU",
            "BatchNormalizationReluGrad",
            False,
        ),
    ),
    # Weights are about the seconds that each takes on an H200.
    parts=(
        Part("batch_norm", 80, suite("batch_norm"), torch_alone),
        Part("batch_norm_relu", 80, suite("batch_norm"), torch_relu, arguments=("--relu",)),
    ),
)
