#include "conv/gemm.h"

// Threads split convolutions into tiles; within a product there is one, whatever the compiler's
// OpenMP flags are.
#define EIGEN_DONT_PARALLELIZE     // NOLINT(cppcoreguidelines-macro-usage)
#include "core/eigen_namespace.h"  // first: it renames Eigen
//
#include <Eigen/Core>

namespace gradsmith::conv {
namespace {

template <typename Real, int kOrder>
using Map = Eigen::Map<
    Eigen::Matrix<std::remove_const_t<Real>, Eigen::Dynamic, Eigen::Dynamic, kOrder>,
    Eigen::Unaligned,
    Eigen::OuterStride<>>;
template <typename Real, int kOrder>
using ConstMap = Eigen::Map<
    const Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, kOrder>,
    Eigen::Unaligned,
    Eigen::OuterStride<>>;

template <typename Real, int kOrder>
ConstMap<Real, kOrder> ToEigen(const MatrixView<const Real>& view) {
  return {view.data, view.rows, view.cols, Eigen::OuterStride<>(view.outer_stride)};
}

/// c is row-major.
template <int kOrderA, int kOrderB, typename Real>
void AddProductInOrder(
    const MatrixView<const Real>& a,
    const MatrixView<const Real>& b,
    const MatrixView<Real>& c) {
  Map<Real, Eigen::RowMajor> sum(c.data, c.rows, c.cols, Eigen::OuterStride<>(c.outer_stride));
  sum.noalias() += ToEigen<Real, kOrderA>(a) * ToEigen<Real, kOrderB>(b);
}

template <int kOrderA, typename Real>
void AddProductInOrder(
    const MatrixView<const Real>& a,
    const MatrixView<const Real>& b,
    const MatrixView<Real>& c) {
  if (b.row_major) {
    AddProductInOrder<kOrderA, Eigen::RowMajor>(a, b, c);
  } else {
    AddProductInOrder<kOrderA, Eigen::ColMajor>(a, b, c);
  }
}

}  // namespace

template <typename Real>
void AddProduct(
    const MatrixView<const Real>& a,
    const MatrixView<const Real>& b,
    const MatrixView<Real>& c) {
  if (!c.row_major) {
    AddProduct(b.Transposed(), a.Transposed(), c.Transposed());
  } else if (a.row_major) {
    AddProductInOrder<Eigen::RowMajor>(a, b, c);
  } else {
    AddProductInOrder<Eigen::ColMajor>(a, b, c);
  }
}

template void AddProduct(
    const MatrixView<const float>&,
    const MatrixView<const float>&,
    const MatrixView<float>&);
template void AddProduct(
    const MatrixView<const double>&,
    const MatrixView<const double>&,
    const MatrixView<double>&);

}  // namespace gradsmith::conv
