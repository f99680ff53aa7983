#include "conv/reach.h"

#include <algorithm>
#include <cstddef>

namespace gradsmith::conv {

namespace {

constexpr int kFirstAxis = 2;

/// The positions of y whose tap k meets a pixel of x.
std::int64_t PositionsOfTap(const Axis& axis, std::int64_t k) {
  const std::int64_t shift = (k * axis.dilation) - axis.pad_begin;
  const std::int64_t first = shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride;
  const std::int64_t room = axis.x - 1 - shift;
  const std::int64_t last = room < 0 ? -1 : std::min(axis.y - 1, room / axis.stride);
  return std::max<std::int64_t>(0, last - first + 1);
}

/// The taps by which a pixel of x is in a sum of y.
std::int64_t TapsOfPixel(const Axis& axis, std::int64_t pixel) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < axis.w; ++k) {
    const std::int64_t from = pixel + axis.pad_begin - (k * axis.dilation);
    const bool meets = from >= 0 && from % axis.stride == 0 && from / axis.stride < axis.y;
    count += meets ? 1 : 0;
  }
  return count;
}

/// The taps at which a position of y meets a pixel of x.
std::int64_t TapsOfPosition(const Axis& axis, std::int64_t position) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < axis.w; ++k) {
    const std::int64_t pixel = (position * axis.stride) + (k * axis.dilation) - axis.pad_begin;
    count += pixel >= 0 && pixel < axis.x ? 1 : 0;
  }
  return count;
}

/// An axis's products that the index of an operand takes part in. Each is of another element of
/// either other operand.
std::int64_t ProductsAlong(const Axis& axis, Operand operand, std::int64_t index) {
  switch (operand) {
    case kX:
      return TapsOfPixel(axis, index);
    case kW:
      return PositionsOfTap(axis, index);
    case kY:
      break;
  }
  return TapsOfPosition(axis, index);
}

/// How many elements of a result one of an operand meets beside the axes: of the filter's, which is
/// of one channel of each, every sample; of others' a group's channels on the other side.
std::int64_t ElementsBesideAxes(const Problem& problem, Operand operand) {
  if (operand == kW) {
    return problem.batch;
  }
  return (operand == kX ? problem.y_channels : problem.x_channels) / problem.group;
}

}  // namespace

std::vector<Place> PlacesToTry(const Problem& problem, Operand operand) {
  const Dims dims = DimsOf(problem, operand);
  std::vector<Place> places;
  for (const int at : {0, 1, 2}) {
    Place place{.operand = operand, .index = {}};
    for (const std::int64_t dim : dims) {
      place.index.push_back((dim - 1) * at / 2);
    }
    if (places.empty() || places.back().index != place.index) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

std::int64_t ReachedElements(const Problem& problem, const Place& place) {
  std::int64_t count = ElementsBesideAxes(problem, place.operand);
  for (int i = 0; i < problem.spatial_rank; ++i) {
    count *= ProductsAlong(problem.axes.at(i), place.operand, place.index.at(i + kFirstAxis));
  }
  return count;
}

std::int64_t OffsetOf(const Problem& problem, const Place& place) {
  const Strides& strides = StridesOf(problem, place.operand);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < place.index.size(); ++i) {
    offset += place.index[i] * strides[static_cast<int>(i)];
  }
  return offset;
}

}  // namespace gradsmith::conv
