"""Where the library for C++ lies that a wheel brings along."""

from pathlib import Path


def get_cmake_dir() -> str:
    """Returns the folder of the CMake package that this Python package brings along: the static library, its headers
    and the generator, for `cmake -Dgradsmith_DIR=<folder>` and `find_package(gradsmith)`.

    Raises FileNotFoundError where there is none: in a build tree, or in a wheel that was built with
    GRADSMITH_INSTALL=OFF.
    """
    folder = Path(__file__).parent / "_prefix/lib/cmake/gradsmith"
    if not (folder / "gradsmith-config.cmake").exists():
        raise FileNotFoundError(f"{folder} has no CMake package: gradsmith was built with GRADSMITH_INSTALL=OFF")
    return str(folder)
