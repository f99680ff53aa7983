#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "conv/lowering.h"
#include "conv/patches.h"
#include "conv/primitives.h"
#include "conv/tiling.h"
#include "core/element.h"
#include "core/parallel.h"

/// dW = dY * patches of x, transposed: a sum over all positions of all images. Blocks of dW are
/// tasks; where these are few, the sum is cut into chunks as well, whose partial sums are added up
/// in order. Partial sums are kept in double: they are few beside the products, and the sums are
/// the longest there are.
namespace gradsmith::conv {
namespace {

template <typename T>
struct FilterProduct {
  PatchMatrix<T> patches;
  std::int64_t patches_group_step = 0;
  const T* y = nullptr;
  TensorSteps y_steps;
  std::int64_t y_group_step = 0;
  T* w = nullptr;
  TensorSteps w_steps;
  std::int64_t w_group_step = 0;
  std::int64_t groups = 0;
  std::int64_t rows = 0;

  [[nodiscard]] PatchMatrix<T> Patches(std::int64_t group) const {
    return patches.Advanced(group * patches_group_step);
  }
  [[nodiscard]] GridMatrix<const T> Y(std::int64_t group) const {
    return {y + (group * y_group_step), y_steps.channel, patches.PositionGrid(y_steps)};
  }
  [[nodiscard]] GridMatrix<T> W(std::int64_t group) const {
    return {w + (group * w_group_step), w_steps.outer, patches.RowGrid(w_steps)};
  }
  /// Part returns the product of some positions and taps.
  [[nodiscard]] FilterProduct Part(const PerAxis<AxisPart>& parts) const {
    FilterProduct part = *this;
    part.patches = patches.Part(parts);
    part.y += OffsetOf(parts, &AxisPart::positions, y_steps);
    part.w += OffsetOf(parts, &AxisPart::taps, w_steps);
    return part;
  }
};

/// Block is a piece of one group's filter.
struct Block {
  std::int64_t group = 0;
  Range rows;
  Range cols;

  [[nodiscard]] std::int64_t size() const { return rows.size() * cols.size(); }
};

class Blocking {
 public:
  Blocking(
      std::int64_t groups,
      std::int64_t rows,
      std::int64_t cols,
      std::int64_t images,
      std::int64_t positions_per_image)
      : groups_(groups),
        rows_(rows, kMaxRows),
        cols_(cols, std::min(kMaxCols, CeilDivide(kMaxSums, rows_.largest()))),
        positions_(
            images,
            positions_per_image,
            std::min(
                kMaxPositions,
                CeilDivide(kBlockElements, std::max(rows_.largest(), cols_.largest())))),
        chunks_(
            positions_.count(),
            CeilDivide(positions_.count(), CeilDivide(kEnoughTasks, blocks()))) {}

  [[nodiscard]] std::int64_t blocks() const { return groups_ * rows_.count() * cols_.count(); }
  [[nodiscard]] Block block(std::int64_t i) const {
    return {
        .group = i / (rows_.count() * cols_.count()),
        .rows = rows_[(i / cols_.count()) % rows_.count()],
        .cols = cols_[i % cols_.count()]};
  }
  [[nodiscard]] std::int64_t largest_block() const { return rows_.largest() * cols_.largest(); }
  [[nodiscard]] std::int64_t largest_rows() const { return rows_.largest(); }
  [[nodiscard]] std::int64_t largest_cols() const { return cols_.largest(); }

  /// What the sum over positions is cut into: tiles, each one matrix product, and chunks of tiles,
  /// each one task.
  [[nodiscard]] const PositionTiles& positions() const { return positions_; }
  [[nodiscard]] const Tiles& chunks() const { return chunks_; }

 private:
  static constexpr std::int64_t kMaxRows = 256;
  static constexpr std::int64_t kMaxCols = 1024;
  static constexpr std::int64_t kMaxSums = std::int64_t{1} << 15;
  static constexpr std::int64_t kMaxPositions = 4096;

