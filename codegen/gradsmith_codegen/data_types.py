"""The types of a tensor's elements."""

from __future__ import annotations

from enum import Enum


class DataType(Enum):
    """The element types, the floating ones first. All that the generator, the runtime and the kernels know of
    each is said here: `pytest tests/codegen --refresh` writes what headers need of it (type_tables.py). The
    value is the name in `ops.yaml`."""

    # name, C++ type and that in CUDA's kernels, bytes and whether what is differentiated may have it, the
    # code of DLPack and the number of PyTorch's ScalarType and NumPy's name (empty: none), another
    # spelling that `ops.yaml` may use
    FLOAT = ("float", ("float", "float"), (4, True), (2, 6, "float32"), "")
    DOUBLE = ("double", ("double", "double"), (8, True), (2, 7, "float64"), "")
    MLFLOAT16 = ("MLFloat16", ("MLFloat16", "__half"), (2, True), (2, 5, "float16"), "half")
    BFLOAT16 = ("BFloat16", ("BFloat16", "__nv_bfloat16"), (2, True), (4, 15, ""), "bf16")
    INT32 = ("int32", ("std::int32_t", "std::int32_t"), (4, False), (0, 3, "int32"), "")
    INT64 = ("int64", ("std::int64_t", "std::int64_t"), (8, False), (0, 4, "int64"), "")
    UINT8 = ("uint8", ("std::uint8_t", "std::uint8_t"), (1, False), (1, 0, "uint8"), "")
    UINT32 = ("uint32", ("std::uint32_t", "std::uint32_t"), (4, False), (1, 28, "uint32"), "")
    BOOL = ("bool", ("bool", "std::uint8_t"), (1, False), (6, 11, "bool_"), "")

    cpp_type: str
    kernel_type: str
    size: int
    is_floating: bool
    dlpack_code: int
    torch_number: int
    numpy_name: str
    alias: str

    def __new__(
        cls,
        name: str,
        cpp: tuple[str, str],
        element: tuple[int, bool],
        foreign: tuple[int, int, str],
        alias: str,
    ) -> DataType:
        self = object.__new__(cls)
        self._value_ = name
        self.cpp_type, self.kernel_type = cpp
        self.size, self.is_floating = element
        self.dlpack_code, self.torch_number, self.numpy_name = foreign
        self.alias = alias
        return self

    @property
    def whole_numbers(self) -> tuple[int, int]:
        """The least and the most that an integer type has."""
        is_signed = self.dlpack_code == 0
        bits = 8 * self.size - is_signed
        return -(2**bits) if is_signed else 0, 2**bits - 1

    @property
    def cpp_enumerator(self) -> str:
        return f"k{self.value[0].upper()}{self.value[1:]}"


FLOATING_TYPES = tuple(data_type for data_type in DataType if data_type.is_floating)

# Other spellings that `ops.yaml` may use.
TYPE_ALIASES = {data_type.alias: data_type for data_type in DataType if data_type.alias}

ELEMENT_TYPES = frozenset((*(data_type.value for data_type in DataType), *TYPE_ALIASES))
