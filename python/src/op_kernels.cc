#include "op_kernels.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "errors.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// How many kernels are kept. The least recently used makes room for another.
constexpr std::size_t kMaxKernels = 64;

/// MayBindDims returns whether the dims of some outputs may hang on those of others, which the
/// caller passes.
bool MayBindDims(const OpSchema& op, const std::vector<Output>& given) {
  return std::any_of(
             op.symbols.begin(), op.symbols.end(),
             [](const SymbolSpec& symbol) { return symbol.from_outputs; }) &&
         std::any_of(given.begin(), given.end(), [](const Output& output) {
           return output.array.ref.present;
         });
}

/// LayoutOf returns how an input lies; of one that holds a shape, the dims that it holds.
std::optional<Layout> LayoutOf(const Argument& input) {
  if (input.held) {
    return Layout{*input.held, {}};
  }
  return input.object.is_valid()
             ? std::optional(Layout{input.array.ref.dims, input.array.ref.strides})
             : std::nullopt;
}

/// HasLayouts returns whether layouts were inferred for inputs that lie so.
bool HasLayouts(
    const std::vector<Argument>& inputs,
    const std::vector<std::optional<Layout>>& layouts) {
  return std::equal(
      inputs.begin(), inputs.end(), layouts.begin(), layouts.end(),
      [](const Argument& input, const std::optional<Layout>& expected) {
        if (!expected) {
          return !input.held && !input.object.is_valid();
        }
        const TensorRef& ref = input.array.ref;
        return input.held ? *input.held == expected->dims
                          : input.object.is_valid() && ref.dims == expected->dims &&
                                ref.strides == expected->strides;
      });
}

std::vector<std::optional<Layout>> LayoutsOf(const std::vector<Argument>& inputs) {
  std::vector<std::optional<Layout>> layouts(inputs.size());
  std::transform(inputs.begin(), inputs.end(), layouts.begin(), &LayoutOf);
  return layouts;
}

}  // namespace

std::shared_ptr<const Inferred>
Infer(CachedKernel& kernel, const std::vector<Argument>& inputs, const std::vector<Output>& given) {
  if (kernel.inferred == nullptr || !HasLayouts(inputs, kernel.inferred->layouts) ||
      MayBindDims(*kernel.row->op, given)) {
    const std::vector<ConstTensorRef> refs = Refs(inputs);
    const std::vector<TensorRef> passed = Refs(given);
    const std::vector<ConstTensorRef> outputs(passed.begin(), passed.end());
    const Result<std::vector<Dims>> shapes = kernel.kernel.InferShapes(
        std::span<const ConstTensorRef>(refs), std::span<const ConstTensorRef>(outputs));
    Check(shapes.status());
    const bool is_channels_last = IsChannelsLast(inputs);
    Inferred inferred{LayoutsOf(inputs), {}};
    for (const Dims& dims : *shapes) {
      inferred.outputs.emplace_back(dims, is_channels_last);
    }
    kernel.inferred = std::make_shared<const Inferred>(std::move(inferred));
  }
  return kernel.inferred;
}

std::shared_ptr<CachedKernel> OpKernels::Find(const Row& row, nb::handle values) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::shared_ptr<CachedKernel>& kernel : kernels_) {
      if (kernel->row == &row && kernel->values.is_valid() && HasItems(kernel->values, values)) {
        return kernel;
      }
    }
  }
  // What a value does to be read may be Python's code, which must not wait for the lock.
  std::shared_ptr<CachedKernel> kernel = Find(row, ReadAttributes(schema_, values));
  kernel->values = IsFixed(values) ? nb::borrow(values) : nb::object();
  return kernel;
}

std::shared_ptr<CachedKernel> OpKernels::Find(
    const Row& row,
    std::vector<GivenAttribute> attributes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& kernel) {
    return kernel->row == &row && kernel->attributes == attributes;
  });
  if (found != kernels_.end()) {
    std::rotate(kernels_.begin(), found, found + 1);
    return kernels_.front();
  }
  const std::vector<Attribute> named = ToAttributes(schema_, attributes);
  Result<Kernel> kernel = Kernel::Create(row, named);
  Check(kernel.status());
  if (kernels_.size() == kMaxKernels) {
    kernels_.pop_back();
  }
  auto made = std::make_shared<CachedKernel>(
      CachedKernel{&row, std::move(attributes), std::move(*kernel), {}, nullptr});
  kernels_.insert(kernels_.begin(), made);
  return made;
}

}  // namespace gradsmith::python
