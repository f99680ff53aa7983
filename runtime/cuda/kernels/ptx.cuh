#ifndef GRADSMITH_CUDA_KERNELS_PTX_CUH_
#define GRADSMITH_CUDA_KERNELS_PTX_CUH_

#include <cooperative_groups.h>

#include <cstdint>

/// Every instruction that CUDA C++ has no name for. The emulated GPU of the tests has a file of the
/// same name in this one's place, so that nothing else of a kernel is particular to a GPU.
#if __CUDA_ARCH__ >= 800
#define GRADSMITH_HAS_TENSOR_CORES 1
#endif
/// Products of warpgroups are of sm_90a alone: kernels of them are there for no other architecture.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GRADSMITH_HAS_WARPGROUPS 1
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

__device__ __forceinline__ void LoadShared(unsigned address, std::uint32_t (&bits)[4]) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "r"(address));
}

__device__ __forceinline__ void LoadShared(unsigned address, std::uint32_t (&bits)[2]) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(bits[0]), "=r"(bits[1]) : "r"(address));
}

__device__ __forceinline__ void StoreShared(unsigned address, const std::uint32_t (&bits)[2]) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(bits[0]), "r"(bits[1])
               : "memory");
}

__device__ __forceinline__ void StoreShared(unsigned address, const float (&values)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(values[0]),
               "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

/// 2^x within 2 units in the last place.
__device__ __forceinline__ float Exp2Approximately(float x) {
  float value = 0;
  asm("ex2.approx.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

/// 2^x within 2 units in the last place, and 0 where that is no normal number.
__device__ __forceinline__ float NormalExp2Approximately(float x) {
  float value = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

/// 1 / x within 1 unit in the last place, for an x that is no subnormal number.
__device__ __forceinline__ float ReciprocalApproximately(float x) {
  float value = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

/// 1 / x within 2^-20 of itself, for an x that is no subnormal number.
__device__ __forceinline__ double ReciprocalApproximately(double x) {
  double value = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(value) : "d"(x));
  return value;
}

/// a / b within 2 units in the last place, over the whole range of float.
__device__ __forceinline__ float DivideApproximately(float a, float b) {
  float value = 0;
  asm("div.full.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
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

/// What is the same in all lanes of a warp, for the compiler to know.
__device__ __forceinline__ int SameInWarp(int value) {
  return __shfl_sync(0xFFFFFFFFU, value, 0);
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

/// BeginCopyOfPart begins to copy the first `bytes`, an even number, of 4, 8 or 16 bytes to shared
/// memory; the rest there becomes 0. The L2 cache gets the whole line, since others are to follow.
template <int kBytes>
__device__ __forceinline__ void BeginCopyOfPart(unsigned to, const void* from, int bytes) {
#ifdef GRADSMITH_HAS_TENSOR_CORES
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
#else
  const auto* const words = static_cast<const std::uint32_t*>(from);
  for (int i = 0; i < kBytes / 4; ++i) {
    std::uint32_t bits = 4 * i + 4 <= bytes ? words[i] : 0;
    if (4 * i + 2 == bytes) {
      bits = *reinterpret_cast<const std::uint16_t*>(words + i);
    }
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + 4 * i), "r"(bits) : "memory");
  }
#endif
}

/// BeginCopyOfLine does so with all bytes, which become 0 where none exist.
template <int kBytes>
__device__ __forceinline__ void BeginCopyOfLine(unsigned to, const void* from, bool exists) {
  BeginCopyOfPart<kBytes>(to, from, exists ? kBytes : 0);
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

/// A barrier for so many threads of a block, whole warps, which alone use its number, 1 to 15.
__device__ __forceinline__ void SynchronizeWarps(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
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

/// AddProductOfHalf adds 16 terms in half: two to a register, the next of whose kind is 8 terms on.
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

/// AddHalfProductOfHalf adds 8 terms in half.
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

/// AddProductOfTf32 adds 8 terms in TF32, whose further bits are cut off.
__device__ __forceinline__ void
AddProductOfTf32(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  GRADSMITH_PRODUCT("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
}

#undef GRADSMITH_PRODUCT

/// AddProductOfDouble adds 8 terms in double.
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

// --- copies in bulk ------------------------------------------------------------------------------

#ifdef GRADSMITH_HAS_WARPGROUPS

/// Has a barrier in shared memory, 8 bytes at a multiple of 8, wait for so many arrivals in each
/// phase. Others may use it after ShowBarriers and a barrier of the block.
__device__ __forceinline__ void InitBarrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void ShowBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives at a barrier.
__device__ __forceinline__ void Arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives at a barrier, whose phase ends once so many bytes more have been copied as well.
__device__ __forceinline__ void ArriveBeforeCopies(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Waits until a barrier's phase of that parity has ended: the first one's is 0.
__device__ __forceinline__ void WaitForPhase(unsigned barrier, int parity) {
  asm volatile(
      "{ .reg .pred done; again: "
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Begins to copy so many bytes, a multiple of 16, from a multiple of 16 to one in shared memory,
/// which the barrier counts.
__device__ __forceinline__ void
BeginBulkCopy(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

#endif

// --- products of warpgroups ----------------------------------------------------------------------

#ifdef GRADSMITH_HAS_WARPGROUPS

/// Takes registers for each thread of a warpgroup, which waits for others to leave them.
template <int kRegisters>
__device__ __forceinline__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Leaves all but so many registers of each thread of a warpgroup to others.
template <int kRegisters>
__device__ __forceinline__ void LeaveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Has products of warpgroups see what the thread has written to shared memory, after the next
/// barrier.
__device__ __forceinline__ void ShowToProducts() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Begins a group of products: what a warpgroup has written to their registers they see.
__device__ __forceinline__ void BeginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void EndOfProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most kPending groups of products are under way.
template <int kPending>
__device__ __forceinline__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// How products find their columns, from an address in shared memory on, which is a multiple of 256:
/// the terms of each are next to each other in 32 bytes, whose two 16-byte chunks are exchanged in
/// every second four columns (bit 4 of the address by bit 7).
__device__ __forceinline__ std::uint64_t ColumnsAt(unsigned address) {
  constexpr std::uint64_t kExchanged = 3ULL << 62;
  constexpr std::uint64_t kEightColumns = (8 * 32 / 16ULL) << 32;
  constexpr std::uint64_t kUnused = 1ULL << 16;
  return kExchanged | kEightColumns | kUnused | (address >> 4);
}

/// Begins to add the product of 64 rows and 64 columns of 8 terms in TF32, whose further bits are
/// cut off, to a warpgroup's sums. Each of its warps has 16 rows, and lane l of them l / 4 and l / 4
/// + 8: their terms l % 4, and those 4 on, and the sums at columns 2 (l % 4) and the next of every
/// eight.
__device__ __forceinline__ void
AddWarpgroupProduct(const std::uint32_t (&a)[4], std::uint64_t columns, float (&sums)[32]) {
  asm volatile(
      "{ .reg .pred adds; setp.ne.b32 adds, 1, 0; "
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1; }"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]),
        "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]),
        "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]),
        "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]),
        "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]),
        "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));
}

/// The same of 128 columns.
__device__ __forceinline__ void
AddWarpgroupProduct(const std::uint32_t (&a)[4], std::uint64_t columns, float (&sums)[64]) {
  asm volatile(
      "{ .reg .pred adds; setp.ne.b32 adds, 1, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, adds, 1, 1; }"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]),
        "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]),
        "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]),
        "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]),
        "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]),
        "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31]),
        "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
        "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]),
        "+f"(sums[40]), "+f"(sums[41]), "+f"(sums[42]), "+f"(sums[43]),
        "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]),
        "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]),
        "+f"(sums[52]), "+f"(sums[53]), "+f"(sums[54]), "+f"(sums[55]),
        "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]),
        "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns));
}

#endif

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_PTX_CUH_
