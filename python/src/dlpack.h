#ifndef GRADSMITH_PYTHON_DLPACK_H_
#define GRADSMITH_PYTHON_DLPACK_H_

#include <cstdint>

/// The binary interface of DLPack 1, as far as it is read here: https://dmlc.github.io/dlpack.
namespace gradsmith::python::dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6
};

struct Device {
  std::int32_t type = kCpu;
  std::int32_t index = 0;
};

struct ElementType {
  std::uint8_t code = kFloat;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t rank = 0;
  ElementType type;
  std::int64_t* dims = nullptr;
  /// Null: dense, last dimension fastest.
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

/// What a capsule named "dltensor" holds.
struct ManagedTensor {
  Tensor tensor;
  void* owner = nullptr;
  void (*deleter)(ManagedTensor*) = nullptr;
};

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopied = 2;

/// What a capsule named "dltensor_versioned" holds.
struct ManagedTensorVersioned {
  Version version;
  void* owner = nullptr;
  void (*deleter)(ManagedTensorVersioned*) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous = nullptr;
};

using SetError = void (*)(void* error, const char* kind, const char* message);

/// The functions that an array type offers in its attribute `__dlpack_c_exchange_api__`, a capsule
/// named "dlpack_exchange_api". Those that return an int return 0, or set a Python error.
struct Exchange {
  ExchangeHeader header;
  int (*allocate)(Tensor* prototype, ManagedTensorVersioned** out, void* error, SetError set_error);
  int (*export_managed)(void* array, ManagedTensorVersioned** out);
  int (*import_managed)(ManagedTensorVersioned* tensor, void** array);
  /// May be null. The tensor's dims and strides stay the array's.
  int (*borrow)(void* array, Tensor* out);
  /// May be null.
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** stream);
};

}  // namespace gradsmith::python::dlpack

#endif  // GRADSMITH_PYTHON_DLPACK_H_
