#ifndef GRADSMITH_CUDA_LEGACY_DESCRIPTOR_H_
#define GRADSMITH_CUDA_LEGACY_DESCRIPTOR_H_

#include <utility>

#include "cuda/cudnn.h"

namespace gradsmith::cuda {

/// LegacyDescriptor owns a descriptor of cuDNN's legacy API, which is made at its place().
template <typename Raw, cudnnStatus_t (*CudnnApi::*destroy)(Raw)>
class LegacyDescriptor {
 public:
  LegacyDescriptor() = default;
  LegacyDescriptor(const LegacyDescriptor&) = delete;
  LegacyDescriptor& operator=(const LegacyDescriptor&) = delete;
  LegacyDescriptor(LegacyDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  LegacyDescriptor& operator=(LegacyDescriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~LegacyDescriptor() {
    if (raw_ != nullptr) {
      (Cudnn().*destroy)(raw_);
    }
  }

  [[nodiscard]] Raw raw() const { return raw_; }
  [[nodiscard]] Raw* place() { return &raw_; }

 private:
  Raw raw_ = nullptr;
};

using TensorDescriptor =
    LegacyDescriptor<cudnnTensorDescriptor_t, &CudnnApi::cudnnDestroyTensorDescriptor>;

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_LEGACY_DESCRIPTOR_H_
