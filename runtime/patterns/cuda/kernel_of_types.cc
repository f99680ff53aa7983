#include "patterns/cuda/kernel_of_types.h"

#include <string_view>

#include "cuda/kernel_table.h"
#include "cuda/module.h"

namespace gradsmith::cuda {

namespace {

using internal::RowsTypes;

/// What the names of kernels that serve half and bf16 both have in the place of either.
std::string_view SharedSuffix(DataType type) {
  const bool is_short = type == DataType::kMLFloat16 || type == DataType::kBFloat16;
  return is_short ? "short" : KernelSuffix(type);
}

template <typename SuffixOf>
std::string With(const std::string& name, const RowsTypes& types, const SuffixOf& suffix_of) {
  const std::string first = name + "_" + std::string(suffix_of(types.first));
  return types.first == types.second ? first : first + "_" + std::string(suffix_of(types.second));
}

}  // namespace

std::string
NameForTypes(const KernelImage& image, const std::string& name, const RowsTypes& types) {
  std::string own = With(name, types, KernelSuffix);
  std::string shared = With(name, types, SharedSuffix);
  const bool is_shared =
      !FindKernel({&image}, own.c_str()).ok() && FindKernel({&image}, shared.c_str()).ok();
  return is_shared ? shared : own;
}

}  // namespace gradsmith::cuda
