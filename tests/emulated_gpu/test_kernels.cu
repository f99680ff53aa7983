#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"

// Kernels right and wrong, for emulated_gpu_test.cc. Blocks have 64 threads.

/// Each thread writes what its neighbour on either side has.
template <bool kWaits>
__device__ __forceinline__ void Neighbours(int step, int* to) {
  __shared__ int values[64];
  const int thread = static_cast<int>(threadIdx.x);
  values[thread] = thread;
  if (kWaits) {
    __syncthreads();
  }
  to[thread] = values[(thread + step + 64) % 64];
}

extern "C" __global__ void test_neighbours(int step, int* to) {
  Neighbours<true>(step, to);
}

extern "C" __global__ void test_neighbours_without_barrier(int step, int* to) {
  Neighbours<false>(step, to);
}

/// Each block counts, in shared memory and for all to see; then each writes what it sees of both.
template <bool kWaits>
__device__ __forceinline__ void CountOfGrid(int* count, int* seen) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  int* const own = reinterpret_cast<int*>(shared);
  if (threadIdx.x == 0) {
    own[0] = static_cast<int>(blockIdx.x);
    atomicAdd(count, 1);
  }
  if (kWaits) {
    gradsmith::cuda::SynchronizeGrid();
  } else {
    __syncthreads();
  }
  seen[blockIdx.x * blockDim.x + threadIdx.x] = 100 * *count + own[0];
}

extern "C" __global__ void test_grid(int* count, int* seen) {
  CountOfGrid<true>(count, seen);
}

extern "C" __global__ void test_grid_without_barrier(int* count, int* seen) {
  CountOfGrid<false>(count, seen);
}

/// The first block ends while the others wait for it.
extern "C" __global__ void test_grid_deadlock() {
  if (blockIdx.x != 0) {
    gradsmith::cuda::SynchronizeGrid();
  }
}

/// Half of a block's threads wait for the grid, the others for the block.
extern "C" __global__ void test_grid_or_block() {
  if (threadIdx.x % 2 == 0) {
    gradsmith::cuda::SynchronizeGrid();
  }
  __syncthreads();
}

/// Copies 16 bytes through shared memory.
extern "C" __global__ void test_copy(const uint4* from, uint4* to, int waits) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  BeginCopy(SharedAddress(shared + threadIdx.x), from + threadIdx.x, true);
  EndOfCopies();
  BeginCopy(SharedAddress(shared + 64 + threadIdx.x), from, false);
  EndOfCopies();
  if (waits == 1) {
    WaitForCopies<1>();
  } else if (waits == 2) {
    WaitForCopies<2>();
  }
  to[threadIdx.x] = shared[threadIdx.x];
}

extern "C" __global__ void test_copy_of_nothing(uint4* to) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  BeginCopy(SharedAddress(shared + threadIdx.x), nullptr, false);
  EndOfCopies();
  WaitForCopies<0>();
  to[threadIdx.x] = shared[threadIdx.x];
}

extern "C" __global__ void test_copy_beyond(const uint4* from) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  BeginCopy(SharedAddress(shared + 64), from, true);
}

extern "C" __global__ void __launch_bounds__((2 * 64), 3) test_write_at(char* to, long long at) {
  if (threadIdx.x == 0) {
    to[at] = 1;
  }
}

extern "C" __global__ void test_load_word(const char* from, long long at, int* to) {
  to[threadIdx.x] = *reinterpret_cast<const int*>(from + at);
}

/// Odd threads wait at a barrier, even ones for their warp.
extern "C" __global__ void test_deadlock() {
  if (threadIdx.x % 2 == 0) {
    __ballot_sync(0xFFFFFFFFU, true);
  }
  __syncthreads();
}

/// Each warp gives its number to the one beside it; two have a barrier.
extern "C" __global__ void test_some_warps(int* seen) {
  __shared__ int given[128];
  const int thread = static_cast<int>(threadIdx.x);
  given[thread] = thread;
  gradsmith::cuda::SynchronizeWarps(1 + thread / 64, 64);
  seen[thread] = given[thread ^ 32];
}

/// The last warp does not come to the barrier of two.
extern "C" __global__ void test_missing_warp() {
  if (threadIdx.x < 32) {
    gradsmith::cuda::SynchronizeWarps(1, 64);
  }
}

/// Two warps come to a barrier for different numbers of threads.
extern "C" __global__ void test_barrier_of_two_sizes() {
  gradsmith::cuda::SynchronizeWarps(1, threadIdx.x < 32 ? 64 : 32);
}

extern "C" __global__ void test_warp(int* sums, unsigned* votes) {
  int sum = static_cast<int>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance);
  }
  sums[threadIdx.x] = sum;
  sums[64 + threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 3);
  votes[threadIdx.x] = __ballot_sync(0xFFFFFFFFU, threadIdx.x % 3 == 0);
}

/// Lanes exchange within groups of eight.
extern "C" __global__ void test_groups(int* values) {
  values[threadIdx.x] = __shfl_down_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 3, 8);
  const int first = static_cast<int>(threadIdx.x) / 8 * 8;
  values[64 + threadIdx.x] = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), first);
}

