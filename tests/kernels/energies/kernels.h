#ifndef GRADSMITH_TESTS_KERNELS_ENERGIES_KERNELS_H_
#define GRADSMITH_TESTS_KERNELS_ENERGIES_KERNELS_H_

#include <string_view>

#include "core/kernel_arguments.h"
#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Operators of tests/kernels/ops.yaml that are made of the pattern `windows` alone.
namespace gradsmith::energies {

struct PoolAttributes {
  IntList kernel_shape = {};
  IntList strides = {};
};

inline constexpr std::string_view kOutputSpatial = R"(
    expect given(kernel_shape): attribute kernel_shape is []; expected the window's dims
    windows(D, entry(kernel_shape, 1))
)";
Result<Dims> OutputSpatial(const PoolAttributes& attributes, const Dims& D);

struct EnergyPool {
  static constexpr std::string_view kShapes =
      "X [N, C, *D], Y [N, C, *O], O = energies::OutputSpatial(D)";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = PoolAttributes;
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status Run(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

struct EnergyPoolGrad {
  static constexpr std::string_view kShapes =
      "dY [N, C, *O], X [N, C, *D], dX [N, C, *D], O = energies::OutputSpatial(D)";
  static constexpr std::string_view kTypes = "dY T, X T, dX T";
  static constexpr std::string_view kGradientOf = "EnergyPool, dY of Y, dX of X";
  using Attributes = PoolAttributes;
  struct Inputs {
    RequiredInput dY = nullptr;
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput dX = nullptr;
  };
  static Status Run(
      const Context& context,
      const Attributes& attributes,
      const Inputs& inputs,
      const Outputs& outputs);
};

}  // namespace gradsmith::energies

#endif  // GRADSMITH_TESTS_KERNELS_ENERGIES_KERNELS_H_
