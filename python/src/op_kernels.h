#ifndef GRADSMITH_PYTHON_OP_KERNELS_H_
#define GRADSMITH_PYTHON_OP_KERNELS_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arguments.h"
#include "gradsmith/kernel.h"
#include "library.h"
#include "operands.h"

namespace gradsmith::python {

/// Inferred is how inputs lay, and the layouts of all outputs that were inferred for them.
struct Inferred {
  std::vector<std::optional<Layout>> layouts;
  std::vector<OutputLayout> outputs;
};

/// CachedKernel is a kernel, and what calls of it tend to have in common.
struct CachedKernel {
  const Row* row;
  std::vector<GivenAttribute> attributes;
  Kernel kernel;
  /// The tuple that the attributes were last read from where nothing in it can change, so that
  /// the same objects mean the same values; otherwise not valid.
  nanobind::object values;
  /// What was last inferred. Shared, as other threads may make calls while a library makes an
  /// array.
  std::shared_ptr<const Inferred> inferred;
};

/// Infer infers the layouts of all outputs, of which the caller has some, anew only where inputs
/// lie otherwise than before.
std::shared_ptr<const Inferred>
Infer(CachedKernel& kernel, const std::vector<Argument>& inputs, const std::vector<Output>& given);

/// OpKernels keeps the kernels that an operator's last calls were made of.
class OpKernels {
 public:
  /// The schema outlives this.
  explicit OpKernels(const OpSchema& schema) : schema_(schema) {}

  /// Find returns a kernel, which is made once for each row and attributes. `values` is a tuple of
  /// the latter.
  std::shared_ptr<CachedKernel> Find(const Row& row, nanobind::handle values);
  std::shared_ptr<CachedKernel> Find(const Row& row, std::vector<GivenAttribute> attributes);

 private:
  const OpSchema& schema_;
  std::mutex mutex_;
  /// The kernels, the last used first.
  std::vector<std::shared_ptr<CachedKernel>> kernels_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_OP_KERNELS_H_
