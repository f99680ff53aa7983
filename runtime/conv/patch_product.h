#ifndef GRADSMITH_CONV_PATCH_PRODUCT_H_
#define GRADSMITH_CONV_PATCH_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "conv/grid_matrix.h"
#include "conv/patches.h"
#include "core/element.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"

/// Forward and backward-data are the same product: result = filter * patches of the source, plus a
/// bias for each row of the result.
namespace gradsmith::conv {

/// What one group of channels reads and writes, and how far on the next group lies.
template <typename T>
struct PatchProduct {
  using Real = internal::Accumulator<T>;

  PatchMatrix<T> patches;
  std::int64_t patches_group_step = 0;
  /// (row, channel of the patches, taps...)
  const T* filter = nullptr;
  TensorSteps filter_steps;
  std::int64_t filter_group_step = 0;
  /// (image, row, positions...)
  T* result = nullptr;
  TensorSteps result_steps;
  std::int64_t result_group_step = 0;
  std::int64_t groups = 0;
  std::int64_t rows = 0;
  /// One for each row of each group, or empty.
  const std::vector<Real>* bias = nullptr;

  [[nodiscard]] GridMatrix<const T> Filter(std::int64_t group) const {
    return {
        filter + (group * filter_group_step), filter_steps.outer, patches.RowGrid(filter_steps)};
  }
  [[nodiscard]] GridMatrix<T> Result(std::int64_t group) const {
    return {
        result + (group * result_group_step), result_steps.channel,
        patches.PositionGrid(result_steps)};
  }
  /// Part returns the product of some positions and taps.
  [[nodiscard]] PatchProduct Part(const PerAxis<AxisPart>& parts) const {
    PatchProduct part = *this;
    part.patches = patches.Part(parts);
    part.filter += OffsetOf(parts, &AxisPart::taps, filter_steps);
    part.result += OffsetOf(parts, &AxisPart::positions, result_steps);
    return part;
  }
};

/// RunPatchProduct computes the whole result. No part of the product is empty. What a patch holds
/// beyond the source meets no element of the filter that is not finite.
template <typename T>
void RunPatchProduct(const Context& context, const PatchProduct<T>& product);

/// LoadBias returns a bias, or an empty vector where it is null.
template <typename T>
std::vector<internal::Accumulator<T>> LoadBias(const ConstTensorRef* bias);

/// FillWithBias writes each channel's bias, or zero where `bias` is empty, to all of a tensor.
template <typename T>
void FillWithBias(
    const Context& context,
    T* data,
    std::int64_t channels,
    std::int64_t channel_stride,
    const Grid& columns,
    const std::vector<internal::Accumulator<T>>& bias);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_PATCH_PRODUCT_H_
