#include "patterns/map.h"

#include <string>

#include "core/broadcast.h"
#include "core/tiles.h"
#include "patterns/strided_space.h"

namespace gradsmith::internal {

namespace {

using IndexSpace = StridedSpace<kMaxMapTensors, kMaxMapRank>;

/// The stride of a tensor along a dim of the space that has `rank` dims; zero where it is
/// broadcast.
std::int64_t StrideAlong(const TensorRef& tensor, int rank, int dim) {
  const int own = dim - (rank - tensor.dims.size());
  return own < 0 || tensor.dims[own] == 1 ? 0 : tensor.strides[own];
}

bool IsIn(unsigned set, int place) {
  return (set >> static_cast<unsigned>(place) & 1U) != 0;
}

/// The dims of the index space: all tensors' together, but for words. Without sums they are an
/// output's.
Dims SpaceOf(std::span<const TensorRef> tensors, unsigned bits) {
  Dims space;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (tensors[t].present && !IsIn(bits, t)) {
      space = BroadcastOf(space, tensors[t].dims);
    }
  }
  return space;
}

/// The tensor whose memory the index space follows.
const TensorRef& LeadOf(std::span<const TensorRef> tensors, int inputs, const Dims& space) {
  const auto fills = [&](const TensorRef& tensor) {
    return tensor.present && tensor.dims.size() == space.size() && tensor.dims == space;
  };
  const auto output = std::ranges::find_if(tensors.subspan(inputs), fills);
  if (output != tensors.subspan(inputs).end()) {
    return *output;
  }
  const auto input = std::ranges::find_if(tensors, fills);
  return input != tensors.end() ? *input : tensors.front();
}

std::string NameOf(int tensor, int inputs) {
  return tensor < inputs ? "input " + std::to_string(tensor)
                         : "output " + std::to_string(tensor - inputs);
}

/// The index space that tensors are checked against: where there are no sums, the first output's.
Dims ExpectedSpace(std::span<const TensorRef> tensors, const MapTraits& traits) {
  for (const TensorRef& output : tensors.subspan(traits.inputs)) {
    if (output.present && !traits.has_sums) {
      return output.dims;
    }
  }
  return SpaceOf(tensors, traits.bits);
}

/// The type of a tensor of a map of `type`.
DataType ExpectedType(const MapTraits& traits, int tensor, DataType type) {
  if (traits.IsOfBits(tensor)) {
    return DataType::kUint32;
  }
  return traits.IsMask(tensor) ? DataType::kBool : type;
}

}  // namespace

Status CheckMap(std::span<const TensorRef> tensors, const MapTraits& traits) {
  const int inputs = traits.inputs;
  const Dims space = ExpectedSpace(tensors, traits);
  const DataType type = tensors[traits.lead()].type;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    const TensorRef& tensor = tensors[t];
    if (!tensor.present) {
      if (t < inputs && !traits.IsOptional(t)) {
        return Internal(NameOf(t, inputs) + " of a map is absent");
      }
      continue;
    }
    const DataType expected = ExpectedType(traits, t, type);
    if (tensor.type != expected) {
      return Internal(
          NameOf(t, inputs) + " has type " + std::string(ToString(tensor.type)) + "; expected " +
          std::string(ToString(expected)) +
          (expected == type ? ", as " + NameOf(traits.lead(), inputs) : ""));
    }
    if (traits.IsOfBits(t)) {
      Dims words;
      words.push_back(CeilDivide(NumElements(space), kBitsOfWord));
      if (tensor.dims != words) {
        return WrongDims(NameOf(t, inputs), tensor.dims, words, ", a bit for each element");
      }
      continue;
    }
    const bool may_broadcast = t < inputs || traits.has_sums;
    if (may_broadcast ? !BroadcastsTo(tensor.dims, space) : tensor.dims != space) {
      return WrongDims(
          NameOf(t, inputs), tensor.dims, space,
          may_broadcast ? ", or what is broadcast to it" : "");
    }
  }
  return {};
}

MapTask MapTaskOf(
    std::span<const TensorRef> tensors,
    int inputs,
    std::span<const double> scalars,
    unsigned bits) {
  const int count = static_cast<int>(tensors.size());
  const Dims space = SpaceOf(tensors, bits);
  const Strides of_bits = ContiguousStrides(space);
  const int rank = space.size();
  MapTask task;
  std::ranges::copy(scalars, task.scalars);
  task.count = NumElements(space);
  for (int t = 0; t < count; ++t) {
    const TensorRef& tensor = tensors[t];
    task.tensors[t] = tensor.data;
    task.word_step = IsIn(bits, t) ? tensor.strides[0] : task.word_step;
    const unsigned output = t >= inputs && tensor.present ? 1U << (t - inputs) : 0U;
    task.accumulate |= tensor.accumulate ? output : 0U;
    task.stores |= NumElements(tensor.dims) == task.count ? output : 0U;
  }
  IndexSpace dims;
  for (int dim = 0; dim < rank; ++dim) {
    IndexSpace::Dim made = {.size = space[dim], .strides = {}};
    for (int t = 0; t < count; ++t) {
      if (IsIn(bits, t)) {
        made.strides[t] = of_bits[dim];
      } else if (tensors[t].present) {
        made.strides[t] = StrideAlong(tensors[t], rank, dim);
      }
    }
    dims.Add(made);
  }
  const auto lead = &LeadOf(tensors, inputs, space) - tensors.data();
  task.rank = dims.WriteTo(static_cast<int>(lead), task.dims, task.strides);
  return task;
}

unsigned SummedOutputs(std::span<const TensorRef> tensors, int inputs, const MapTask& map) {
  unsigned sums = 0;
  for (int o = 0; inputs + o < static_cast<int>(tensors.size()); ++o) {
    const TensorRef& output = tensors[inputs + o];
    const bool has_places = output.present && NumElements(output.dims) != 0;
    sums |= has_places && (map.stores >> o & 1U) == 0 ? 1U << o : 0U;
  }
  return sums;
}

// A map of one element has no sums, so that there are dims here.
MapSumTask MapSumTaskOf(const MapTask& map, int inputs, int output) {
  MapSumTask task;
  task.map = map;
  task.map.stores = 0;
  task.output = output;
  task.tensor = inputs + output;
  task.terms = map.count == 0 ? 0 : 1;
  int next = 0;
  for (const bool is_place : {true, false}) {
    for (int dim = 0; dim < map.rank; ++dim) {
      if ((map.strides[task.tensor][dim] != 0) != is_place) {
        continue;
      }
      task.map.dims[next] = map.dims[dim];
      for (int t = 0; t < kMaxMapTensors; ++t) {
        task.map.strides[t][next] = map.strides[t][dim];
      }
      if (std::int64_t& count = is_place ? task.places : task.terms; count != 0) {
        count *= map.dims[dim];  // none are not counted: other dims may then be any
      }
      ++next;
    }
    task.place_rank = is_place ? next : task.place_rank;
  }
  task.has_places_last = map.strides[task.tensor][map.rank - 1] != 0;
  task.last = task.has_places_last ? task.place_rank - 1 : map.rank - 1;
  return task;
}

MapSumTask MapWithoutSum(const MapTask& map) {
  MapSumTask task;
  task.map = map;
  task.place_rank = map.rank;
  task.places = map.count;
  task.last = std::max(map.rank - 1, 0);
  task.has_places_last = true;
  return task;
}

}  // namespace gradsmith::internal
