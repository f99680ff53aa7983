"""Outputs are where the inputs are, by the library's own account of its devices."""

from __future__ import annotations

import json

import gradsmith
import numpy as np
import processes
import pytest

JAX = """
import gradsmith, jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec

first, second, third = jax.devices()
X, W = np.arange(3, dtype="float32").reshape(1, 1, 3), np.ones((1, 1, 2), "float32")

def on(device, array=X):
    return jax.device_put(array, device)

def mesh(*devices):
    return NamedSharding(jax.sharding.Mesh(np.array(devices), "a"), PartitionSpec())

def check(x, w, device):
    Y = gradsmith.conv(x, w).Y
    assert Y.devices() == {device}, Y.devices()
    assert Y.tolist() == [[[1, 3]]]
    # JAX computes with arrays of one device alone, unless they are not committed to theirs.
    assert jax.jit(lambda a, b: a + b)(Y, on(device, Y)).tolist() == [[[2, 6]]]

def refuse(x, w, sentence, kind=ValueError):
    try:
        gradsmith.conv(x, w)
    except kind as error:
        assert sentence in str(error), error
    else:
        raise AssertionError("accepted")
"""


CASES = [
    "for device in jax.devices(): check(on(device), on(device, W), device)",
    "check(on(mesh(second)), on(second, W), second)",
    "check(on(mesh(second)), on(mesh(second), W), second)",
    "check(jax.numpy.asarray(X), jax.numpy.asarray(W), first)",
    "with jax.default_device(second): check(on(third), on(third, W), third)",
    "with jax.default_device(second): check(jax.numpy.asarray(X), jax.numpy.asarray(W), second)",
    "refuse(on(first), on(second, W), 'Conv: W is on CpuDevice(id=1), the inputs before it are on CpuDevice(id=0); "
    "expected arrays on one device')",
    "refuse(on(third), jax.numpy.asarray(W), 'W is on CpuDevice(id=0), the inputs before it are on CpuDevice(id=2)')",
    "refuse(on(mesh(first, second)), on(mesh(first, second), W), 'X cannot be read through DLPack', TypeError)",
    "refuse(on(second), on(mesh(first, second), W), 'W cannot be read through DLPack', TypeError)",
    """
dY, x, w = on(second, np.ones((1, 1, 2), "float64")), on(second, X.astype("float64")), on(second, W.astype("float64"))
with jax.enable_x64(True):
    given = [jax.device_put(np.asarray(one, "float64"), second) for one in (dY, x, w)]
for dX in gradsmith.conv_grad(*given):
    assert dX.devices() == {second}
    assert dX.dtype == "float64"
assert gradsmith.conv_grad(*given).dW.tolist() == [[[1, 3]]]
""",
    """
one = on(second, np.ones(1, "float32"))
for made in gradsmith.batch_normalization(on(second), one, one, one, one):
    assert made.devices() == {second}

try:
    gradsmith.batch_normalization(on(second), one, one, on(first, np.ones(1, "float32")), one)
except ValueError as error:
    assert "running_mean is on CpuDevice(id=0)" in str(error)
else:
    raise AssertionError
""",
]

EACH = """
import json, sys, traceback
for code in json.loads(sys.argv[1]):
    try:
        exec(code, dict(globals()))
        print(json.dumps(""))
    except Exception:
        print(json.dumps(traceback.format_exc()))
"""


@pytest.fixture(scope="module")
def faults() -> list[str]:
    """What went wrong with each case."""
    pytest.importorskip("jax")
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    return [json.loads(line) for line in processes.check(JAX + EACH, json.dumps(CASES), **environment).splitlines()]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_arrays_of_jax(faults: list[str], case: int) -> None:
    assert not faults[case], f"{CASES[case]}\n{faults[case]}"


@pytest.mark.parametrize("name", ["CPU_DEVICE", "device1", "device2"])
def test_arrays_of_the_standard(name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device(name)
    x, w = strict.asarray(np.ones((1, 1, 3)), device=device), strict.asarray(np.ones((1, 1, 2)), device=device)
    y = gradsmith.conv(x, w).Y
    assert y.device == device
    assert bool(strict.all(y + strict.asarray(0.0, device=device) == 2.0))
    if name != "CPU_DEVICE":
        with pytest.raises(
            ValueError, match=r"^Conv: W is on .*CPU_DEVICE.*, the inputs before it are on .*; expected arrays on"
        ):
            gradsmith.conv(x, strict.asarray(np.ones((1, 1, 2))))


@pytest.mark.parametrize("of_inputs", ["CPU_DEVICE", "device1", "device2"])
@pytest.mark.parametrize("of_output", ["CPU_DEVICE", "device1", "device2"])
def test_outputs_that_are_given_are_where_the_inputs_are(of_inputs: str, of_output: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    given, wanted = strict.Device(of_inputs), strict.Device(of_output)
    dY, x, w = (strict.asarray(np.ones((1, 1, size)), device=given) for size in (2, 3, 2))
    dX, dW = (strict.asarray(np.full((1, 1, size), -7.0), device=wanted) for size in (3, 2))
    if of_inputs == of_output:
        result = gradsmith.conv_grad(dY, x, w, out={"dW": dW})
        assert result.dW is dW
        assert result.dX.device == given
        assert bool(strict.all(dW == 2.0))
        return
    there = strict.asarray(np.ones((1, 1, 2)), device=given)
    for name, out in (("dW", {"dW": dW}), ("dW", (None, dW, None)), ("dX", {"dX": dX, "dW": there})):
        told = f"^ConvGrad: output {name} is on .*{of_output}.*, the inputs are on .*{of_inputs}.*; expected arrays"
        with pytest.raises(ValueError, match=told):
            gradsmith.conv_grad(dY, x, w, out=out)
    assert bool(strict.all(dX == -7.0))
    assert bool(strict.all(dW == -7.0))
