#ifndef GRADSMITH_TESTS_SUPPORT_TEST_TENSOR_H_
#define GRADSMITH_TESTS_SUPPORT_TEST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/tensor.h"
#include "reference/tensor.h"
#include "support/memory.h"

namespace gradsmith::support {

/// Layout says how a tensor lies in memory.
enum class Layout : std::uint8_t {
  kContiguous,
  kChannelsLast,  ///< (N, D..., C); tensors of fewer than three dims are contiguous
  kStrided,       ///< gaps in every dimension, and data aligned to one element only
  kBroadcast,     ///< incoming gradients have zero strides in the first and the last dimension
};

/// StridesFor returns the strides of a tensor in the layout, in elements.
std::vector<std::int64_t> StridesFor(Layout layout, const reference::Shape& dims);

/// ToIntList returns the library's value of a shape or of strides.
IntList ToIntList(const std::vector<std::int64_t>& list);

/// ToString returns, for example, "[2, 3]".
std::string ToString(const std::vector<std::int64_t>& list);

/// ForEachOffset calls visit(offset) for every index of a tensor, last dimension fastest.
template <typename Visit>
void ForEachOffset(
    const reference::Shape& dims,
    const std::vector<std::int64_t>& strides,
    const Visit& visit) {
  std::vector<std::int64_t> index(dims.size());
  std::int64_t offset = 0;
  for (std::int64_t left = reference::Count(dims); left > 0; --left) {
    visit(offset);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) {
        break;
      }
      offset -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

/// TestTensor is a tensor in memory of its own with a guard zone on either side. Whatever is not
/// one of its elements holds a pattern, so that a stray write shows.
class TestTensor {
 public:
  /// All elements hold NaNs (every bit set) until Fill.
  TestTensor(DataType type, const reference::Shape& dims, Layout layout, Device device = {});

  /// Fill rounds values to the type and writes them. Of a broadcast tensor, the last value of those
  /// that share an element stays.
  void Fill(const std::vector<double>& values);
  /// Poison sets every bit of the elements and of all around them.
  void Poison();

  /// Values returns the elements, last dimension fastest.
  [[nodiscard]] std::vector<double> Values() const;
  /// ElementBytes returns the elements' bytes in the same order.
  [[nodiscard]] std::vector<std::byte> ElementBytes() const;
  /// AllBytes returns the whole block, guard zones and gaps too.
  [[nodiscard]] std::vector<std::byte> AllBytes() const { return memory_->CopyOut(); }
  /// SurroundingsIntact is true while guard zones and gaps are as Poison left them.
  [[nodiscard]] bool SurroundingsIntact() const;

  [[nodiscard]] TensorRef Ref() const;
  [[nodiscard]] const reference::Shape& dims() const { return dims_; }
  [[nodiscard]] const std::vector<std::int64_t>& strides() const { return strides_; }
  [[nodiscard]] DataType type() const { return type_; }

 private:
  [[nodiscard]] std::size_t ByteOffset(std::int64_t offset) const;

  DataType type_;
  reference::Shape dims_;
  std::vector<std::int64_t> strides_;
  Device device_;
  std::size_t data_begin_;
  std::size_t size_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_TEST_TENSOR_H_
