#ifndef GRADSMITH_PATTERNS_MAP_H_
#define GRADSMITH_PATTERNS_MAP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "core/arguments.h"
#include "core/element.h"
#include "core/parallel.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/map_task.h"

/// The pattern `map`: every element of the outputs is a function of the inputs' elements at its
/// place. A functor says which:
///
///     struct SigmoidGradMap {
///       static constexpr int kInputs = 2;  // dY, Y
///       static constexpr int kOutputs = 1;
///       template <typename A>
///       GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* scalars) {
///         out[0] = in[0] * in[1] * (1 - in[1]);
///       }
///     };
///
/// A is float, or double for tensors of doubles. All tensors have one element type. An input of
/// fewer dims, or of dims of one, is broadcast to the outputs, whose dims are alike; any strides
/// will do. An output may lie in an input's memory where both have the same strides.
/// patterns/cuda/map.cuh has the same on CUDA.
namespace gradsmith::internal {

/// CheckMap returns the error of the first tensor, of which the first `inputs` are read, that is of
/// another type than the others, or of dims that are not broadcast to the outputs'.
Status CheckMap(std::span<const TensorRef> tensors, int inputs);

/// MapTaskOf describes a map over the tensors, which CheckMap has passed.
MapTask MapTaskOf(std::span<const TensorRef> tensors, int inputs, std::span<const double> scalars);

/// As few elements are worth a thread of their own.
inline constexpr std::int64_t kMapGrain = 8192;

/// MapRun maps `count` elements along the last dim, from those on that are `offsets` elements into
/// the tensors.
template <typename Functor, typename T>
void MapRun(const MapTask& task, const std::int64_t* offsets, std::int64_t count) {
  using A = Accumulator<T>;
  constexpr int kTensors = Functor::kInputs + Functor::kOutputs;
  std::array<T*, kTensors> data{};
  std::array<std::int64_t, kTensors> steps{};
  for (int t = 0; t < kTensors; ++t) {
    data[t] = static_cast<T*>(task.tensors[t]) + offsets[t];
    steps[t] = task.rank == 0 ? 0 : task.strides[t][task.rank - 1];
  }
  std::array<A, kMaxMapScalars> scalars{};
  std::copy_n(task.scalars, kMaxMapScalars, scalars.begin());
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<A, Functor::kInputs> in{};
    std::array<A, Functor::kOutputs> out{};
    for (int t = 0; t < Functor::kInputs; ++t) {
      in[t] = Convert<A>(data[t][i * steps[t]]);
    }
    Functor::Map(in.data(), out.data(), scalars.data());
    for (int o = 0; o < Functor::kOutputs; ++o) {
      data[Functor::kInputs + o][i * steps[Functor::kInputs + o]] = Convert<T>(out[o]);
    }
  }
}

/// MapRange maps the elements from `begin` to `end`, last dim fastest.
template <typename Functor, typename T>
void MapRange(const MapTask& task, std::int64_t begin, std::int64_t end) {
  constexpr int kTensors = Functor::kInputs + Functor::kOutputs;
  const std::int64_t length = task.rank == 0 ? 1 : task.dims[task.rank - 1];
  for (std::int64_t at = begin; at < end;) {
    std::array<std::int64_t, kTensors> offsets{};
    std::int64_t rest = at;
    for (int axis = task.rank - 1; axis >= 0; --axis) {
      for (int t = 0; t < kTensors; ++t) {
        offsets[t] += rest % task.dims[axis] * task.strides[t][axis];
      }
      rest /= task.dims[axis];
    }
    const std::int64_t count = std::min(length - (at % length), end - at);
    MapRun<Functor, T>(task, offsets.data(), count);
    at += count;
  }
}

/// MapOperand is a tensor of a map.
inline TensorRef MapOperand(const ConstTensorRef& tensor) {
  return Unconst(tensor);
}
inline TensorRef MapOperand(const TensorRef& tensor) {
  return tensor;
}

/// MapOnCpu computes a map on the context's threads. What is to be added to is staged by the caller
/// (core/accumulate.h).
template <typename Functor, typename... Refs>
Status
MapOnCpu(const Context& context, std::initializer_list<double> scalars, const Refs*... operands) {
  static_assert(sizeof...(operands) == Functor::kInputs + Functor::kOutputs);
  const std::array<TensorRef, sizeof...(operands)> tensors = {MapOperand(*operands)...};
  if (Status status = CheckMap(tensors, Functor::kInputs); !status.ok()) {
    return status;
  }
  const MapTask task = MapTaskOf(tensors, Functor::kInputs, scalars);
  VisitDataType(tensors.back().type, [&]<typename T>(std::type_identity<T> /*type*/) {
    ParallelFor(context, task.count, kMapGrain, [&](std::int64_t begin, std::int64_t end) {
      MapRange<Functor, T>(task, begin, end);
    });
  });
  return {};
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_MAP_H_
