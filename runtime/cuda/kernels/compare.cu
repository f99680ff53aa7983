#include "cuda/kernels/element_vector.cuh"

// How far two tensors of any types and strides are apart: for verification, not for speed.
namespace gradsmith::cuda {
namespace {

/// The library's DataType, as a number.
__device__ __forceinline__ double Load(int type, const void* data, std::int64_t offset) {
  switch (type) {
    case 0:
      return static_cast<const float*>(data)[offset];
    case 1:
      return static_cast<const double*>(data)[offset];
    case 2:
      return Convert<double>(static_cast<const __half*>(data)[offset]);
    default:
      return Convert<double>(static_cast<const __nv_bfloat16*>(data)[offset]);
  }
}

/// tensor_ops.h's Difference.
struct Found {
  double squared_error;
  double squared_expected;
  double largest_error;
  unsigned long long not_finite;
};

__device__ __forceinline__ void Merge(const Found& other, Found* found) {
  found->squared_error += other.squared_error;
  found->squared_expected += other.squared_expected;
  found->largest_error = fmax(found->largest_error, other.largest_error);
  found->not_finite += other.not_finite;
}

}  // namespace
}  // namespace gradsmith::cuda

/// `found` is zero before. `grid.to_strides` are those of a, `grid.from_strides` those of b.
extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads) gradsmith_compare(
    const void* a,
    const void* b,
    const int a_type,
    const int b_type,
    const gradsmith::cuda::PairGrid grid,
    void* found) {
  using namespace gradsmith::cuda;
  Found mine = {0, 0, 0, 0};
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(grid, indices[i]);
        const double value = Load(a_type, a, offsets.to);
        const double expected = Load(b_type, b, offsets.from);
        if (isfinite(value) && isfinite(expected)) {
          const double error = fabs(value - expected);
          Merge({error * error, expected * expected, error, 0}, &mine);
        } else {
          Merge({0, 0, 0, 1}, &mine);
        }
      }
    }
  });
  __shared__ Found all[kElementThreads];
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
    auto* sums = static_cast<Found*>(found);
    atomicAdd(&sums->squared_error, all[0].squared_error);
    atomicAdd(&sums->squared_expected, all[0].squared_expected);
    // Numbers that are not negative are ordered as their bits are.
    atomicMax(
        reinterpret_cast<unsigned long long*>(&sums->largest_error),
        static_cast<unsigned long long>(__double_as_longlong(all[0].largest_error)));
    atomicAdd(&sums->not_finite, all[0].not_finite);
  }
}
