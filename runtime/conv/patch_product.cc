#include "conv/patch_product.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "conv/tiling.h"
#include "core/parallel.h"

namespace gradsmith::conv {
namespace {

/// How a product is cut: rows and columns of the result, and the terms of its sums.
struct ProductBlocking {
  Tiles rows;
  PositionTiles cols;
  Tiles depth;
};

template <typename T>
ProductBlocking ChooseProductBlocking(const PatchProduct<T>& product) {
  constexpr std::int64_t kMaxRows = 256;
  constexpr std::int64_t kMinRows = 32;
  constexpr std::int64_t kMaxDepth = 2048;
  constexpr std::int64_t kMaxCols = 4096;
  const Tiles depth(product.patches.rows(), kMaxDepth);
  const PositionTiles cols(
      product.patches.images(), product.patches.positions_per_image(),
      std::min(kMaxCols, CeilDivide(kBlockElements, depth.largest())));
  std::int64_t rows = kMaxRows;
  while (rows > kMinRows &&
         product.groups * Tiles(product.rows, rows).count() * cols.count() < kEnoughTasks) {
    rows /= 2;
  }
  return {Tiles(product.rows, rows), cols, depth};
}

/// Scratch memory of one thread.
template <typename Real>
struct ProductWorkspace {
  explicit ProductWorkspace(const ProductBlocking& blocking)
      : filter(AllocateScratch<Real>(blocking.rows.largest() * blocking.depth.largest())),
        patches(AllocateScratch<Real>(blocking.depth.largest() * blocking.cols.largest())),
        result(AllocateScratch<Real>(blocking.rows.largest() * blocking.cols.largest())) {}

  std::unique_ptr<Real[]> filter;
  std::unique_ptr<Real[]> patches;
  std::unique_ptr<Real[]> result;
};

template <typename Real>
void FillRow(const MatrixView<Real>& matrix, std::int64_t row, Real value) {
  const std::int64_t stride = matrix.row_major ? 1 : matrix.outer_stride;
  Real* data = matrix.data + (row * (matrix.row_major ? matrix.outer_stride : 1));
  CopyRun(&value, 0, data, stride, matrix.cols);
}

template <typename T>
void RunTile(
    const PatchProduct<T>& product,
    const Tiles& depth_tiles,
    std::int64_t group,
    Range rows,
    Range cols,
    const ProductWorkspace<internal::Accumulator<T>>& workspace) {
  using Real = internal::Accumulator<T>;
  const GridMatrix<const T> filter = product.Filter(group);
  const GridMatrix<T> result = product.Result(group);
  const PatchMatrix<T> patches = product.patches.Advanced(group * product.patches_group_step);

  // Float and double results are summed where they will stand, if memory allows.
  MatrixView<Real> sum = result.Packed(workspace.result.get(), rows, cols);
  bool in_place = false;
  if constexpr (std::is_same_v<T, Real>) {
    const std::optional<MatrixView<T>> view = result.View(rows, cols);
    in_place = view.has_value();
    sum = view.value_or(sum);
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t channel = (group * product.rows) + row;
    FillRow(sum, row - rows.begin, product.bias->empty() ? Real{0} : (*product.bias)[channel]);
  }
  for (std::int64_t i = 0; i < depth_tiles.count(); ++i) {
    const Range depth = depth_tiles[i];
    AddProduct(
        ViewOrPack(filter, rows, depth, workspace.filter.get()),
        ViewOrPack(patches, depth, cols, workspace.patches.get()), sum);
  }
  if (!in_place) {
    result.Unpack(workspace.result.get(), rows, cols);
  }
}

template <typename T>
void RunTiles(const Context& context, const PatchProduct<T>& product) {
  const ProductBlocking blocking = ChooseProductBlocking(product);
  const std::int64_t row_tiles = blocking.rows.count();
  const std::int64_t col_tiles = blocking.cols.count();
  const std::int64_t multiplications =
      blocking.rows.largest() * blocking.cols.largest() * product.patches.rows();
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    const ProductWorkspace<internal::Accumulator<T>> workspace(blocking);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t group = task / (row_tiles * col_tiles);
      RunTile(
          product, blocking.depth, group, blocking.rows[(task / col_tiles) % row_tiles],
          blocking.cols[task % col_tiles], workspace);
    }
  };
  internal::ParallelFor(
      context, product.groups * row_tiles * col_tiles,
      CeilDivide(kMinMultiplications, multiplications), body);
}

