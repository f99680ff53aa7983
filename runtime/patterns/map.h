#ifndef GRADSMITH_PATTERNS_MAP_H_
#define GRADSMITH_PATTERNS_MAP_H_

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "core/arguments.h"
#include "core/element.h"
#include "core/parallel.h"
#include "core/tiles.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/functor.h"
#include "patterns/map_task.h"

/// The pattern `map`: every element of the outputs is a function of the inputs' elements at its
/// place. A functor says which:
///
///     struct PReluGradMap {
///       static constexpr int kInputs = 3;   // dY, X, slope
///       static constexpr int kOutputs = 2;  // dX, dSlope
///       static constexpr bool kSums = true;
///       template <typename A>
///       GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* scalars) {
///         out[0] = in[1] > 0 ? in[0] : in[2] * in[0];
///         out[1] = in[1] > 0 ? A{0} : in[1] * in[0];
///       }
///     };
///
/// A is float, or double for tensors of doubles. All tensors have one element type, but for the
/// inputs that a functor's kMasks has a bit of: they are of bool, and 1 where they are not zero;
/// and for one of bits (kBits), of uint32 and the dim ceil(elements / 32).
/// Strides are any. An input of fewer dims, or of dims of one, is broadcast. One that a functor's
/// kOptional has a bit of may be absent, and its elements are 0 then. Where a functor has kSums, so
/// may an output be, and each of its elements is then the sum of what the functor gives for it; a
/// functor without it has outputs of one shape, to which inputs are broadcast. An output may be
/// absent. One that is not a sum may lie in an input's memory where both have the same strides.
/// patterns/cuda/map.cuh has the same on CUDA.
namespace gradsmith::internal {

template <typename Functor>
concept HasMapSums = requires {
  { Functor::kSums } -> std::convertible_to<bool>;
};

/// MapTraits are what tensors are checked against: how many of them are inputs, those of these that
/// are masks, or of bits, or may be absent, as sets, and whether outputs may be sums.
struct MapTraits {
  int inputs = 0;
  unsigned masks = 0;
  unsigned bits = 0;
  unsigned optional = 0;
  bool has_sums = false;

  [[nodiscard]] bool IsMask(int tensor) const { return (masks >> tensor & 1U) != 0; }
  [[nodiscard]] bool IsOfBits(int tensor) const { return (bits >> tensor & 1U) != 0; }
  [[nodiscard]] bool IsOptional(int tensor) const { return (optional >> tensor & 1U) != 0; }
  /// The first tensor of numbers that is always there: its element type is that of the map.
  [[nodiscard]] int lead() const { return std::countr_one(masks | bits | optional); }
};

/// CheckMap returns the error of the first tensor that is of another type than it should be, or of
/// dims that do not fit.
Status CheckMap(std::span<const TensorRef> tensors, const MapTraits& traits);

/// MapTaskOf describes a map over the tensors, which CheckMap has passed.
/// `bits` are the inputs of bits, as a set.
MapTask MapTaskOf(
    std::span<const TensorRef> tensors,
    int inputs,
    std::span<const double> scalars,
    unsigned bits = 0);

/// SummedOutputs has bit o set where output o is present and summed over dims of the map.
unsigned SummedOutputs(std::span<const TensorRef> tensors, int inputs, const MapTask& map);

/// MapSumTaskOf describes the pass of a map that sums one of its outputs and stores none.
MapSumTask MapSumTaskOf(const MapTask& map, int inputs, int output);

/// MapWithoutSum describes the pass of a map that sums nothing and stores what the map stores.
MapSumTask MapWithoutSum(const MapTask& map);

/// MapPointers are the addresses at which a map's tensors begin.
template <typename Functor>
using MapPointers = std::array<void*, Functor::kInputs + Functor::kOutputs>;

/// MapAddress returns the address of the element of a tensor that is `offset` elements on. That of
/// a bit is counted from the first word.
template <typename Functor, typename T>
void* MapAddress(int tensor, void* data, std::int64_t offset) {
  if (IsOfBits<Functor>(tensor)) {
    return data;
  }
  return static_cast<std::byte*>(data) +
         (offset * static_cast<std::int64_t>(IsMask<Functor>(tensor) ? 1 : sizeof(T)));
}

/// HasBit returns whether a bit is set in words that lie `word_step` apart.
inline bool HasBit(const void* words, std::int64_t word_step, std::int64_t bit) {
  const std::int64_t word = bit / kBitsOfWord * word_step;
  return (static_cast<const std::uint32_t*>(words)[word] >> (bit % kBitsOfWord) & 1U) != 0;
}

/// The fewest elements that are worth a thread of their own.
inline constexpr std::int64_t kMapGrain = 8192;

/// MapElement computes the element that is `step` elements along the map's steps from where data
/// point, and bits begin.
template <typename Functor, typename T, typename Map, typename A>
void MapElement(
    const Map& map,
    const MapPointers<Functor>& data,
    std::int64_t first_bit,
    std::int64_t step,
    std::array<A, Functor::kOutputs>* out) {
  std::array<A, Functor::kInputs> in{};
  for (int t = 0; t < Functor::kInputs; ++t) {
    const std::int64_t at = step * map.steps[t];
    if (IsOptional<Functor>(t) && data[t] == nullptr) {
      in[t] = A{0};
    } else if (IsOfBits<Functor>(t)) {
      in[t] = HasBit(data[t], map.word_step, first_bit + at) ? A{1} : A{0};
    } else if (IsMask<Functor>(t)) {
      in[t] = static_cast<const std::uint8_t*>(data[t])[at] != 0 ? A{1} : A{0};
    } else {
      in[t] = Convert<A>(static_cast<const T*>(data[t])[at]);
    }
  }
  Functor::Map(in.data(), out->data(), map.scalars.data());
}

/// MapData is a task's tensors and scalars as the functor takes them.
template <typename Functor, typename T>
struct MapData {
  static constexpr int kTensors = Functor::kInputs + Functor::kOutputs;
  using A = Accumulator<T>;

