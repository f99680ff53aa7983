#ifndef GRADSMITH_CONV_GEMM_H_
#define GRADSMITH_CONV_GEMM_H_

#include <cstdint>

namespace gradsmith::conv {

/// MatrixView is a matrix in memory whose rows, or columns, are dense. `outer_stride` leads from
/// one dense row (or column) to the next.
template <typename Real>
struct MatrixView {
  Real* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t outer_stride = 0;
  bool row_major = true;

  [[nodiscard]] MatrixView Transposed() const {
    return {data, cols, rows, outer_stride, !row_major};
  }
};

/// AddProduct adds the product of a (rows x depth) and b (depth x cols) to c (rows x cols), on the
/// calling thread.
template <typename Real>
void AddProduct(
    const MatrixView<const Real>& a,
    const MatrixView<const Real>& b,
    const MatrixView<Real>& c);

extern template void AddProduct(
    const MatrixView<const float>&,
    const MatrixView<const float>&,
    const MatrixView<float>&);
extern template void AddProduct(
    const MatrixView<const double>&,
    const MatrixView<const double>&,
    const MatrixView<double>&);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_GEMM_H_
