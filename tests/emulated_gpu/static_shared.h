#ifndef GRADSMITH_TESTS_EMULATED_GPU_STATIC_SHARED_H_
#define GRADSMITH_TESTS_EMULATED_GPU_STATIC_SHARED_H_

#include <cstddef>
#include <span>
#include <vector>

namespace emulated_gpu {

using Variable = std::span<std::byte>;

/// The variables that kernels declare as __shared__, of the library that has this kernel: to C++
/// they are variables of functions that are there as long as the process. Read from the library's
/// symbols, which it must have. It has no other variables of functions, but those of `emulated`
/// namespaces.
const std::vector<Variable>& StaticSharedOf(const void* kernel);

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_STATIC_SHARED_H_
