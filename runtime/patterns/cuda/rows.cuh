#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_CUH_

#include "patterns/cuda/rows_by_columns.cuh"
#include "patterns/cuda/rows_flat.cuh"
#include "patterns/cuda/rows_kernel.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_operands.cuh"

/// The kernels of the pattern `rows` (patterns/rows.h), in C++17.
/// GRADSMITH_ROWS_KERNELS(MySoftmax, SoftmaxRows) makes those of an operator from its
/// functor. Where it has something of columns, there are kernels by columns too.

#define GRADSMITH_ROWS_KERNEL(form, is_across, kVector, name, Functor, suffix, T, U)            \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::MostRowsThreads(                \
      is_across, Functor::kColumnSums != 0, sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)))     \
      gradsmith_rows_##form##_##name##_##suffix(                                                \
          const __grid_constant__ gradsmith::internal::RowsTask task,                           \
          const __grid_constant__ gradsmith::cuda::RowsLaunch launch) {                         \
    GRADSMITH_DYNAMIC_SHARED(shared);                                                           \
    gradsmith::cuda::RowsKernel<Functor, T, U, kVector, is_across>(task, launch, shared).Run(); \
  }

#define GRADSMITH_ROWS_KERNEL_RAGGED(name, Functor, suffix, T, U)                \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::MostRowsThreads( \
      false, false, sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)))              \
      gradsmith_rows_ragged_##name##_##suffix(                                   \
          const __grid_constant__ gradsmith::internal::RowsTask task,            \
          const __grid_constant__ gradsmith::cuda::RowsLaunch launch) {          \
    GRADSMITH_DYNAMIC_SHARED(shared);                                            \
    gradsmith::cuda::RunRaggedRows<Functor, T, U>(task, launch, shared);         \
  }

#define GRADSMITH_ROWS_KERNEL_BY_COLUMNS(form, kVector, name, Functor, suffix, T, U)          \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kFewerRowsThreads)            \
      gradsmith_rows_##form##_##name##_##suffix(                                              \
          const __grid_constant__ gradsmith::internal::RowsTask task,                         \
          const __grid_constant__ gradsmith::cuda::RowsLaunch launch) {                       \
    GRADSMITH_DYNAMIC_SHARED(shared);                                                         \
    gradsmith::cuda::RowsByColumnsKernel<Functor, T, U, kVector>(task, launch, shared).Run(); \
  }

#define GRADSMITH_ROWS_KERNELS_BY_COLUMNS(name, Functor, suffix, T, U)                 \
  GRADSMITH_ROWS_KERNEL_BY_COLUMNS(                                                    \
      by_columns, (gradsmith::cuda::kVectorOfBoth<T, U>), name, Functor, suffix, T, U) \
  GRADSMITH_ROWS_KERNEL_BY_COLUMNS(by_columns_elements, 1, name, Functor, suffix, T, U)

#define GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, suffix, T, U)                                \
  GRADSMITH_ROWS_KERNEL(                                                                         \
      along_vectors, false, (gradsmith::cuda::kVectorOfBoth<T, U>), name, Functor, suffix, T, U) \
  GRADSMITH_ROWS_KERNEL(along_elements, false, 1, name, Functor, suffix, T, U)

/// Defines the kernels of an operator without columns, for a pair of types.
#define GRADSMITH_ROWS_KERNELS_OF_TWO(name, Functor, suffix, T, U)                               \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, suffix, T, U)                                      \
  GRADSMITH_ROWS_KERNEL_RAGGED(name, Functor, suffix, T, U)                                      \
  GRADSMITH_ROWS_KERNEL(                                                                         \
      across_vectors, true, (gradsmith::cuda::kVectorOfBoth<T, U>), name, Functor, suffix, T, U) \
  GRADSMITH_ROWS_KERNEL(across_elements, true, 1, name, Functor, suffix, T, U)

#define GRADSMITH_ROWS_KERNELS_OF(name, Functor, suffix, T) \
  GRADSMITH_ROWS_KERNELS_OF_TWO(name, Functor, suffix, T, T)

/// Defines the kernels of an operator without columns and without a second type, by its name in
/// ops.yaml, for all floating types.
#define GRADSMITH_ROWS_KERNELS(name, Functor)           \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)

/// Defines the kernels of an operator with columns, for a pair of types. Their rows are never
/// computed across memory.
#define GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, suffix, T, U) \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, suffix, T, U)            \
  GRADSMITH_ROWS_KERNELS_BY_COLUMNS(name, Functor, suffix, T, U)

#define GRADSMITH_ROWS_KERNEL_FLAT(form, kVector, Task, name, Functor, suffix, T, U)               \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMostFlatThreads)                  \
      gradsmith_rows_flat_##form##_##name##_##suffix(                                              \
          const __grid_constant__ gradsmith::internal::Task task) {                                \
    gradsmith::cuda::FlatRowKernel<Functor, T, U, kVector, gradsmith::internal::Task>(task).Run(); \
  }

/// Defines the kernels of an operator whose rows are flat (RowsFunctor::kIsFlat), for a pair of
/// types, which may be one.
#define GRADSMITH_ROWS_KERNELS_OF_FLAT(name, Functor, suffix, T, U)                             \
  GRADSMITH_ROWS_KERNEL_FLAT(                                                                   \
      dense, (gradsmith::cuda::kVectorOfBoth<T, U>), DenseRowTask, name, Functor, suffix, T, U) \
  GRADSMITH_ROWS_KERNEL_FLAT(                                                                   \
      vectors, (gradsmith::cuda::kVectorOfBoth<T, U>), RowsTask, name, Functor, suffix, T, U)   \
  GRADSMITH_ROWS_KERNEL_FLAT(elements, 1, RowsTask, name, Functor, suffix, T, U)

/// Defines them for all floating types and for the pairs of them that differ.
#define GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(name, Functor)                             \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, f32, float, float)                  \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, f64, double, double)                \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, f16, __half, __half)                \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, bf16, __nv_bfloat16, __nv_bfloat16) \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, f16_f32, __half, float)             \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, bf16_f32, __nv_bfloat16, float)     \
  GRADSMITH_ROWS_KERNELS_OF_COLUMNS(name, Functor, f32_f16, float, __half)

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_CUH_
