#ifndef GRADSMITH_CUDA_KERNELS_PTX_CUH_
#define GRADSMITH_CUDA_KERNELS_PTX_CUH_

#include <cooperative_groups.h>

#include <cstdint>

/// Every instruction that CUDA C++ has no name for. The emulated GPU of the tests has a file of the
/// same name in this one's place, so that nothing else of a kernel is particular to a GPU.
#if __CUDA_ARCH__ >= 800
#define GRADSMITH_HAS_TENSOR_CORES 1
#endif

/// Declares an array of uint4: the shared memory that a launch adds to what the kernel declares.
#define GRADSMITH_DYNAMIC_SHARED(name) extern __shared__ uint4 name[]

namespace gradsmith::cuda {

/// Where something is within shared memory, in bytes.
__device__ __forceinline__ unsigned SharedAddress(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ float LoadShared(unsigned address) {
  float value = 0;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
  return value;
}

/// Asks the L2 cache for the line of an address.
__device__ __forceinline__ void PrefetchToL2(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/// threadIdx.x, read anew: what is made of it takes no registers between its uses.
__device__ __forceinline__ int ThreadReadAnew() {
  int thread = 0;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/// Keeps the compiler from taking a pointer apart: what is added to it takes one instruction then.
template <typename T>
__device__ __forceinline__ const T* Whole(const T* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

/// Begins to copy 16 bytes to shared memory; zeros, and `from` may be anything, where there is
/// nothing to copy. The L1 cache keeps what is `kShared`: what other threads of the block copy too.
/// Before compute capability 8.0 it is copied at once.
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
#else
  const uint4 bits = exists ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bits.x), "r"(bits.y),
               "r"(bits.z), "r"(bits.w)
               : "memory");
#endif
}

/// Ends a group of copies.
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

/// A barrier for the kThreads threads of a block, which come to it at different places of the code.
template <int kThreads>
__device__ __forceinline__ void SynchronizeBlock() {
  asm volatile("bar.sync 0, %0;" ::"n"(kThreads) : "memory");
}

/// A barrier for the threads of a warp.
__device__ __forceinline__ void SynchronizeWarp() {
  __syncwarp();
}

/// A barrier for all threads of a cooperative launch: what they wrote to memory before, all see.
__device__ __forceinline__ void SynchronizeGrid() {
  cooperative_groups::this_grid().sync();
}

/// Reads four matrices of 8 rows of 16 bytes, whose addresses the lanes give: those of row lane % 8
/// of matrix lane / 8. Every lane gets 4 bytes of each: those at lane % 4 of row lane / 4.
__device__ __forceinline__ void LoadMatrices(unsigned row, std::uint32_t (&to)[4]) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
#endif
}

/// The same of 16-bit elements, with rows and columns exchanged.
__device__ __forceinline__ void LoadTransposed(unsigned row, std::uint32_t (&to)[4]) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
#endif
}

/// The same of two matrices, whose addresses the first 16 lanes give.
__device__ __forceinline__ void LoadTransposed(unsigned row, std::uint32_t (&to)[2]) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(row));
#endif
}

// Adds the product of 16 rows and 8 columns to a warp's sums. Lane l has of rows l / 4 and l / 4 +
// 8 the terms from l % 4 on, the same terms of column l / 4, and the sums at columns 2 (l % 4) and
// the next.
#ifdef GRADSMITH_HAS_TENSOR_CORES
#define GRADSMITH_PRODUCT(instruction)                                               \
  asm(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                   \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
#define GRADSMITH_PRODUCT(instruction)
#endif

/// Of 16 terms in half: two to a register, the next of whose kind is 8 terms on.
__device__ __forceinline__ void
AddProductOfHalf(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  GRADSMITH_PRODUCT("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
}

/// The same in bf16.
__device__ __forceinline__ void
AddProductOfBfloat16(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  GRADSMITH_PRODUCT("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
}

// The same of half as many terms: lane l has of its rows, and of its column, those from 2 (l % 4)
// on.
#ifdef GRADSMITH_HAS_TENSOR_CORES
#define GRADSMITH_HALF_PRODUCT(instruction)                              \
  asm(instruction " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])       \
      : "r"(a[0]), "r"(a[1]), "r"(b))
#else
#define GRADSMITH_HALF_PRODUCT(instruction)
#endif

/// Of 8 terms in half.
__device__ __forceinline__ void
AddHalfProductOfHalf(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
  GRADSMITH_HALF_PRODUCT("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
}

/// The same in bf16.
__device__ __forceinline__ void
AddHalfProductOfBfloat16(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
  GRADSMITH_HALF_PRODUCT("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32");
}

#undef GRADSMITH_HALF_PRODUCT

/// Of 8 terms in TF32, whose further bits are cut off.
__device__ __forceinline__ void
AddProductOfTf32(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  GRADSMITH_PRODUCT("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
}

#undef GRADSMITH_PRODUCT

/// Of 8 terms in double.
__device__ __forceinline__ void
AddProductOfDouble(const double (&a)[4], const double (&b)[2], double (&sums)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif defined(GRADSMITH_HAS_TENSOR_CORES)
#pragma unroll
  for (int term = 0; term < 2; ++term) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(sums[2 * half]), "+d"(sums[2 * half + 1])
          : "d"(a[2 * term + half]), "d"(b[term]));
    }
  }
#endif
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_PTX_CUH_
