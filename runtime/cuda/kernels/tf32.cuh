#ifndef GRADSMITH_CUDA_KERNELS_TF32_CUH_
#define GRADSMITH_CUDA_KERNELS_TF32_CUH_

namespace gradsmith::cuda {

/// Tensor cores cut off the bits that TF32 lacks. What this adds first makes that a rounding, which
/// is off by up to 0.75 of the last bit instead of 0.5, and leaves alone what is a number in TF32.
/// It costs one instruction, where the exact conversion goes through a narrow unit.
__device__ __forceinline__ float BeforeCutOff(float value) {
  constexpr float kShare = 1.5F / 4096;
  return __fmaf_rn(value, kShare, value);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_TF32_CUH_