  /// `dim` is the one along which `steps` lead.
  MapData(const MapTask& task, int dim) : stores(task.stores), word_step(task.word_step) {
    for (int t = 0; t < kTensors; ++t) {
      tensors[t] = task.tensors[t];
      steps[t] = dim < 0 ? 0 : task.strides[t][dim];
    }
    for (int s = 0; s < kMaxMapScalars; ++s) {
      scalars[s] = static_cast<A>(task.scalars[s]);
    }
  }

  unsigned stores;
  std::int64_t word_step;
  MapPointers<Functor> tensors;
  std::array<std::int64_t, kTensors> steps;
  std::array<A, kMaxMapScalars> scalars;
};

/// AddMapOffsets adds to each tensor's offset how far the index-th element of the dims from `begin`
/// to `end`, last dim fastest, is into it.
template <int kTensors>
void AddMapOffsets(
    const MapTask& task,
    int begin,
    int end,
    std::int64_t index,
    std::array<std::int64_t, kTensors>* offsets) {
  for (int axis = end - 1; axis >= begin; --axis) {
    for (int t = 0; t < kTensors; ++t) {
      (*offsets)[t] += index % task.dims[axis] * task.strides[t][axis];
    }
    index /= task.dims[axis];
  }
}

/// StoreMapped writes an element of the outputs that a map stores.
template <typename Functor, typename T, typename A>
void StoreMapped(
    const MapData<Functor, T>& map,
    const MapPointers<Functor>& data,
    std::int64_t step,
    const std::array<A, Functor::kOutputs>& out) {
  constexpr bool kIsAlwaysStored = Functor::kOutputs == 1 && !HasMapSums<Functor>;
  for (int o = 0; o < Functor::kOutputs; ++o) {
    const int t = Functor::kInputs + o;
    if (kIsAlwaysStored || (map.stores >> o & 1U) != 0) {
      static_cast<T*>(data[t])[step * map.steps[t]] = Convert<T>(out[o]);
    }
  }
}

/// MapRun maps `count` elements along the last dim, from those on that are `offsets` elements into
/// the tensors, and writes the outputs that are stored.
template <typename Functor, typename T>
void MapRun(
    const MapData<Functor, T>& map,
    const std::array<std::int64_t, MapData<Functor, T>::kTensors>& offsets,
    std::int64_t count) {
  using A = Accumulator<T>;
  MapPointers<Functor> data = map.tensors;
  const std::int64_t first_bit =
      kBitsOf<Functor> == 0 ? 0 : offsets[std::countr_zero(kBitsOf<Functor>)];
  for (int t = 0; t < MapData<Functor, T>::kTensors; ++t) {
    // An absent tensor has no address to add to.
    data[t] = data[t] == nullptr ? nullptr : MapAddress<Functor, T>(t, data[t], offsets[t]);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<A, Functor::kOutputs> out{};
    MapElement<Functor, T>(map, data, first_bit, i, &out);
    StoreMapped<Functor, T>(map, data, i, out);
  }
}

/// MapRange maps the elements from `begin` to `end`, last dim fastest.
template <typename Functor, typename T>
void MapRange(const MapTask& task, std::int64_t begin, std::int64_t end) {
  const MapData<Functor, T> map(task, task.rank - 1);
  const std::int64_t length = task.rank == 0 ? 1 : task.dims[task.rank - 1];
  for (std::int64_t at = begin; at < end;) {
    std::array<std::int64_t, MapData<Functor, T>::kTensors> offsets{};
    AddMapOffsets<MapData<Functor, T>::kTensors>(task, 0, task.rank, at, &offsets);
    const std::int64_t count = std::min(length - (at % length), end - at);
    MapRun<Functor, T>(map, offsets, count);
    at += count;
  }
}

/// Places that are summed beside each other, where they are neighbours in memory.
inline constexpr std::int64_t kMapSumLanes = 64;

/// SumMapped adds the terms from `begin` to `end` of `lanes` places, from the place-th on, to
/// `sums`, and writes the outputs that the pass stores. `map` leads along the task's last dim.
template <typename Functor, typename T>
void SumMapped(
    const MapSumTask& task,
    const MapData<Functor, T>& map,
    std::int64_t place,
    std::int64_t lanes,
    std::int64_t begin,
    std::int64_t end,
    double* sums) {
  constexpr int kTensors = MapData<Functor, T>::kTensors;
  using A = Accumulator<T>;
  std::array<std::int64_t, kTensors> first{};
  AddMapOffsets<kTensors>(task.map, 0, task.place_rank, place, &first);
  const std::int64_t length =
      task.has_places_last || task.map.rank == 0 ? 1 : task.map.dims[task.map.rank - 1];
  for (std::int64_t term = begin; term < end;) {
    std::array<std::int64_t, kTensors> offsets = first;
    AddMapOffsets<kTensors>(task.map, task.place_rank, task.map.rank, term, &offsets);
    MapPointers<Functor> data = map.tensors;
    for (int t = 0; t < kTensors; ++t) {
      data[t] = data[t] == nullptr ? nullptr : MapAddress<Functor, T>(t, data[t], offsets[t]);
    }
    const std::int64_t terms = std::min(length - (term % length), end - term);
    const std::int64_t count = task.has_places_last ? lanes : terms;
    for (std::int64_t i = 0; i < count; ++i) {
      std::array<A, Functor::kOutputs> out{};
      MapElement<Functor, T>(map, data, 0, i, &out);
      sums[task.has_places_last ? i : 0] += static_cast<double>(out[task.output]);
      StoreMapped<Functor, T>(map, data, i, out);
    }
    term += terms;
  }
}

/// StoreMapSums writes the sums of neighbouring places, from the place-th on.
template <typename Functor, typename T>
void StoreMapSums(
    const MapSumTask& task,
    std::int64_t place,
    std::int64_t lanes,
    const double* sums) {
  constexpr int kTensors = MapData<Functor, T>::kTensors;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    std::array<std::int64_t, kTensors> offsets{};
    AddMapOffsets<kTensors>(task.map, 0, task.place_rank, place + lane, &offsets);
    static_cast<T*>(task.map.tensors[task.tensor])[offsets[task.tensor]] = Convert<T>(sums[lane]);
  }
}

