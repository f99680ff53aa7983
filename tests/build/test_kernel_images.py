"""Images of kernels as nvcc writes them: the generator reads them where it selects architectures."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from gradsmith_codegen import images

KERNEL = 'extern "C" __device__ int table[4096] = {1};\nextern "C" __global__ void Read(int* y) { *y = table[*y]; }\n'


@pytest.fixture(scope="module")
def nvcc() -> str:
    found = shutil.which("nvcc", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if found is None:
        pytest.skip("there is no nvcc")
    return found


def image(nvcc: str, folder: Path, *options: str) -> bytes:
    (folder / "kernel.cu").write_text(KERNEL)
    architectures = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in (80, 90)]
    command = [nvcc, "--fatbin", *architectures, *options, "-o", "kernel.fatbin", "kernel.cu"]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "kernel.fatbin").read_bytes()


def test_compressed_images_are_read(nvcc: str, tmp_path: Path) -> None:
    if "--compress-mode" not in subprocess.run([nvcc, "--help"], check=True, text=True, capture_output=True).stdout:
        pytest.skip("this nvcc has no --compress-mode")
    compressed = image(nvcc, tmp_path, "--compress-mode=size")
    assert len(compressed) < len(image(nvcc, tmp_path, "--compress-mode=none")) / 4
    both = list(images.entries(compressed))
    assert [(one.architecture, one.kind) for one in both] == [(80, "real"), (90, "real")]
    (kept,) = images.entries(images.only(compressed, ["90"]))
    assert kept == both[1]