  std::int64_t groups_;
  Tiles rows_;
  Tiles cols_;
  PositionTiles positions_;
  Tiles chunks_;
};

/// Scratch memory of one thread.
template <typename Real>
struct Workspace {
  explicit Workspace(const Blocking& blocking)
      : y(AllocateScratch<Real>(blocking.largest_rows() * blocking.positions().largest())),
        patches(AllocateScratch<Real>(blocking.largest_cols() * blocking.positions().largest())),
        product(AllocateScratch<Real>(blocking.largest_block())) {}

  std::unique_ptr<Real[]> y;
  std::unique_ptr<Real[]> patches;
  std::unique_ptr<Real[]> product;
};

/// Adds a block's sum over the positions of one tile.
template <typename T>
void AddTile(
    const FilterProduct<T>& filter_product,
    const Block& block,
    Range positions,
    const Workspace<internal::Accumulator<T>>& workspace,
    double* sums) {
  using Real = internal::Accumulator<T>;
  const auto y =
      ViewOrPack(filter_product.Y(block.group), block.rows, positions, workspace.y.get());
  const auto patches = ViewOrPack(
      filter_product.Patches(block.group), block.cols, positions, workspace.patches.get());
  const GridMatrix<T> w = filter_product.W(block.group);
  if constexpr (std::is_same_v<Real, double>) {
    AddProduct(y, patches.Transposed(), w.Packed(sums, block.rows, block.cols));
  } else {
    Real* product = workspace.product.get();
    std::fill_n(product, block.size(), Real{0});
    AddProduct(y, patches.Transposed(), w.Packed(product, block.rows, block.cols));
    std::transform(product, product + block.size(), sums, sums, [](Real term, double sum) {
      return sum + term;
    });
  }
}

/// Sums a block over the positions of one chunk.
template <typename T>
void SumChunk(
    const FilterProduct<T>& product,
    const Blocking& blocking,
    const Block& block,
    std::int64_t chunk,
    const Workspace<internal::Accumulator<T>>& workspace,
    double* sums) {
  std::fill_n(sums, block.size(), 0.0);
  const Range tiles = blocking.chunks()[chunk];
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    AddTile(product, block, blocking.positions()[tile], workspace, sums);
  }
}

template <typename T>
void Store(const FilterProduct<T>& product, const Block& block, const double* sums) {
  product.W(block.group).Unpack(sums, block.rows, block.cols);
}

std::int64_t Grain(const Blocking& blocking) {
  const std::int64_t multiplications =
      blocking.largest_block() * blocking.positions().largest() * blocking.chunks().largest();
  return CeilDivide(kMinMultiplications, multiplications);
}

/// One task for each block.
template <typename T>
void RunWhole(const Context& context, const FilterProduct<T>& product, const Blocking& blocking) {
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    const Workspace<internal::Accumulator<T>> workspace(blocking);
    std::vector<double> sums(blocking.largest_block());
    for (std::int64_t i = begin; i < end; ++i) {
      const Block block = blocking.block(i);
      SumChunk(product, blocking, block, 0, workspace, sums.data());
      Store(product, block, sums.data());
    }
  };
  internal::ParallelFor(context, blocking.blocks(), Grain(blocking), body);
}

/// One task for each block and chunk of the sum.
template <typename T>
void RunInChunks(
    const Context& context,
    const FilterProduct<T>& product,
    const Blocking& blocking) {
  const std::int64_t chunks = blocking.chunks().count();
  const std::int64_t tasks = blocking.blocks() * chunks;
  std::vector<double> partial_sums(tasks * blocking.largest_block());
  const auto sums_of = [&](std::int64_t task) {
    return partial_sums.data() + (task * blocking.largest_block());
  };
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    const Workspace<internal::Accumulator<T>> workspace(blocking);
    for (std::int64_t task = begin; task < end; ++task) {
      SumChunk(
          product, blocking, blocking.block(task / chunks), task % chunks, workspace,
          sums_of(task));
    }
  };
  internal::ParallelFor(context, tasks, Grain(blocking), body);
  for (std::int64_t first = 0; first < tasks; first += chunks) {
    const Block block = blocking.block(first / chunks);
    double* sums = sums_of(first);
    for (std::int64_t task = first + 1; task < first + chunks; ++task) {
      std::transform(sums, sums + block.size(), sums_of(task), sums, std::plus<>());
    }
    Store(product, block, sums);
  }
}