/// MapSums sums one output. Sums are of doubles, and cut where the task's dims alone say: into
/// blocks of places beside each other, whose terms may be pieces.
template <typename Functor, typename T>
void MapSums(const Context& context, const MapSumTask& task) {
  const std::int64_t run = task.has_places_last ? task.map.dims[task.place_rank - 1] : 1;
  const std::int64_t lanes = std::min(run, kMapSumLanes);
  const std::int64_t blocks_of_run = CeilDivide(run, lanes);
  const std::int64_t blocks = task.places / run * blocks_of_run;
  const std::int64_t piece = 4 * kMapGrain / lanes;
  const std::int64_t pieces = std::max<std::int64_t>(CeilDivide(task.terms, piece), 1);
  const MapData<Functor, T> map(task.map, task.last);
  // The sums of pieces: blocks of one piece have none, however many places there are.
  std::vector<double> parts(static_cast<std::size_t>(pieces > 1 ? blocks * pieces * lanes : 0));
  const auto place_of = [&](std::int64_t block) {
    return (block / blocks_of_run * run) + (block % blocks_of_run * lanes);
  };
  const auto lanes_of = [&](std::int64_t block) {
    return std::min(lanes, run - (block % blocks_of_run * lanes));
  };
  const std::int64_t grain =
      CeilDivide(kMapGrain, lanes * std::clamp(task.terms, std::int64_t{1}, piece));
  ParallelFor(context, blocks * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t block = unit / pieces;
      const std::int64_t first = unit % pieces * piece;
      double own[kMapSumLanes];
      double* const sums = pieces > 1 ? parts.data() + (unit * lanes) : own;
      std::fill_n(sums, lanes, 0.0);
      SumMapped<Functor, T>(
          task, map, place_of(block), lanes_of(block), first, std::min(first + piece, task.terms),
          sums);
      if (pieces == 1) {
        StoreMapSums<Functor, T>(task, place_of(block), lanes_of(block), sums);
      }
    }
  });
  for (std::int64_t block = 0; pieces > 1 && block < blocks; ++block) {
    std::array<double, kMapSumLanes> sums{};
    for (std::int64_t part = 0; part < pieces; ++part) {
      for (std::int64_t lane = 0; lane < lanes_of(block); ++lane) {
        sums[static_cast<std::size_t>(lane)] +=
            parts[static_cast<std::size_t>(((block * pieces + part) * lanes) + lane)];
      }
    }
    StoreMapSums<Functor, T>(task, place_of(block), lanes_of(block), sums.data());
  }
}

