#ifndef AUTOENCODER_TENSOR_H_
#define AUTOENCODER_TENSOR_H_

#include <gradsmith/gradsmith.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

/// Tensor owns the values of a dense tensor and serves as a view wherever gradsmith takes one.
struct Tensor {
  explicit Tensor(const gradsmith::Dims& dims, float fill = 0)
      : dims(dims), values(gradsmith::NumElements(dims), fill) {}

  operator gradsmith::TensorView<float>() {  // NOLINT(google-explicit-constructor)
    return {values.data(), dims};
  }
  operator gradsmith::TensorView<const float>() const {  // NOLINT(google-explicit-constructor)
    return {values.data(), dims};
  }

  /// At returns the values of one image or filter: those at index i of the first dimension.
  std::span<float> At(std::int64_t i) {
    return std::span(values).subspan(i * SliceSize(), SliceSize());
  }
  [[nodiscard]] std::span<const float> At(std::int64_t i) const {
    return std::span(values).subspan(i * SliceSize(), SliceSize());
  }

  gradsmith::Dims dims;
  std::vector<float> values;

 private:
  [[nodiscard]] std::int64_t SliceSize() const { return std::ssize(values) / dims[0]; }
};

/// Check turns an error into an exception: in a program this small, one place reports them all.
inline void Check(const gradsmith::Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

#endif  // AUTOENCODER_TENSOR_H_
