#ifndef GRADSMITH_PYTHON_LIBRARY_H_
#define GRADSMITH_PYTHON_LIBRARY_H_

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "dlpack.h"
#include "gradsmith/device_buffer.h"
#include "gradsmith/tensor.h"
#include "torch_functions.h"

namespace gradsmith::python {

class Library;

/// Output is an array that is being computed: one of the library's own, or memory that becomes one
/// when Library::Finish is told that it is whole.
struct Output {
  nanobind::object object;
  /// The library of a caller's array; null for an output that is made.
  std::shared_ptr<const Library> library;
  Array array;
  DeviceBuffer memory;
};

/// Layout is how an array's elements lie.
struct Layout {
  Dims dims;
  Strides strides;
};

/// OutputLayout is how an array to be made lies, also as Python's tuples, which libraries are
/// given.
struct OutputLayout {
  OutputLayout(const Dims& dims, bool is_channels_last);

  Dims dims;
  Strides strides;
  bool is_permuted;
  bool is_empty;
  nanobind::object dims_tuple;
  nanobind::object strides_tuple;
};

/// Property is an attribute of arrays that is described by their type. It is read without being
/// looked up.
class Property {
 public:
  /// `descriptor` may be None; Get is not to be called then.
  explicit Property(nanobind::object descriptor);

  [[nodiscard]] bool is_known() const { return !descriptor_.is_none(); }

  [[nodiscard]] nanobind::object Get(nanobind::handle array) const;

 private:
  nanobind::object descriptor_;
  descrgetfunc get_;
};

/// Library knows how one type of arrays is read, made, and which stream its work is on. What is
/// particular to NumPy, PyTorch and others is said by an adaptor in Python (_libraries.py).
class Library {
 public:
  /// Of returns the library of an array, which is looked for once for each type. Raises TypeError
  /// for what is no array; `name` is the argument's.
  static std::shared_ptr<const Library>
  Of(nanobind::handle array, const char* op, const char* name);

  /// ForgetAll forgets what was found, for adaptors that were imported anew.
  static void ForgetAll();

  explicit Library(nanobind::object adaptor, nanobind::handle type);

  /// IsSame returns whether two types of arrays are of one library.
  [[nodiscard]] bool IsSame(const Library& other) const { return adaptor_.is(other.adaptor_); }
  /// name returns the library's name, for sentences.
  [[nodiscard]] std::string name() const;

  /// is_writable returns whether its arrays may be written to.
  [[nodiscard]] bool is_writable() const { return is_writable_; }

  /// Read borrows an array for a call on the caller's stream. Raises as array.h says, and
  /// ValueError for an array that means more than its memory holds: values that are negated when
  /// they are read, or a part in gradients that the library records.
  [[nodiscard]] Array Read(nanobind::handle array, const char* op, const char* name) const;

  /// MayMove returns whether code of the caller's may run after Read has borrowed an array, and
  /// move its memory: a mode or a subclass of PyTorch's tensors is asked while other arrays are
  /// read and made.
  [[nodiscard]] bool MayMove() const { return exchange_ != nullptr && !IsViewed(); }
  /// ReadMoved borrows an array anew, by what runs no code of the caller's.
  void ReadMoved(nanobind::handle object, const char* op, const char* name, Array* array) const;

  /// has_places returns whether the library has devices that DLPack calls the same.
  [[nodiscard]] bool has_places() const { return !place_of_.is_none(); }
  /// PlaceOf returns the device of an array by the library's own account, where it has places.
  /// Raises TypeError for an array that is not to be had.
  [[nodiscard]] nanobind::object PlaceOf(nanobind::handle array, const char* op, const char* name)
      const;

  /// TellWritten lets the library know that a caller's arrays, in a tuple, were written to: what it
  /// keeps for gradients from before is stale.
  void TellWritten(nanobind::handle arrays) const;

  /// CurrentStream returns the caller's stream on a CUDA device.
  [[nodiscard]] void* CurrentStream(Device device) const;

  /// Make returns an array that is not initialized; its strides are dense in the order of its dims
  /// where the library has none to choose. `like` is one of the library's on the device.
  [[nodiscard]] Output
  Make(DataType type, const OutputLayout& layout, Device device, nanobind::handle like) const;

  /// Finish returns the array that has been computed; `place` is that of the inputs, or None.
  [[nodiscard]] nanobind::object
  Finish(Output output, const Context& context, nanobind::handle place) const;

 private:
  /// ReadMemory is Read without the ValueError.
  [[nodiscard]] Array ReadMemory(nanobind::handle array, const char* op, const char* name) const;
  void CheckMeaning(nanobind::handle array, const char* op, const char* name) const;
  /// IsViewed returns whether PyTorch's own functions read the arrays, so that nobody else is
  /// asked.
  [[nodiscard]] bool IsViewed() const;
  /// ReadTensor returns nothing where PyTorch's own functions are not to be had, or for an array
  /// that needs a closer look.
  [[nodiscard]] std::optional<Array>
  ReadTensor(nanobind::handle array, const char* op, const char* name) const;
  /// FindType returns the type of elements of which `dtypes_` has the library's own object.
  [[nodiscard]] std::optional<DataType> FindType(nanobind::handle dtype) const;
  [[nodiscard]] Array ReadCapsule(nanobind::handle array, const char* op, const char* name) const;
  [[noreturn]] void RaiseUnreadable(
      nanobind::handle array,
      const nanobind::python_error& error,
      const char* op,
      const char* name) const;
  [[nodiscard]] Output MakeDense(
      DataType type,
      const Dims& dims,
      const nanobind::object& tuple,
      Device device,
      nanobind::handle like) const;
  /// MakeStrided returns nothing where the library has no such function, or its array is on another
  /// device.
  [[nodiscard]] std::optional<Output>
  MakeStrided(DataType type, const OutputLayout& layout, Device device) const;
  /// MakeTensor does the same by PyTorch's own functions, once MakeStrided has made one.
  [[nodiscard]] std::optional<Output>
  MakeTensor(DataType type, const OutputLayout& layout, Device device) const;
  [[nodiscard]] Output Allocate(DataType type, const Dims& dims, Device device) const;

  nanobind::object adaptor_;
  nanobind::object empty_;
  nanobind::object plain_empty_;
  /// The functions that take dims, strides and a type, by backend; None where there is none.
  std::array<nanobind::object, 2> empty_strided_;
  /// Tells whether an array's values are the negatives of those in its memory; may be None.
  nanobind::object is_negated_;
  nanobind::object lacks_memory_;
  /// Tells an array's device; None where DLPack does.
  nanobind::object place_of_;
  /// Tells whether a library that records gradients does so now; None of another.
  nanobind::object is_recording_;
  Property requires_grad_;
  /// Tells the type of the elements, whatever a subclass says; None where the buffer is to.
  Property dtype_;
  nanobind::object written_;
  /// The library's types of elements, by DataType; None where it has no such object.
  std::array<nanobind::object, kDataTypeCount> dtypes_;
  TorchFunctions torch_;
  /// Tells the address of a tensor's implementation; None where `torch_` is not to read them.
  Property implementation_;
  nanobind::object key_set_of_;
  /// What PyTorch said of tensors that it made on devices of a backend; 0 before that.
  mutable std::array<std::uint64_t, 2> key_sets_ = {};
  /// The capsule of `exchange_`.
  nanobind::object exchange_owner_;
  const dlpack::Exchange* exchange_ = nullptr;
  /// Offers an array's memory by the buffer protocol; null where DLPack is used.
  GetBuffer get_buffer_ = nullptr;
  bool is_writable_ = true;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_LIBRARY_H_
