"""The types of a tensor's elements."""

from __future__ import annotations

from enum import Enum


class DataType(Enum):
    """The element types: all that the generator knows of each. The value is the name in `ops.yaml`."""

    # name, C++ type, whether what is differentiated may have it, NumPy's name (empty where it has none),
    # another spelling that `ops.yaml` may use
    FLOAT = ("float", "float", True, "float32", "")
    DOUBLE = ("double", "double", True, "float64", "")
    MLFLOAT16 = ("MLFloat16", "MLFloat16", True, "float16", "half")
    BFLOAT16 = ("BFloat16", "BFloat16", True, "", "bf16")
    INT32 = ("int32", "std::int32_t", False, "int32", "")
    INT64 = ("int64", "std::int64_t", False, "int64", "")
    UINT8 = ("uint8", "std::uint8_t", False, "uint8", "")
    UINT32 = ("uint32", "std::uint32_t", False, "uint32", "")
    BOOL = ("bool", "bool", False, "bool_", "")

    cpp_type: str
    is_floating: bool
    numpy_name: str
    alias: str

    def __new__(cls, name: str, cpp_type: str, is_floating: bool, numpy_name: str, alias: str) -> DataType:
        self = object.__new__(cls)
        self._value_ = name
        self.cpp_type, self.is_floating = cpp_type, is_floating
        self.numpy_name, self.alias = numpy_name, alias
        return self

    @property
    def cpp_enumerator(self) -> str:
        return f"k{self.value[0].upper()}{self.value[1:]}"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return _SIZES[self]


_SIZES = {
    DataType.FLOAT: 4,
    DataType.DOUBLE: 8,
    DataType.MLFLOAT16: 2,
    DataType.BFLOAT16: 2,
    DataType.INT32: 4,
    DataType.INT64: 8,
    DataType.UINT8: 1,
    DataType.UINT32: 4,
    DataType.BOOL: 1,
}

FLOATING_TYPES = tuple(data_type for data_type in DataType if data_type.is_floating)

# Other spellings that `ops.yaml` may use.
TYPE_ALIASES = {data_type.alias: data_type for data_type in DataType if data_type.alias}

ELEMENT_TYPES = frozenset((*(data_type.value for data_type in DataType), *TYPE_ALIASES))
