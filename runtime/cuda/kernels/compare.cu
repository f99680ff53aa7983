#include "cuda/kernels/difference.cuh"
#include "cuda/kernels/element_vector.cuh"

// How far two tensors of any types and strides are apart: for verification, not for speed.
/// `found` is zero before. `grid.to_strides` are those of a, `grid.from_strides` those of b.
extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads) gradsmith_compare(
    const void* a,
    const void* b,
    const int a_type,
    const int b_type,
    const gradsmith::cuda::PairGrid grid,
    gradsmith::cuda::Difference* found) {
  using namespace gradsmith::cuda;
  Difference mine = {};
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(grid, indices[i]);
        const double expected = LoadElement(b, b_type, offsets.from);
        AddPair(LoadElement(a, a_type, offsets.to), expected, expected * expected, &mine);
      }
    }
  });
  __shared__ Difference all[kElementThreads];
  const int thread = static_cast<int>(threadIdx.x);
  all[thread] = mine;
  __syncthreads();
  for (int half = kElementThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      Merge(all[thread + half], &all[thread]);
    }
    __syncthreads();
  }
  if (thread == 0) {
    MergeAtomically(all[0], found);
  }
}
