#ifndef GRADSMITH_CONV_PATCHES_H_
#define GRADSMITH_CONV_PATCHES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "conv/axis_taps.h"
#include "conv/grid_matrix.h"
#include "conv/problem.h"

namespace gradsmith::conv {

/// TensorSteps are the strides of a tensor whose spatial axes have been brought to kMaxSpatialRank.
struct TensorSteps {
  /// The product of the dims before the spatial ones.
  std::int64_t outer = 0;
  std::int64_t channel = 0;
  PerAxis<std::int64_t> spatial{};
};

/// OffsetOf returns where parts begin in a tensor with the given steps.
inline std::int64_t OffsetOf(
    const PerAxis<AxisPart>& parts,
    internal::Range AxisPart::*range,
    const TensorSteps& steps) {
  std::int64_t offset = 0;
  for (int i = 0; i < kMaxSpatialRank; ++i) {
    offset += (parts[i].*range).begin * steps.spatial[i];
  }
  return offset;
}

/// PatchMatrix is the matrix whose product with the filter is the convolution (im2col), made block
/// by block: a row for each channel and tap, a column for each position of each image.
template <typename T>
class PatchMatrix {
 public:
  using Element = T;
  using Real = internal::Accumulator<T>;

  PatchMatrix(
      const T* source,
      const TensorSteps& steps,
      std::int64_t images,
      std::int64_t channels,
      const PerAxis<AxisTaps>& axes)
      : source_(source), steps_(steps), axes_(axes), channels_(channels) {
    positions_.counts = {images, axes[0].positions, axes[1].positions, axes[2].positions};
  }

  /// Rows in the order in which Pack makes them, as a grid over a tensor with the given strides:
  /// (channel, taps...), or (taps..., channel) where the source's memory has channels last.
  [[nodiscard]] Grid RowGrid(const TensorSteps& steps) const;

  [[nodiscard]] std::int64_t rows() const { return channels_ * rows_per_channel(); }
  [[nodiscard]] std::int64_t images() const { return positions_.counts[0]; }
  [[nodiscard]] std::int64_t positions_per_image() const {
    return axes_[0].positions * axes_[1].positions * axes_[2].positions;
  }
  /// The columns, as a grid over a tensor of their positions.
  [[nodiscard]] Grid PositionGrid(const TensorSteps& steps) const {
    Grid grid = positions_;
    grid.strides = {steps.outer, steps.spatial[0], steps.spatial[1], steps.spatial[2]};
    return grid;
  }

  /// Whether some patch reaches beyond the source, where it holds zeros.
  [[nodiscard]] bool ReachesBeyond() const {
    return std::ranges::any_of(axes_, &AxisTaps::ReachesBeyond);
  }
  [[nodiscard]] const PerAxis<AxisTaps>& axes() const { return axes_; }

  /// Part returns the patches of some positions, and of these patches some taps.
  [[nodiscard]] PatchMatrix Part(const PerAxis<AxisPart>& parts) const {
    PerAxis<AxisTaps> axes;
    std::ranges::transform(axes_, parts, axes.begin(), &AxisTaps::Part);
    return {source_, steps_, images(), channels_, axes};
  }

  /// View returns the block without a copy, where each row is just a channel of the source.
  [[nodiscard]] std::optional<MatrixView<const T>> View(Range rows, Range cols) const;

  /// Pack makes the block at `to`.
  MatrixView<const Real> Pack(Range rows, Range cols, Real* to) const;

  /// Advanced returns the same patches of a source that begins `elements` later.
  [[nodiscard]] PatchMatrix Advanced(std::int64_t elements) const {
    PatchMatrix result = *this;
    result.source_ += elements;
    return result;
  }

 private:
  /// Consecutive positions of one image along the last axis.
  struct Run {
    const T* image;
    PerAxis<std::int64_t> position;
    std::int64_t count;
  };
  using Taps = PerAxis<std::int64_t>;

  [[nodiscard]] std::int64_t rows_per_channel() const {
    return axes_[0].taps * axes_[1].taps * axes_[2].taps;
  }
  /// With fewer channels a stretch of them is too short to be worth it.
  static constexpr std::int64_t kMinChannelsLast = 16;
  [[nodiscard]] bool channels_last() const {
    return channels_ >= kMinChannelsLast && steps_.channel < steps_.spatial[kMaxSpatialRank - 1];
  }
  [[nodiscard]] std::vector<Run> RunsOf(Range cols) const;
  [[nodiscard]] Taps TapsOf(std::int64_t tap) const;
  /// Adds to `offset` where the run's first position reads along an axis; false where that is
  /// outside.
  [[nodiscard]] bool Reach(int axis, const Run& run, const Taps& taps, std::int64_t* offset) const;

  void PackChannelsFirst(Range rows, Range cols, Real* to) const;
  void PackChannelsLast(Range rows, Range cols, Real* to) const;
  void PackRun(const T* channel, const Run& run, const Taps& taps, Real* to) const;
  void PackPixel(const Run& run, Range rows, Real* to) const;

  const T* source_;
  TensorSteps steps_;
  PerAxis<AxisTaps> axes_;
  std::int64_t channels_;
  /// (image, positions...), without strides.
  Grid positions_;
};

extern template class PatchMatrix<float>;
extern template class PatchMatrix<double>;
extern template class PatchMatrix<MLFloat16>;
extern template class PatchMatrix<BFloat16>;

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_PATCHES_H_
