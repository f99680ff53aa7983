#ifndef GRADSMITH_TESTS_REFERENCE_ORACLE_H_
#define GRADSMITH_TESTS_REFERENCE_ORACLE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/random.h"
#include "reference/tensor.h"

namespace gradsmith::reference {

/// Expected is what an output should be, and how far off rounding may put it. The vectors go with
/// the value's elements.
struct Expected {
  Tensor value;
  /// How many terms are summed; 0 where the element is 0 whatever the data.
  std::vector<double> terms;
  /// With ExactData: no partial result is larger, counted in the smallest unit of any.
  std::vector<double> bound;
  /// First-order bound of a kernel's rounding error before it stores the element, in units of its
  /// accumulator's unit roundoff: (terms + a few) * (sum of the terms' absolute values), carried
  /// through what follows.
  std::vector<double> error;
  /// The size of what a kernel on CUDA may round to a type of 16 bits before it adds the element's
  /// last term, as cuDNN does before it adds a bias. Empty where kernels round results once.
  std::vector<double> interim = {};
};

using ExpectedOutputs = std::map<std::string, Expected, std::less<>>;

/// ExactData are inputs for which a kernel that rounds nowhere but where it must gets the oracle's
/// very results.
struct ExactData {
  Tensors inputs;
  /// Outputs that are not exact in every order of evaluation, with the reason.
  std::map<std::string, std::string, std::less<>> inexact;
};

/// Oracle is a kernel's mathematics in plain loops of float64, or of what is wider, and what data
/// probes it. Arguments go by the names of the kernel's, whatever their order in an op.
class Oracle {
 public:
  virtual ~Oracle() = default;

  /// OutputShapes returns the dims of every output, or nothing where the inputs do not fit
  /// together.
  [[nodiscard]] virtual std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const = 0;

  /// Run computes every output. The inputs fit together.
  [[nodiscard]] virtual ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const = 0;

  /// MakeRandomData returns real numbers of the size that the op meets in use.
  [[nodiscard]] virtual Tensors
  MakeRandomData(const Shapes& inputs, const Attributes& attributes, Random& random) const = 0;

  /// MakeExactData returns data whose results need fewer significant bits with each level, or
  /// nothing at a level past the last.
  [[nodiscard]] virtual std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const = 0;

  /// InexactOutputs are those that may be inexact on ExactData, in some case or type. The exact
  /// test fails where another is.
  [[nodiscard]] virtual std::set<std::string> InexactOutputs() const { return {}; }

  /// ExactAttributes are values of attributes that a case leaves open with which more outputs are
  /// exact.
  [[nodiscard]] virtual Attributes ExactAttributes() const { return {}; }
};

/// ShapesOf returns the tensors' dims.
Shapes ShapesOf(const Tensors& tensors);

/// MakeTensor returns a tensor whose elements come from `draw`, one call each.
template <typename Draw>
Tensor MakeTensor(const Shape& dims, Draw draw) {
  Tensor tensor{dims, {}};
  tensor.values.resize(static_cast<std::size_t>(Count(dims)));
  for (double& value : tensor.values) {
    value = static_cast<double>(draw());
  }
  return tensor;
}

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_ORACLE_H_
