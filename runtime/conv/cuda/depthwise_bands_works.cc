#include "conv/cuda/depthwise_bands_works.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "conv/cuda/filter_slices.h"
#include "core/tiles.h"

namespace gradsmith::conv::depthwise_bands {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

constexpr int kWarp = 32;
constexpr int kBanksBytes = 128;

/// A work's images, strips of each and windows of a row.
struct Shape {
  std::int64_t planes;
  std::int64_t strips;
  std::int64_t windows;
};

/// What is missing from a number of bytes to where the banks are those of another one.
std::int64_t ToBanksOf(std::int64_t wanted, std::int64_t bytes) {
  return (((wanted - bytes) % kBanksBytes) + kBanksBytes) % kBanksBytes;
}

/// The room for so many rows of so many elements, of which windows take `step` rows and elements
/// for each result. False where it is too large.
bool SetRoom(
    const Channel& channel,
    const Shape& shape,
    std::int64_t rows,
    std::int64_t elements,
    int step_down,
    int step_across,
    int width,
    Room* room) {
  const std::int64_t window = std::int64_t{kWindow} * step_across * channel.element_bytes;
  const std::int64_t pitch = elements * channel.element_bytes;
  const int strip_rows = channel.rows * step_down;
  const std::int64_t skew = ToBanksOf(shape.windows * window, strip_rows * pitch);
  room->shift = std::countr_zero(static_cast<unsigned>(strip_rows));
  const std::int64_t plane = (rows * pitch) + (((rows - 1) >> room->shift) * skew);
  const std::int64_t plane_pitch = plane + ToBanksOf(shape.strips * shape.windows * window, plane);
  const std::int64_t bytes = shape.planes * plane_pitch;
  if (bytes > kMostSharedBytes) {
    return false;
  }
  constexpr unsigned kMostBits = 5;
  const auto columns = static_cast<unsigned>(std::min<std::int64_t>(width, elements));
  room->bits = static_cast<int>(std::min<unsigned>(kMostBits, std::bit_width(columns - 1)));
  room->pitch = static_cast<int>(pitch);
  room->skew = static_cast<int>(skew);
  room->plane_pitch = static_cast<int>(plane_pitch);
  room->units = DivisorOf(elements / room->unit);
  room->rows = DivisorOf(rows);
  room->copies = static_cast<int>(shape.planes * rows * (elements / room->unit));
  room->bytes = static_cast<int>(bytes);
  return true;
}

int BlockElements(const Channel& channel) {
  return channel.is_filter ? kWindows : kBlockBytes / channel.element_bytes;
}

bool SetRooms(const Channel& channel, const Shape& shape, Arguments* p) {
  const std::int64_t rows = shape.strips * channel.rows;
  const std::int64_t elements = ((shape.windows - 1) * kWindow * p->step_across) +
                                (std::int64_t{p->blocks} * BlockElements(channel));
  if (!SetRoom(
          channel, shape, ((rows - 1) * p->step_down) + p->taps_down, elements, p->step_down,
          p->step_across, p->from.width, &p->from_room)) {
    return false;
  }
  return !channel.is_filter ||
         SetRoom(channel, shape, rows, shape.windows * kWindow, 1, 1, p->to.width, &p->to_room);
}

int TilesAtOnce(const Channel& channel) {
  return channel.rows == 1 && !channel.is_filter ? kTilesOfRow : 1;
}

/// Products that a warp makes at a time.
std::int64_t TurnsOf(const Channel& channel, const Shape& shape) {
  const int windows =
      channel.is_filter ? kBlockBytes / channel.element_bytes : kWindows * TilesAtOnce(channel);
  return CeilDivide(shape.planes * shape.strips * shape.windows, windows);
}

/// WarpsOf returns as many as there are turns of warps, which come in sets of the filter's items.
int WarpsOf(const Channel& channel, const Shape& shape) {
  const std::int64_t turns = TurnsOf(channel, shape);
  const int most = channel.is_filter ? std::max(1, kMostThreads * 2 / kWarp / channel.items)
                                     : kMostThreads / kWarp;
  return static_cast<int>(std::min<std::int64_t>(turns, most)) * channel.items;
}

/// Cycles of a multiprocessor for what a warp does in a turn.
double CyclesOfTurn(const Channel& channel, const Arguments& p) {
  constexpr double kForProduct = 2.5;
  constexpr double kForMatrices = 4;
  const int rows = channel.rows;
  if (channel.is_filter) {
    const int blocks = rows == 1 ? kBlocksOfRow : 1;
    return (kForProduct * rows * rows * blocks) + (kForMatrices * ((2 * rows - 1) * blocks)) +
           (2 * rows) + 10;
  }
  const double of_tile = (kForProduct * p.taps_down * rows * p.blocks) +
                         (kForMatrices * (p.taps_down + rows - 1) * p.blocks) + (4 * rows) + 20;
  return of_tile * TilesAtOnce(channel);
}

/// What all works take, in cycles of a multiprocessor: an estimate.
double CyclesOf(const Channel& channel, const Shape& shape, const Arguments& p, Launch* launch) {
  constexpr double kBytesOfCycle = 20;
  constexpr double kForCopy = 0.4;
  constexpr double kForWork = 100;
  constexpr double kSharedBytes = 228 * 1024;
  constexpr double kBlocksAtOnce = 6;
  launch->stage_bytes = p.from_room.bytes + (channel.is_filter ? p.to_room.bytes : 0);
  const int warps = WarpsOf(channel, shape);
  launch->threads = warps * kWarp;
  const std::int64_t rounds = CeilDivide(TurnsOf(channel, shape), warps / channel.items);
  const double copies = p.from_room.copies + (channel.is_filter ? p.to_room.copies : 0);
  const double cycles = (static_cast<double>(rounds * warps) * CyclesOfTurn(channel, p)) +
                        (copies * kForCopy) + (launch->stage_bytes / kBytesOfCycle) + kForWork;
  const double bytes = channel.band_bytes + (2.0 * launch->stage_bytes) + 1024;
  const double crowded = std::max(1.0, kBlocksAtOnce * bytes / kSharedBytes);
  const std::int64_t works = CeilDivide(channel.images, shape.planes) *
                             CeilDivide(channel.strips, shape.strips) *
                             CeilDivide(channel.windows, shape.windows) * channel.channels;
  constexpr std::int64_t kFewest = std::int64_t{24} * kMultiprocessorsOfSlices;
  return static_cast<double>(std::max(works, kFewest)) * cycles * crowded;
}

/// Calls for every shape that is worth a thought.
template <typename Visit>
void ForEachShape(const Channel& channel, const Visit& visit) {
  constexpr std::int64_t kMostWindows = 512;
  constexpr std::int64_t kMostStrips = 64;
  constexpr std::int64_t kFewWindows = 16;
  constexpr std::int64_t kMostCuts = 48;
  const std::int64_t least_across = CeilDivide(channel.windows, kMostWindows);
  const std::int64_t least_down = CeilDivide(channel.strips, kMostStrips);
  for (std::int64_t i = 1; i <= kMostCuts; ++i) {
    const std::int64_t windows = CeilDivide(channel.windows, least_across * i);
    for (std::int64_t j = 1; j <= kMostCuts; ++j) {
      const std::int64_t strips = CeilDivide(channel.strips, least_down * j);
      visit(Shape{1, strips, windows});
      if (strips == 1) {
        break;
      }
    }
    if (windows <= kFewWindows) {
      break;
    }
  }
  for (std::int64_t planes = 2; planes <= std::min(channel.images, channel.most_planes); ++planes) {
    visit(Shape{planes, channel.strips, channel.windows});
  }
}

}  // namespace