/// MapOnCpu computes a map on the context's threads. What is to be added to is staged by the caller
/// (core/accumulate.h).
template <typename Functor, typename... Refs>
Status
MapOnCpu(const Context& context, std::initializer_list<double> scalars, const Refs*... operands) {
  constexpr int kTensors = sizeof...(operands);
  static_assert(kTensors == Functor::kInputs + Functor::kOutputs && kTensors <= kMaxMapTensors);
  const std::array<TensorRef, sizeof...(operands)> tensors = {OperandOrAbsent(operands)...};
  constexpr MapTraits kTraits = {
      .inputs = Functor::kInputs,
      .masks = kMasksOf<Functor>,
      .bits = kBitsOf<Functor>,
      .optional = kOptionalOf<Functor>,
      .has_sums = HasMapSums<Functor>};
  if (Status status = CheckMap(tensors, kTraits); !status.ok()) {
    return status;
  }
  const MapTask task = MapTaskOf(tensors, Functor::kInputs, scalars, kTraits.bits);
  VisitFloatingType(tensors[kTraits.lead()].type, [&]<typename T>(std::type_identity<T> /*type*/) {
    unsigned sums = 0;
    if constexpr (HasMapSums<Functor>) {
      sums = SummedOutputs(tensors, Functor::kInputs, task);
      for (int o = 0; o < Functor::kOutputs; ++o) {
        if ((sums >> o & 1U) != 0) {
          MapSumTask sum = MapSumTaskOf(task, Functor::kInputs, o);
          // The last writes what is stored: that may lie where the sums before it read.
          sum.map.stores = sums >> o == 1 ? task.stores : 0;
          MapSums<Functor, T>(context, sum);
        }
      }
    }
    if (task.stores != 0 && sums == 0) {
      ParallelFor(context, task.count, kMapGrain, [&](std::int64_t begin, std::int64_t end) {
        MapRange<Functor, T>(task, begin, end);
      });
    }
  });
  return {};
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_MAP_H_