/// Whether zeros that a patch holds beyond the source have met an element of the filter that is not
/// finite. Each column of the result is then not finite in that element's row: one column tells,
/// and the filter is read only where it does.
template <typename T>
bool HasMultipliedBeyond(const PatchProduct<T>& product) {
  if (!product.patches.ReachesBeyond() ||
      AreFinite(product.result, product.result_steps.channel, product.groups * product.rows)) {
    return false;
  }
  const Range depth{0, product.patches.rows()};
  for (std::int64_t group = 0; group < product.groups; ++group) {
    if (!product.Filter(group).AllFinite({0, product.rows}, depth)) {
      return true;
    }
  }
  return false;
}

/// Computes the result in parts whose patches lie within the source.
template <typename T>
void RunWithinSource(const Context& context, const PatchProduct<T>& product) {
  ForEachPart(product.patches.axes(), PartsByPosition, [&](const PerAxis<AxisPart>& parts) {
    const PatchProduct<T> part = product.Part(parts);
    if (part.patches.rows() > 0) {
      RunTiles(context, part);
    } else {
      FillWithBias(
          context, part.result, part.groups * part.rows, part.result_steps.channel,
          part.patches.PositionGrid(part.result_steps), *part.bias);
    }
  });
}

}  // namespace

template <typename T>
void RunPatchProduct(const Context& context, const PatchProduct<T>& product) {
  RunTiles(context, product);
  if (HasMultipliedBeyond(product)) {
    RunWithinSource(context, product);
  }
}

template <typename T>
std::vector<internal::Accumulator<T>> LoadBias(const ConstTensorRef* bias) {
  if (bias == nullptr) {
    return {};
  }
  std::vector<internal::Accumulator<T>> values(bias->dims[0]);
  CopyRun(static_cast<const T*>(bias->data), bias->strides[0], values.data(), 1, bias->dims[0]);
  return values;
}

template <typename T>
void FillWithBias(
    const Context& context,
    T* data,
    std::int64_t channels,
    std::int64_t channel_stride,
    const Grid& columns,
    const std::vector<internal::Accumulator<T>>& bias) {
  constexpr std::int64_t kColumnsPerTask = 1 << 16;
  const GridMatrix<T> result(data, channel_stride, columns);
  const Tiles tiles(columns.size(), kColumnsPerTask);
  internal::ParallelFor(
      context, channels * tiles.count(), CeilDivide(kColumnsPerTask, tiles.largest()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t channel = task / tiles.count();
          result.Fill(
              bias.empty() ? 0 : bias[channel], {channel, channel + 1},
              tiles[task % tiles.count()]);
        }
      });
}

template void RunPatchProduct(const Context&, const PatchProduct<float>&);
template std::vector<internal::Accumulator<float>> LoadBias<float>(const ConstTensorRef*);
template void FillWithBias(
    const Context&,
    float*,
    std::int64_t,
    std::int64_t,
    const Grid&,
    const std::vector<internal::Accumulator<float>>&);
template void RunPatchProduct(const Context&, const PatchProduct<double>&);
template std::vector<internal::Accumulator<double>> LoadBias<double>(const ConstTensorRef*);
template void FillWithBias(
    const Context&,
    double*,
    std::int64_t,
    std::int64_t,
    const Grid&,
    const std::vector<internal::Accumulator<double>>&);
template void RunPatchProduct(const Context&, const PatchProduct<MLFloat16>&);
template std::vector<internal::Accumulator<MLFloat16>> LoadBias<MLFloat16>(const ConstTensorRef*);
template void FillWithBias(
    const Context&,
    MLFloat16*,
    std::int64_t,
    std::int64_t,
    const Grid&,
    const std::vector<internal::Accumulator<MLFloat16>>&);
template void RunPatchProduct(const Context&, const PatchProduct<BFloat16>&);
template std::vector<internal::Accumulator<BFloat16>> LoadBias<BFloat16>(const ConstTensorRef*);
template void FillWithBias(
    const Context&,
    BFloat16*,
    std::int64_t,
    std::int64_t,
    const Grid&,
    const std::vector<internal::Accumulator<BFloat16>>&);

}  // namespace gradsmith::conv