bool SetWorks(const Channel& channel, Arguments* arguments, Launch* launch) {
  Shape best{};
  double least = 0;
  ForEachShape(channel, [&](const Shape& shape) {
    Arguments tried = *arguments;
    if (!SetRooms(channel, shape, &tried)) {
      return;
    }
    Launch tried_launch{};
    const double cycles = CyclesOf(channel, shape, tried, &tried_launch);
    const int bytes =
        std::max(2 * tried_launch.stage_bytes, LeftBytes(channel, tried, tried_launch.threads)) +
        channel.band_bytes;
    if (bytes <= kMostSharedBytes && (best.planes == 0 || cycles < least)) {
      best = shape;
      least = cycles;
      *launch = tried_launch;
    }
  });
  if (best.planes == 0 || !SetRooms(channel, best, arguments)) {
    return false;
  }
  const std::int64_t across = CeilDivide(channel.windows, best.windows);
  const std::int64_t down = CeilDivide(channel.strips, best.strips);
  constexpr std::int64_t kMostWorks = 1 << 30;
  const std::int64_t groups = CeilDivide(channel.images, best.planes) * arguments->classes.divisor;
  if (across > kMostWorks || down > kMostWorks / across || groups > kMostWorks / (across * down)) {
    return false;
  }
  arguments->planes = static_cast<int>(best.planes);
  arguments->strips = DivisorOf(best.strips);
  arguments->windows = DivisorOf(best.windows);
  arguments->across = DivisorOf(across);
  arguments->down = DivisorOf(down);
  arguments->works = static_cast<int>(groups * across * down);
  return true;
}

int LeftBytes(const Channel& channel, const Arguments& arguments, int threads) {
  if (!channel.is_filter) {
    return 0;
  }
  const int blocks = channel.rows == 1 ? kBlocksOfRow : 1;
  const int diagonals = kWindows + ((kWindow - 1) * arguments.step_across);
  const int of_warp = (kWindows * kWindow) + (channel.rows * blocks * diagonals);
  return threads / kWarp * of_warp * static_cast<int>(sizeof(float));
}

}  // namespace gradsmith::conv::depthwise_bands
