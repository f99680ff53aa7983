"""What the GPU benchmark measures and expects of convolutions and transposed ones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gpu_conv_sweeps
from gpu_conv_shapes import ConvShape, batch_cases, bias_bytes, sweep_cases
from gpu_figures import factor_text, figure_at, legacy, legacy_ratio, number, ours, torch_ratio, torch_time
from gpu_kinds import Checks, Family, Kind, Line, Memory, Part, Rows
from gpu_peer import Torch, sets_of
from gpu_suites import LIMITS, TYPES, Case, suite

PARTS = ("dX", "dW", "dB", "all")
MASKS = {"dX": [True, False, False], "dW": [False, True, False], "dB": [False, False, True], "all": [True, True, True]}
GOALS = {"f16": (1.6, 2.0), "bf16": (1.6, 2.0), "tf32": (1.4, 1.4), "f32": (1.5, 1.5), "f64": (1.5, 1.5)}


# --- PyTorch --------------------------------------------------------------------------------------------------------


def by_torch(
    peer: Torch, case: Case, sets: int, parts: Iterable[str] = MASKS, samples: int | None = None
) -> dict[str, Any]:
    """Of a convolution or a transposed one, for each part what it takes."""
    shape = ConvShape(case)
    peer.torch.backends.cudnn.allow_tf32 = case["type"] == "tf32"
    dtype = TYPES[case["type"]]
    x, w, dy = (peer.random(sets, dims, dtype, shape.last) for dims in (shape.torch_x, shape.w, shape.torch_y))

    def call(mask: list[bool]) -> Callable[[int], Any]:
        return lambda i: peer.aten.convolution_backward.default(dy[i], x[i], w[i], *shape.rest, mask)

    return {part: peer.attempt(sets, call(MASKS[part]), samples) for part in parts}


def torch_parts(peer: Torch, case: Case, line: Line) -> dict[str, Any]:
    return by_torch(peer, case, sets_of(line))


def torch_forward(peer: Torch, case: Case, line: Line) -> dict[str, Any]:
    """Of a convolution or a transposed one without a bias."""
    shape = ConvShape(case)
    peer.torch.backends.cudnn.allow_tf32 = case["type"] == "tf32"
    dtype = TYPES[case["type"]]
    sets = sets_of(line)
    x, w = (peer.random(sets, dims, dtype, shape.last) for dims in (shape.torch_x, shape.w))
    geometry = shape.rest[1:]  # after the bias's sizes
    return {"forward": peer.attempt(sets, lambda i: peer.aten.convolution.default(x[i], w[i], None, *geometry))}


def torch_one_call(peer: Torch, case: Case, line: Line) -> dict[str, Any]:
    """With as many samples as ours: large batches have fewer."""
    samples = figure_at(line, "results", "ours", "benchmark", "all", "samples")
    samples = samples or figure_at(line, "results", "ours", "heuristic", "all", "samples")
    return by_torch(peer, case, sets_of(line), ["all"], int(samples) if samples else None)


def host(peer: Torch) -> dict[str, float]:
    """Microseconds of a call of the small shape that MeasureConvHostTime takes, median of 1,000."""
    case = {"N": "2", "C": "16", "K": "16", "groups": "1", "spatial": "8,8", "kernel": "3,3", "stride": "1,1"}
    shape = ConvShape({**case, "pad": "1,1", "dilation": "1,1", "type": "f16", "layout": "NHWC"})
    x, w, dy = (peer.random(1, dims, "float16", True)[0] for dims in (shape.x, shape.w, shape.y))
    result = {}
    for name, mask in (("outputs_3", MASKS["all"]), ("outputs_1", MASKS["dW"])):
        times = []
        for round_number in range(-1, 50):
            for _ in range(20):
                start = time.perf_counter_ns()
                peer.aten.convolution_backward.default(dy, x, w, *shape.rest, mask)
                if round_number >= 0:
                    times.append((time.perf_counter_ns() - start) / 1e3)
            peer.torch.cuda.synchronize()
        result[name] = statistics.median(times)
    return result


# --- checks ---------------------------------------------------------------------------------------------------------


def outputs_of(checker: Any, case: Case, folder: Path) -> dict[str, Any]:
    """Of a case that was saved, by Checks.outputs."""
    shape = ConvShape(case)
    named = {"X": shape.x, "W": shape.w, "dY": shape.y, "dX": shape.x, "dW": shape.w, "dB": [shape.y[1]]}
    tensors = {
        name: checker.read(folder, name, dims, TYPES[case["type"]], shape.last and len(dims) > 1)
        for name, dims in named.items()
    }
    x, dy = extended(checker, tensors["X"], shape.x_ahead), extended(checker, tensors["dY"], shape.y_ahead)
    dx, *others = checker.aten.convolution_backward.default(dy, x, tensors["W"], *shape.rest, MASKS["all"])
    expected = [cut(checker, dx, shape.x_ahead), *others]
    limit = LIMITS[case["type"]]
    # The bias gradient is summed in float also where products are in TF32.
    return {
        name: (tensors[name], wanted, LIMITS["f32"] if (name, case["type"]) == ("dB", "tf32") else limit)
        for name, wanted in zip(("dX", "dW", "dB"), expected, strict=True)
    }


def extended(checker: Any, tensor: Any, ahead: list[int]) -> Any:
    """By zeros ahead of each axis, or behind it where there are less than none."""
    ends = [side for a in reversed(ahead) for side in (max(a, 0), max(-a, 0))]
    return checker.aten.constant_pad_nd.default(tensor, ends)


def cut(checker: Any, tensor: Any, ahead: list[int]) -> Any:
    """What was extended, as it was."""
    ends = [-side for a in reversed(ahead) for side in (max(a, 0), max(-a, 0))]
    return checker.aten.constant_pad_nd.default(tensor, ends)


CHECKS = Checks(
    heading="case\tN\tC\tK\tgroups\tspatial\tkernel\tstride\tpad\tpad_end\tdilation\ttype\tlayout",
    shapes=[
        "plain\t4\t16\t24\t1\t11,9\t3,3\t1,1\t1,1\t1,1\t1,1",
        "grouped\t2\t12\t8\t2\t12,10\t3,3\t2,2\t0,0\t0,0\t1,1",
        "causal\t2\t24\t24\t24\t37\t4\t1\t3\t0\t1",
        "uneven\t2\t16\t8\t1\t9,8\t4,3\t1,1\t1,2\t2,0\t1,1",
    ],
    types=list(TYPES),
    outputs=outputs_of,
)
TRANSPOSED_CHECKS = Checks(
    heading="case\tN\tC\tK\tgroups\tspatial\tkernel\tstride\tpad\tpad_end\tdilation\toutput_padding\ttype\tlayout",
    shapes=[
        "transposed\t4\t16\t24\t1\t6,5\t4,4\t2,2\t1,1\t1,1\t1,1\t0,0",
        "transposed_grouped\t2\t12\t8\t2\t5,6\t3,3\t2,2\t1,1\t1,1\t1,1\t1,1",
        "transposed_1d\t2\t16\t8\t1\t12\t16\t8\t4\t4\t1\t0",
        "transposed_3d\t2\t8\t16\t1\t3,5,4\t2,2,2\t2,2,2\t0,0,0\t0,0,0\t1,1,1\t0,0,0",
        "transposed_causal\t2\t16\t8\t1\t12\t8\t4\t0\t4\t1\t0",
    ],
    types=list(TYPES),
    outputs=outputs_of,
)


# --- figures --------------------------------------------------------------------------------------------------------


def legacy_time(case: Line) -> tuple[float | None, float | None]:
    """dX, dW and dB one after the other, as ONNX Runtime's ops call them, beside ours in one call; there is none where
    the legacy API lacks dX or dW."""
    theirs = [legacy(case, part) for part in ("dX", "dW")]
    own = [ours(case, part) for part in ("dX", "dW")]
    if (bias := legacy(case, "dB")) is not None:
        theirs.append(bias)
        own = [ours(case, "all")]
    return total(theirs), total(own)


def total(times: Iterable[float | None]) -> float | None:
    """None where one is missing."""
    known = list(times)
    return None if None in known else sum(filter(None, known))


def rows_of(cases: list[Line]) -> Rows:
    """A heading and a row for each case, as of every table here; none where there is no case."""
    heading = ["case", "type", "layout"] + [f"{who} {part}" for who in ("ours", "torch") for part in PARTS]
    heading += [*(f"legacy {part}" for part in PARTS[:3]), "heuristic all", "torch/ours", "legacy/ours"]
    rows = [heading]
    for case in cases:
        times = [ours(case, part) for part in PARTS] + [torch_time(case, part) for part in PARTS]
        times += [*(legacy(case, part) for part in PARTS[:3]), ours(case, "all", "heuristic")]
        cells = [case["case"], case["type"], case["layout"], *map(number, times)]
        rows.append([*cells, factor_text(torch_ratio(case)), factor_text(legacy_ratio(case))])
    return rows if cases else []


def bytes_of_dy(case: Line) -> float:
    """Which a bias gradient reads."""
    return bias_bytes(case["kind"], case["name"]) or 0


def kind_of_convolutions(
    name: str,
    names: tuple[str, str, str],
    goals: dict[str, tuple[float, float]],
    legacy_goal: float | None,
    checks: Checks,
) -> Kind:
    """`names`: of its title, in tables, and of the operator."""
    title, short, op = names
    return Kind(
        name=name,
        title=title,
        short=short,
        op=op,
        parts=PARTS,
        gradient="all",
        outputs="dX+dW+dB",
        rows=rows_of,
        torch_goals=goals,
        memory=Memory("bias gradients", "dB", bytes_of_dy, bytes_of_dy),
        legacy_parts=("dX", "dW"),
        legacy_time=legacy_time,
        legacy_goal=legacy_goal,
        operations=2,  # of dX and dW, which dB is small beside
        bytes="set_bytes",  # a set of the tensors is all inputs and outputs of the gradient
        checks=checks,
    )


FAMILY = Family(
    kinds=(
        kind_of_convolutions("conv", ("convolution", "conv", "ConvGrad"), GOALS, 4.0, CHECKS),
        kind_of_convolutions(
            "conv_transpose",
            ("transposed convolution", "transposed conv", "ConvTransposeGrad"),
            dict.fromkeys(GOALS, (1.6, 1.6)),
            None,
            TRANSPOSED_CHECKS,
        ),
    ),
    # Weights are about the seconds that each takes on an H200.
    parts=(
        Part("conv", 600, suite("conv"), torch_parts),
        Part("conv_transpose", 300, suite("conv_transpose"), torch_parts),
        Part(
            "batches",
            150,
            batch_cases,
            torch_one_call,
            "conv",
            ("--one-call",),
            "batches",
            option="five convolutions at batches of 1 to 1024",
        ),
        Part(
            "workspaces",
            150,
            sweep_cases,
            None,
            "conv",
            ("--workspaces",),
            "workspaces",
            option="the convolutions under limits of workspace",
        ),
        # These measure no more than all gradients in one call, by default or also by search, of any suite.
        Part("default", 150, suite("conv"), torch_one_call, "conv", ("--default",), must_be_named=True),
        Part("modes", 300, suite("conv"), torch_one_call, "conv", ("--modes",), must_be_named=True),
        # The forward operator, by default and by search, of any suite of convolutions.
        Part("forward", 300, suite("patches"), torch_forward, "conv", ("--forward",), "forward", must_be_named=True),
    ),
    host=host,
    summary=gpu_conv_sweeps.summary,
    tables=gpu_conv_sweeps.tables,
    draw=gpu_conv_sweeps.draw,
)
