#ifndef GRADSMITH_BENCH_GPU_CONV_CONV_SHAPES_H_
#define GRADSMITH_BENCH_GPU_CONV_CONV_SHAPES_H_

#include "gpu/suite.h"
#include "gradsmith/conv_algorithms.h"
#include "gradsmith/tensor.h"

/// What a case of bench/suites says of a convolution's tensors.
namespace gradsmith::bench {

/// ConvShapes are the tensors of a convolution or a transposed one, and its attributes: x has C
/// channels and y has K, whichever it is.
struct ConvShapes {
  bool transposed = false;
  Dims x, w, y;
  Strides x_strides, w_strides, y_strides;
  ConvGeometry geometry;
  IntList output_padding;  ///< of a transposed convolution

  /// Floating-point operations of dX, and as many of dW.
  [[nodiscard]] double Operations() const;
};

ConvShapes ShapesOf(const SuiteCase& suite_case);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CONV_CONV_SHAPES_H_
