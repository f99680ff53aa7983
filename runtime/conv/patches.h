#ifndef GRADSMITH_CONV_PATCHES_H_
#define GRADSMITH_CONV_PATCHES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "conv/grid_matrix.h"
#include "conv/problem.h"

namespace gradsmith::conv {

template <typename Value>
using PerAxis = std::array<Value, kMaxSpatialRank>;

/// AxisTaps says which source positions a position of the result reads along one axis: position p
/// reads, with tap t, source[p * step + first + t * tap_step], or zero where there is none.
struct AxisTaps {
  std::int64_t positions = 1;
  std::int64_t source = 1;
  std::int64_t taps = 1;
  std::int64_t step = 1;
  std::int64_t first = 0;
  std::int64_t tap_step = 0;

  [[nodiscard]] std::int64_t SourceOf(std::int64_t position, std::int64_t tap) const {
    return (position * step) + first + (tap * tap_step);
  }
  /// Whether position p just reads source[p].
  [[nodiscard]] bool IsIdentity() const {
    return taps == 1 && first == 0 && (step == 1 || positions == 1) && positions <= source;
  }
};

/// TensorSteps are the strides of a tensor whose spatial axes have been brought to kMaxSpatialRank.
struct TensorSteps {
  /// Of the dims before the spatial ones.
  std::int64_t outer = 0;
  std::int64_t channel = 0;
  PerAxis<std::int64_t> spatial{};
};

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
  [[nodiscard]] Grid RowGrid(std::int64_t channel_stride, const PerAxis<std::int64_t>& tap_strides)
      const;

  [[nodiscard]] std::int64_t rows() const { return channels_ * rows_per_channel(); }
  [[nodiscard]] std::int64_t images() const { return positions_.counts[0]; }
  [[nodiscard]] std::int64_t positions_per_image() const {
    return axes_[0].positions * axes_[1].positions * axes_[2].positions;
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
