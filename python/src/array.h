#ifndef GRADSMITH_PYTHON_ARRAY_H_
#define GRADSMITH_PYTHON_ARRAY_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "dlpack.h"
#include "gradsmith/tensor.h"

namespace gradsmith::python {

/// BufferRelease gives a view of the buffer protocol back.
struct BufferRelease {
  void operator()(Py_buffer* view) const {
    PyBuffer_Release(view);
    delete view;
  }
};

/// Array is a caller's array as the runtime sees it, with what keeps its memory where it is.
struct Array {
  TensorRef ref;
  bool is_writable = true;
  /// A tensor that was taken out of its capsule of DLPack; its deleter is called at the end.
  std::shared_ptr<void> managed;
  std::unique_ptr<Py_buffer, BufferRelease> buffer;
};

/// The readers trust what DLPack and the buffer protocol say, and nothing else that an array says
/// of itself. They raise TypeError where elements are of no type that an op takes, and ValueError
/// where strides or addresses are not whole elements, or what is said cannot be so. `name` begins
/// the sentence: "ConvGrad: dY".

/// FromTensor borrows what DLPack describes.
Array FromTensor(const dlpack::Tensor& tensor, bool is_writable, const char* op, const char* name);

/// FromCapsule takes the tensor out of a capsule that `__dlpack__` returned, as its one consumer:
/// nobody else can let go of the memory.
Array FromCapsule(const nanobind::object& capsule, const char* op, const char* name);

/// GetBuffer fills a view of an object's memory, as PyObject_GetBuffer does: the limited API has no
/// name for its type.
using GetBuffer = int (*)(PyObject* object, Py_buffer* view, int flags);

/// FromBuffer uses the buffer protocol by `get`, which is the array's library's own: a subclass may
/// define `__buffer__`. `type` is that of the elements where it is known for sure;
/// elements that the protocol has no name for may come as integers of the same size. `dtype` is
/// what sentences call elements that no op takes, where it is valid. Empty, and no error, where the
/// array does not offer its memory so.
std::optional<Array> FromBuffer(
    GetBuffer get,
    nanobind::handle object,
    std::optional<DataType> type,
    nanobind::handle dtype,
    const char* op,
    const char* name);

/// RaiseElementType raises the TypeError for elements that no op takes.
[[noreturn]] void RaiseElementType(const char* op, const char* name, const std::string& got);

/// DataTypeNames lists the names of all types, for sentences.
std::string DataTypeNames();

/// ToElementType returns DLPack's name of a type.
dlpack::ElementType ToElementType(DataType type);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_ARRAY_H_
