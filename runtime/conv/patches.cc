#include "conv/patches.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gradsmith::conv {
namespace {

constexpr int kLast = kMaxSpatialRank - 1;

}  // namespace

template <typename T>
Grid PatchMatrix<T>::RowGrid(const TensorSteps& steps) const {
  const PerAxis<std::int64_t> taps{axes_[0].taps, axes_[1].taps, axes_[2].taps};
  if (channels_last()) {
    return {
        .counts = {taps[0], taps[1], taps[2], channels_},
        .strides = {steps.spatial[0], steps.spatial[1], steps.spatial[2], steps.channel}};
  }
  return {
      .counts = {channels_, taps[0], taps[1], taps[2]},
      .strides = {steps.channel, steps.spatial[0], steps.spatial[1], steps.spatial[2]}};
}

template <typename T>
std::optional<MatrixView<const T>> PatchMatrix<T>::View(Range rows, Range cols) const {
  if (!std::all_of(
          axes_.begin(), axes_.end(), [](const AxisTaps& axis) { return axis.IsIdentity(); })) {
    return std::nullopt;
  }
  return GridMatrix<const T>(source_, steps_.channel, PositionGrid(steps_)).View(rows, cols);
}

template <typename T>
MatrixView<const typename PatchMatrix<T>::Real>
PatchMatrix<T>::Pack(Range rows, Range cols, Real* to) const {
  if (channels_last()) {
    PackChannelsLast(rows, cols, to);
    return {to, rows.size(), cols.size(), rows.size(), false};
  }
  PackChannelsFirst(rows, cols, to);
  return {to, rows.size(), cols.size(), cols.size(), true};
}

template <typename T>
void PatchMatrix<T>::PackChannelsFirst(Range rows, Range cols, Real* to) const {
  const std::vector<Run> runs = RunsOf(cols);
  const std::int64_t taps_per_channel = rows_per_channel();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t channel_offset = (row / taps_per_channel) * steps_.channel;
    const Taps taps = TapsOf(row % taps_per_channel);
    for (const Run& run : runs) {
      PackRun(run.image + channel_offset, run, taps, to);
      to += run.count;
    }
  }
}

template <typename T>
void PatchMatrix<T>::PackRun(const T* channel, const Run& run, const Taps& taps, Real* to) const {
  std::int64_t offset = 0;
  if (!Reach(0, run, taps, &offset) || !Reach(1, run, taps, &offset)) {
    std::fill_n(to, run.count, Real{0});
    return;
  }
  const AxisTaps& axis = axes_[kLast];
  const std::int64_t start = axis.SourceOf(run.position[kLast], taps[kLast]);
  const Range inside = InsidePart(start, axis.step, run.count, axis.source);
  std::fill_n(to, inside.begin, Real{0});
  if (inside.size() > 0) {
    const T* from =
        channel + offset + ((start + (inside.begin * axis.step)) * steps_.spatial[kLast]);
    // With a single element the stride may be anything, and the product too large.
    const std::int64_t stride = inside.size() > 1 ? axis.step * steps_.spatial[kLast] : 1;
    CopyRun(from, stride, to + inside.begin, 1, inside.size());
  }
  std::fill(to + inside.end, to + run.count, Real{0});
}

template <typename T>
void PatchMatrix<T>::PackChannelsLast(Range rows, Range cols, Real* to) const {
  for (Run run : RunsOf(cols)) {
    for (; run.count > 0; --run.count, ++run.position[kLast]) {
      PackPixel(run, rows, to);
      to += rows.size();
    }
  }
}

/// One position's column: for each tap, a stretch of channels.
template <typename T>
void PatchMatrix<T>::PackPixel(const Run& run, Range rows, Real* to) const {
  for (std::int64_t row = rows.begin; row < rows.end;) {
    const std::int64_t channel = row % channels_;
    const std::int64_t count = std::min(channels_ - channel, rows.end - row);
    const Taps taps = TapsOf(row / channels_);
    std::int64_t offset = channel * steps_.channel;
    if (Reach(0, run, taps, &offset) && Reach(1, run, taps, &offset) &&
        Reach(kLast, run, taps, &offset)) {
      CopyRun(run.image + offset, steps_.channel, to, 1, count);
    } else {
      std::fill_n(to, count, Real{0});
    }
    to += count;
    row += count;
  }
}

template <typename T>
bool PatchMatrix<T>::Reach(int axis, const Run& run, const Taps& taps, std::int64_t* offset) const {
  const std::int64_t index = axes_[axis].SourceOf(run.position[axis], taps[axis]);
  if (index < 0 || index >= axes_[axis].source) {
    return false;
  }
  *offset += index * steps_.spatial[axis];
  return true;
}

template <typename T>
std::vector<typename PatchMatrix<T>::Run> PatchMatrix<T>::RunsOf(Range cols) const {
  std::vector<Run> runs;
  GridCursor cursor(positions_, cols.begin);
  for (std::int64_t left = cols.size(); left > 0;) {
    const std::int64_t count = std::min(left, cursor.run());
    runs.push_back(
        {source_ + (cursor.position(0) * steps_.outer),
         {cursor.position(1), cursor.position(2), cursor.position(3)},
         count});
    cursor.Advance(count);
    left -= count;
  }
  return runs;
}

template <typename T>
typename PatchMatrix<T>::Taps PatchMatrix<T>::TapsOf(std::int64_t tap) const {
  Taps taps{};
  for (int axis = kLast; axis >= 0; --axis) {
    taps[axis] = tap % axes_[axis].taps;
    tap /= axes_[axis].taps;
  }
  return taps;
}

template class PatchMatrix<float>;
template class PatchMatrix<double>;
template class PatchMatrix<MLFloat16>;
template class PatchMatrix<BFloat16>;

}  // namespace gradsmith::conv