/// Half of a warp exchanges while the other half does.
extern "C" __global__ void test_lanes(unsigned even, unsigned odd, unsigned* votes) {
  votes[threadIdx.x] = __ballot_sync(threadIdx.x % 2 == 0 ? even : odd, true);
}

/// The order of threads, counted through all blocks.
extern "C" __global__ void test_order(int* count, int* order) {
  order[atomicAdd(count, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

/// One warp: matrices of 8 x 8 numbers of 16 bits, as they are and transposed.
extern "C" __global__ void
test_matrices(const uint4* from, std::uint32_t* plain, std::uint32_t* transposed) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  shared[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  std::uint32_t to[4];
  LoadMatrices(SharedAddress(shared + threadIdx.x), to);
  for (int i = 0; i < 4; ++i) {
    plain[4 * threadIdx.x + i] = to[i];
  }
  LoadTransposed(SharedAddress(shared + threadIdx.x), to);
  for (int i = 0; i < 4; ++i) {
    transposed[4 * threadIdx.x + i] = to[i];
  }
}

/// One warp: 16 x 16 by 16 x 8 numbers in half. Operands are read by LoadMatrices from rows of a,
/// and of b turned around.
extern "C" __global__ void test_half_product(const uint4* a, const uint4* b, float* sums) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  const int lane = Lane();
  // Row r of a has two chunks; the matrices are rows 0 to 7 and 8 to 15 of each chunk.
  shared[lane] = a[lane % 16 * 2 + lane / 16];
  shared[32 + lane] = b[lane % 8 * 2 + lane / 8 % 2];
  __syncthreads();
  std::uint32_t of_a[4];
  std::uint32_t of_b[4];
  LoadMatrices(SharedAddress(shared + lane), of_a);
  LoadMatrices(SharedAddress(shared + 32 + lane), of_b);
  const std::uint32_t first[2] = {of_b[0], of_b[1]};
  float mine[4] = {1, 1, 1, 1};
  AddProductOfHalf(of_a, first, mine);
  for (int i = 0; i < 4; ++i) {
    sums[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = mine[i];
  }
}

/// One warp: every row and column is `a` and `b` once, and else zero.
extern "C" __global__ void test_tf32_product(float a, float b, float* sums) {
  using namespace gradsmith::cuda;
  const bool is_first = Lane() % 4 == 0;
  const std::uint32_t of_a[4] = {
      is_first ? __float_as_uint(a) : 0, is_first ? __float_as_uint(a) : 0, 0, 0};
  const std::uint32_t of_b[2] = {is_first ? __float_as_uint(b) : 0, 0};
  float mine[4] = {};
  AddProductOfTf32(of_a, of_b, mine);
  for (int i = 0; i < 4; ++i) {
    sums[4 * Lane() + i] = mine[i];
  }
}

/// One warp, half of which multiplies while the other half waits for all of it.
extern "C" __global__ void test_two_instructions() {
  using namespace gradsmith::cuda;
  const std::uint32_t a[4] = {};
  const std::uint32_t b[2] = {};
  float sums[4] = {};
  if (Lane() < 16) {
    SynchronizeWarp();
  } else {
    AddProductOfTf32(a, b, sums);
  }
}

/// Copies 16 bytes a thread through shared memory, twice, by a barrier in it; the first thread of
/// the second warp copies for all. They are read after the wait for their phase or before it.
extern "C" __global__ void test_bulk_copy(const uint4* from, uint4* to, bool waits) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  constexpr int kBytes = 64 * 16;
  const unsigned copied = SharedAddress(shared + 64);
  if (threadIdx.x == 0) {
    InitBarrier(copied, 1);
    ShowBarriers();
  }
  __syncthreads();
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x == 32) {
      ArriveBeforeCopies(copied, kBytes);
      BeginBulkCopy(SharedAddress(shared), from + i * 64, kBytes, copied);
    }
    if (waits) {
      WaitForPhase(copied, i);
    }
    to[i * 64 + threadIdx.x] = shared[threadIdx.x];
    WaitForPhase(copied, i);
    __syncthreads();
  }
}

/// Waits for a barrier at which one thread too few arrives.
extern "C" __global__ void test_missing_arrival() {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  const unsigned barrier = SharedAddress(shared);
  if (threadIdx.x == 0) {
    InitBarrier(barrier, 64);
  }
  __syncthreads();
  if (threadIdx.x != 7) {
    Arrive(barrier);
  }
  WaitForPhase(barrier, 0);
}

/// Ends before what it copies is there.
extern "C" __global__ void test_bulk_copy_left(const uint4* from) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using namespace gradsmith::cuda;
  const unsigned barrier = SharedAddress(shared + 64);
  if (threadIdx.x == 0) {
    InitBarrier(barrier, 1);
    ArriveBeforeCopies(barrier, 16);
    BeginBulkCopy(SharedAddress(shared), from, 16, barrier);
  }
}
