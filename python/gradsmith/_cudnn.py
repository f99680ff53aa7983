"""Where cuDNN is when it came with pip."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_VARIABLE = "GRADSMITH_CUDNN_LIBRARY"


def point_to_pip() -> None:
    """Names the cuDNN of pip's nvidia-cudnn-cu13 or -cu12 to the runtime, which loads it when a GPU is first used.

    Whoever set the variable has decided. PyTorch's wheels come with the same package, so that both use one cuDNN.
    """
    if _VARIABLE in os.environ:
        return
    try:
        package = find_spec("nvidia.cudnn")
    except ModuleNotFoundError:  # no package of NVIDIA's at all
        return
    for folder in package.submodule_search_locations or () if package else ():
        library = Path(folder, "lib/libcudnn.so.9")
        if library.exists():
            os.environ[_VARIABLE] = str(library)
            return
