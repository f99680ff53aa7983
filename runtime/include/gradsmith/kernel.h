#ifndef GRADSMITH_KERNEL_H_
#define GRADSMITH_KERNEL_H_

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "gradsmith/attributes.h"
#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/registry.h"
#include "gradsmith/schema.h"

namespace gradsmith {

/// Kernel is a row with its attributes set: the dynamic door. Create it once, run it many times,
/// from any thread.
///
///     Result<Kernel> kernel = Kernel::Create(registry, "ConvGrad", {DataType::kFloat},
///     Backend::kCpu,
///                                            {{"strides", IntList{2, 2}}});
///     Status status = kernel->Run(context, inputs, outputs);
class Kernel {
 public:
  /// Create sets the named attributes, the others to their defaults. Errors: an attribute that the
  /// op does not have, given twice, of another kind, or out of range.
  static Result<Kernel> Create(const Row& row, std::span<const Attribute> attributes = {});

  /// Create finds the row first. Where there is none, or the build lacks its backend, the error is
  /// what Registry::Explain says.
  static Result<Kernel> Create(
      const Registry& registry,
      std::string_view op,
      std::span<const DataType> types,
      Backend backend,
      std::span<const Attribute> attributes = {});
  static Result<Kernel> Create(
      const Registry& registry,
      std::string_view op,
      std::initializer_list<DataType> types,
      Backend backend,
      std::initializer_list<Attribute> attributes = {}) {
    return Create(
        registry, op, std::span(types.begin(), types.size()), backend,
        std::span(attributes.begin(), attributes.size()));
  }

  /// Run computes the outputs that are present, one at least; arguments stand in the schema's
  /// order. An absent optional argument is a default-constructed view; trailing ones may be left
  /// out.
  Status Run(
      const Context& context,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs) const;
  Status Run(
      const Context& context,
      std::initializer_list<ConstTensorRef> inputs,
      std::initializer_list<TensorRef> outputs) const {
    return Run(
        context, std::span(inputs.begin(), inputs.size()),
        std::span(outputs.begin(), outputs.size()));
  }

  /// Prepare does all that Run does but the work: see Context::ForPreparing.
  Status Prepare(
      const Context& context,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs) const {
    return Run(context.ForPreparing(), inputs, outputs);
  }
  Status Prepare(
      const Context& context,
      std::initializer_list<ConstTensorRef> inputs,
      std::initializer_list<TensorRef> outputs) const {
    return Run(context.ForPreparing(), inputs, outputs);
  }

  /// InferShapes returns the dims of every output, in the schema's order, from the inputs' dims. An
  /// absent input is a default-constructed view; data may be null. Dims that no input and no
  /// attribute sets are taken from `outputs`, those that a caller has already.
  [[nodiscard]] Result<std::vector<Dims>> InferShapes(
      std::span<const ConstTensorRef> inputs,
      std::span<const ConstTensorRef> outputs = {}) const;
  [[nodiscard]] Result<std::vector<Dims>> InferShapes(
      std::initializer_list<ConstTensorRef> inputs) const {
    return InferShapes(std::span(inputs.begin(), inputs.size()));
  }

  [[nodiscard]] const Row& row() const { return *row_; }

 private:
  Kernel(const Row* row, std::shared_ptr<const void> attributes)
      : row_(row), attributes_(std::move(attributes)) {}

  const Row* row_;
  std::shared_ptr<const void> attributes_;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_KERNEL_H_
