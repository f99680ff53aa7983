#ifndef GRADSMITH_BENCH_GPU_LEGACY_H_
#define GRADSMITH_BENCH_GPU_LEGACY_H_

#include <cudnn_ops.h>

#include "cuda/legacy_descriptor.h"
#include "gpu/measure.h"

/// What calls of cuDNN's legacy API have in common: called plainly, as ONNX Runtime's training ops
/// did, it is the other route that the GPU benchmark times.
namespace gradsmith::bench {

/// LegacyTensor is how the legacy API is told of a tensor.
class LegacyTensor {
 public:
  /// Throws where cuDNN refuses it.
  LegacyTensor(DataType type, const Dims& dims, const Strides& strides);
  [[nodiscard]] cudnnTensorDescriptor_t raw() const { return descriptor_.raw(); }

 protected:
  /// The descriptor is made, and describes nothing yet.
  LegacyTensor();

 private:
  cuda::TensorDescriptor descriptor_;
};

/// LegacyHandle returns the thread's handle of cuDNN, which works on the GPU's stream.
cudnnHandle_t LegacyHandle(const Gpu& gpu);

/// LegacyFactors are one and zero: cuDNN reads factors in double for tensors of double and in float
/// for all others.
struct LegacyFactors {
  explicit LegacyFactors(bool is_double)
      : one(is_double ? static_cast<const void*>(&kOnes.wide) : &kOnes.narrow),
        zero(is_double ? static_cast<const void*>(&kZeros.wide) : &kZeros.narrow) {}
  const void* one;
  const void* zero;

 private:
  struct Both {
    double wide;
    float narrow;
  };
  static constexpr Both kOnes = {1, 1};
  static constexpr Both kZeros = {0, 0};
};

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_LEGACY_H_
