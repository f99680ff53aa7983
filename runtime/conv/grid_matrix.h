#ifndef GRADSMITH_CONV_GRID_MATRIX_H_
#define GRADSMITH_CONV_GRID_MATRIX_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "conv/gemm.h"
#include "core/element.h"
#include "core/grid.h"
#include "core/tiles.h"

namespace gradsmith::conv {

using internal::Grid;
using internal::GridCursor;
using internal::Range;

/// CopyRun copies and converts `count` elements with given strides.
template <typename To, typename From>
void CopyRun(
    const From* from,
    std::int64_t from_stride,
    To* to,
    std::int64_t to_stride,
    std::int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    if constexpr (std::is_same_v<To, From>) {
      std::copy_n(from, count, to);
    } else {
      std::transform(from, from + count, to, internal::Convert<To, From>);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    to[i * to_stride] = internal::Convert<To>(from[i * from_stride]);
  }
}

/// AreFinite says whether neither an infinity nor NaN is among `count` elements `stride` apart.
template <typename T>
bool AreFinite(const T* data, std::int64_t stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(internal::Convert<internal::Accumulator<T>>(data[i * stride]))) {
      return false;
    }
  }
  return true;
}

/// GridMatrix is a tensor of any type and strides seen as a matrix: one dim is the rows, a grid of
/// others the columns. T is const where it is only read.
template <typename T>
class GridMatrix {
 public:
  using Element = std::remove_const_t<T>;
  using Real = internal::Accumulator<Element>;

  GridMatrix(T* data, std::int64_t row_stride, const Grid& columns)
      : data_(data), row_stride_(row_stride), columns_(internal::Collapsed(columns)) {}

  /// View returns the block as it lies in memory, where that is what a matrix product takes.
  [[nodiscard]] std::optional<MatrixView<T>> View(Range rows, Range cols) const {
    if constexpr (std::is_same_v<Element, Real>) {
      const GridCursor first(columns_, cols.begin);
      if (cols.size() > first.run()) {
        return std::nullopt;
      }
      T* data = data_ + (rows.begin * row_stride_) + first.offset();
      const std::int64_t col_stride = columns_.strides[Grid::kLast];
      if (col_stride == 1 || cols.size() == 1) {
        return MatrixView<T>{data, rows.size(), cols.size(), row_stride_, true};
      }
      if (row_stride_ == 1 || rows.size() == 1) {
        return MatrixView<T>{data, rows.size(), cols.size(), col_stride, false};
      }
    }
    return std::nullopt;
  }

  /// Packed returns a view of a dense block at `data`, in the order that Pack writes and Unpack
  /// reads.
  template <typename Other>
  [[nodiscard]] MatrixView<Other> Packed(Other* data, Range rows, Range cols) const {
    return {
        data, rows.size(), cols.size(), rows_innermost() ? rows.size() : cols.size(),
        !rows_innermost()};
  }

  MatrixView<const Real> Pack(Range rows, Range cols, Real* to) const {
    ForEachRun(
        rows, cols, [to](T* from, std::int64_t stride, std::int64_t index, std::int64_t count) {
          CopyRun(from, stride, to + index, 1, count);
        });
    return Packed<const Real>(to, rows, cols);
  }

  template <typename From>
  void Unpack(const From* from, Range rows, Range cols) const {
    ForEachRun(
        rows, cols, [from](T* to, std::int64_t stride, std::int64_t index, std::int64_t count) {
          CopyRun(from + index, 1, to, stride, count);
        });
  }

  /// Whether the block holds neither infinities nor NaN.
  [[nodiscard]] bool AllFinite(Range rows, Range cols) const {
    bool finite = true;
    ForEachRun(rows, cols, [&](T* from, std::int64_t stride, std::int64_t, std::int64_t count) {
      finite = finite && AreFinite<Element>(from, stride, count);
    });
    return finite;
  }

  /// Fill writes one value to the block.
  void Fill(Real value, Range rows, Range cols) const {
    ForEachRun(rows, cols, [value](T* to, std::int64_t stride, std::int64_t, std::int64_t count) {
      CopyRun(&value, 0, to, stride, count);
    });
  }

 private:
  /// Memory is read and written in the order in which it lies: channels-last tensors down the rows.
  [[nodiscard]] bool rows_innermost() const { return row_stride_ < columns_.strides[Grid::kLast]; }

  /// Calls visit(data, stride, index, count) for elements that lie `stride` apart; `index` counts
  /// in the packed block.
  template <typename Visitor>
  void ForEachRun(Range rows, Range cols, const Visitor& visit) const {
    if (rows_innermost()) {
      GridCursor cursor(columns_, cols.begin);
      for (std::int64_t col = 0; col < cols.size(); ++col, cursor.Advance(1)) {
        visit(
            data_ + (rows.begin * row_stride_) + cursor.offset(), row_stride_, col * rows.size(),
            rows.size());
      }
      return;
    }
    std::int64_t index = 0;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      T* data = data_ + (row * row_stride_);
      GridCursor cursor(columns_, cols.begin);
      for (std::int64_t left = cols.size(); left > 0;) {
        const std::int64_t count = std::min(left, cursor.run());
        visit(data + cursor.offset(), columns_.strides[Grid::kLast], index, count);
        cursor.Advance(count);
        index += count;
        left -= count;
      }
    }
  }

  T* data_;
  std::int64_t row_stride_;
  Grid columns_;
};

/// ViewOrPack returns a block of a GridMatrix or PatchMatrix as it lies in memory or, failing that,
/// packed at `to`.
template <typename Matrix>
MatrixView<const typename Matrix::Real>
ViewOrPack(const Matrix& matrix, Range rows, Range cols, typename Matrix::Real* to) {
  if constexpr (std::is_same_v<typename Matrix::Element, typename Matrix::Real>) {
    if (const auto view = matrix.View(rows, cols)) {
      return *view;
    }
  }
  return matrix.Pack(rows, cols, to);
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_GRID_MATRIX_H_
