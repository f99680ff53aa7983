#ifndef GRADSMITH_CUDA_KERNELS_ASYNC_COPIES_CUH_
#define GRADSMITH_CUDA_KERNELS_ASYNC_COPIES_CUH_

/// Copies to shared memory that go on beside the thread, in groups, and what else needs a device
/// with tensor cores for TF32 and bf16.
#if __CUDA_ARCH__ >= 800
#define GRADSMITH_HAS_TENSOR_CORES 1
#endif

namespace gradsmith::cuda {

__device__ __forceinline__ unsigned SharedAddress(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// Begins to copy 16 bytes; zeros, and `from` may be anything, where there is nothing to copy. The
/// L1 cache keeps what is `kShared`: what other threads of the block copy too.
template <bool kShared = false>
__device__ __forceinline__ void BeginCopy(unsigned to, const void* from, bool exists) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  const int bytes = exists ? 16 : 0;
  if constexpr (kShared) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  }
#endif
}

__device__ __forceinline__ void EndOfCopies() {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most kPending groups of copies are under way.
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// Tensor cores cut off the bits that TF32 lacks. What this adds first makes that a rounding, which
/// is off by up to 0.75 of the last bit instead of 0.5, and leaves alone what is a number in TF32.
/// It costs one instruction, where the exact conversion goes through a narrow unit.
__device__ __forceinline__ float BeforeCutOff(float value) {
  constexpr float kShare = 1.5F / 4096;
  return __fmaf_rn(value, kShare, value);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_ASYNC_COPIES_CUH_