template <typename T>
void Run(const Context& context, const FilterProduct<T>& product) {
  const Blocking blocking(
      product.groups, product.rows, product.patches.rows(), product.patches.images(),
      product.patches.positions_per_image());
  if (blocking.chunks().count() == 1) {
    RunWhole(context, product, blocking);
  } else {
    RunInChunks(context, product, blocking);
  }
}

/// Whether zeros that a patch holds beyond x have met an element of y that is not finite. All of
/// its channel's filter is then not finite: one element tells, and y is read only where it does.
template <typename T>
bool HasMultipliedBeyond(const FilterProduct<T>& product) {
  if (!product.patches.ReachesBeyond() ||
      AreFinite(product.w, product.w_steps.outer, product.groups * product.rows)) {
    return false;
  }
  const Range cols{0, product.patches.images() * product.patches.positions_per_image()};
  for (std::int64_t group = 0; group < product.groups; ++group) {
    if (!product.Y(group).AllFinite({0, product.rows}, cols)) {
      return true;
    }
  }
  return false;
}

/// Computes the filter tap by tap, each from the positions that read x with it.
template <typename T>
void RunWithinSource(const Context& context, const FilterProduct<T>& product) {
  ForEachPart(product.patches.axes(), PartsByTap, [&](const PerAxis<AxisPart>& parts) {
    const FilterProduct<T> part = product.Part(parts);
    if (part.patches.positions_per_image() > 0) {
      Run(context, part);
      return;
    }
    for (std::int64_t group = 0; group < part.groups; ++group) {
      part.W(group).Fill(0, {0, part.rows}, {0, part.patches.rows()});
    }
  });
}

template <typename T>
void BackwardFilterOf(
    const Context& context,
    const Problem& problem,
    const T* x,
    const T* y,
    T* w) {
  const LoweredProblem lowered = Lower(problem);
  const std::int64_t x_channels = problem.x_channels / problem.group;
  const std::int64_t y_channels = problem.y_channels / problem.group;
  if (x_channels == 0 || y_channels == 0) {
    return;
  }
  const PatchMatrix<T> patches(x, lowered.x, problem.batch, x_channels, ForwardTaps(lowered));
  if (patches.images() * patches.positions_per_image() == 0 ||
      HasZero(SizesOf(lowered, &Axis::x))) {
    const Grid w_columns = patches.RowGrid(lowered.w);
    const GridMatrix<T> filter(w, lowered.w.outer, w_columns);
    filter.Fill(0, {0, problem.y_channels}, {0, w_columns.size()});
    return;
  }
  const FilterProduct<T> product{
      .patches = patches,
      .patches_group_step = x_channels * lowered.x.channel,
      .y = y,
      .y_steps = lowered.y,
      .y_group_step = y_channels * lowered.y.channel,
      .w = w,
      .w_steps = lowered.w,
      .w_group_step = y_channels * lowered.w.outer,
      .groups = problem.group,
      .rows = y_channels};
  Run(context, product);
  if (HasMultipliedBeyond(product)) {
    RunWithinSource(context, product);
  }
}

}  // namespace

void BackwardFilter(
    const Context& context,
    const Problem& problem,
    const void* x,
    const void* y,
    void* w) {
  internal::VisitFloatingType(problem.type, [&]<typename T>(std::type_identity<T>) {
    BackwardFilterOf(
        context, problem, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(w));
  });
}

}  // namespace gradsmith::conv
