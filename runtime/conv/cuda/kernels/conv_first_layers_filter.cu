#include <cstdint>

#include "conv/cuda/first_layers_arguments.h"
#include "conv/cuda/kernels/first_layers.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "conv/cuda/kernels/turns.cuh"

/// The filter's gradient of a first layer, alone; see conv/cuda/first_layers.h. All
/// warps of a block copy, and those that have a row of taps multiply, while what the next step needs
/// is on its way.
namespace gradsmith::conv::first_layers {
namespace {

using cuda::Bfloat16;
using cuda::Half;

template <int kConfig>
using FilterRoom = RoomOf<
    kFilterConfigAt[kConfig].step, kFilterConfigAt[kConfig].channels, 1, kFilterRows,
    kFilterConfigAt[kConfig].pairs, kFilterThreads>;

/// Where a block is: a step of a work.
struct Step {
  int number;
  Work work;
  int row;

  [[nodiscard]] __device__ __forceinline__ bool begins() const { return row == work.first_row; }
  [[nodiscard]] __device__ __forceinline__ bool ends() const {
    return row + kFilterRows >= work.end_row;
  }
};

__device__ __forceinline__ Step FirstStepOf(const Arguments& p, int number) {
  const Work work = WorkOf(p, number);
  return {number, work, work.first_row};
}

template <typename Math, int kConfig>
__device__ __forceinline__ void ComputeFilterGradient(
    const Arguments& p,
    const typename Math::T* x,
    const typename Math::T* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using Memory = FilterRoom<kConfig>;
  static_assert(
      Memory::kChannels * kMostTaps * Memory::kSums * sizeof(float) <= Memory::kBytesOfRows);
  auto* memory = reinterpret_cast<unsigned char*>(shared);
  const int first_channel = static_cast<int>(blockIdx.y) * Memory::kChannels;
  Rows<Memory, typename Math::T> rows(p, y, cuda::SharedAddress(shared), first_channel);
  Pixels<Memory, typename Math::T> pixels(p, x, memory + Memory::kBytesOfRows);
  FilterGradient<Math, Memory> sums(p, static_cast<int>(threadIdx.x) / 32);
  Step step = FirstStepOf(p, static_cast<int>(blockIdx.x));
  Prefetch<Memory::kStep>(p, x, y, step.work);
  rows.CopyFirst(step.work);
  pixels.FetchFirst(step.work);
#pragma unroll 1
  for (bool has_next = true; has_next;) {
    if (step.begins()) {
      pixels.Open();
      pixels.LoadFirst(step.work);
    }
    cuda::WaitForCopies<0>();
    cuda::SynchronizeBlock<kFilterThreads>();  // what all threads copied is there
    Step next = {step.number, step.work, step.row + kFilterRows};
    if (!step.ends()) {
      rows.CopyNext(step.work, step.row);
      pixels.FetchNext(step.work, step.row);
    } else {
      const int number = step.number + static_cast<int>(gridDim.x);
      has_next = number < p.works;
      if (has_next) {
        next = FirstStepOf(p, number);
        rows.CopyNextWork(next.work);
        pixels.FetchFirst(next.work);
      }
    }
    sums.AddInTurns(step.work, step.row, rows, pixels);
    cuda::SynchronizeBlock<kFilterThreads>();  // what the next step overwrites has been read
    if (!step.ends()) {
      pixels.Store();
      pixels.Advance();
    }
    rows.Advance();
    step = next;
  }
  cuda::TakeTurns<kFilterThreads>(p.turns, [&](int turn) {
    if (sums.turn() == turn) {
      sums.Leave(reinterpret_cast<float2*>(memory), turn > 0);  // rows have been read
    }
  });
  StoreSums<Memory, kFilterThreads>(
      p, reinterpret_cast<const float*>(memory), first_channel,
      min(Memory::kChannels, p.y_channels - first_channel), partial, partial_channels);
}

}  // namespace
}  // namespace gradsmith::conv::first_layers

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FIRST_LAYERS_FILTER(name, math, config)                                \
  extern "C" __global__ void __launch_bounds__(                                          \
      gradsmith::conv::first_layers::kFilterThreads,                                     \
      gradsmith::conv::first_layers::kFilterConfigAt[config].blocks)                     \
      gradsmith_first_layers_filter_##config##_##name(                                   \
          const __grid_constant__ gradsmith::conv::first_layers::Arguments arguments,    \
          const gradsmith::cuda::math::T* x, const gradsmith::cuda::math::T* y,          \
          float* partial, float* partial_channels) {                                     \
    gradsmith::conv::first_layers::ComputeFilterGradient<gradsmith::cuda::math, config>( \
        arguments, x, y, partial, partial_channels);                                     \
  }
#define GRADSMITH_FIRST_LAYERS_FILTER_FORMS(name, math) \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 0)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 1)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 2)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 3)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 4)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 5)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 6)          \
  GRADSMITH_FIRST_LAYERS_FILTER(name, math, 7)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FIRST_LAYERS_FILTER_FORMS(f16, Half)
GRADSMITH_FIRST_LAYERS_FILTER_FORMS(bf16, Bfloat16)
