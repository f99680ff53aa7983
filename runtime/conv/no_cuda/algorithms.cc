#include <memory>

#include "core/no_cuda/no_cuda.h"
#include "gradsmith/conv_algorithms.h"

/// The choice of algorithms in a build without CUDA.
namespace gradsmith {

class ConvAlgorithms::Impl {};

ConvAlgorithms::ConvAlgorithms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConvAlgorithms::ConvAlgorithms(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms& ConvAlgorithms::operator=(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms::~ConvAlgorithms() = default;

Result<std::size_t> LargestWorkspace(const Context& /*context*/, const WorkspaceLimit& /*limit*/) {
  return internal::NoCuda();
}

Result<ConvAlgorithms> ConvAlgorithms::Prepare(
    const Context& /*context*/,
    ConvPrimitive /*primitive*/,
    const TensorRef& /*x*/,
    const TensorRef& /*w*/,
    const TensorRef& /*y*/,
    const ConvGeometry& /*geometry*/) {
  return internal::NoCuda();
}

Result<std::vector<ConvAlgorithm>> ConvAlgorithms::List() {
  return internal::NoCuda();
}

Result<std::size_t> ConvAlgorithms::WorkspaceOf(const std::string& /*name*/) {
  return internal::NoCuda();
}

Result<ConvAlgorithm> ConvAlgorithms::Best(SearchMode /*mode*/, const WorkspaceLimit& /*limit*/) {
  return internal::NoCuda();
}

Result<std::string> ConvAlgorithms::Run(
    std::span<const std::string> /*names*/,
    std::vector<ConvAttempt>* /*attempts*/) {
  return internal::NoCuda();
}

Result<std::string> ConvAlgorithms::Run(
    std::span<const std::string> /*names*/,
    const ConvAddresses& /*addresses*/,
    std::vector<ConvAttempt>* /*attempts*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith
