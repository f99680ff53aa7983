#ifndef GRADSMITH_TESTS_EMULATED_GPU_KERNEL_H_
#define GRADSMITH_TESTS_EMULATED_GPU_KERNEL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulated_gpu/block.h"

namespace emulated_gpu {

/// Kernel is one of the functions that the emulated GPU can run.
struct Kernel {
  std::string name;
  /// What a thread does, with a copy of the arguments that the pointers lead to.
  std::function<void()> (*bind)(void** arguments);
  const void* address;
  /// How many threads a block may have.
  unsigned most_threads;
  std::atomic<unsigned> most_dynamic_shared = 48 * 1024;

  Kernel(
      std::string of_name,
      std::function<void()> (*of_bind)(void**),
      const void* of_address,
      unsigned of_most_threads)
      : name(std::move(of_name)),
        bind(of_bind),
        address(of_address),
        most_threads(of_most_threads) {}
};

/// All of them; each file of kernels adds its own before main.
std::vector<Kernel*>& Kernels();

template <auto kFunction>
struct Binder;

template <typename... Arguments, void (*kFunction)(Arguments...)>
struct Binder<kFunction> {
  static std::function<void()> Bind(void** arguments) {
    return BindEach(arguments, std::index_sequence_for<Arguments...>());
  }

 private:
  template <std::size_t... kPlaces>
  static std::function<void()> BindEach(void** arguments, std::index_sequence<kPlaces...>) {
    std::tuple<std::remove_cv_t<Arguments>...> copies(
        *static_cast<std::remove_cv_t<Arguments>*>(arguments[kPlaces])...);
    return [copies] { std::apply(kFunction, copies); };
  }
};

/// Takes the launch bounds of a kernel: what follows the threads is about registers.
template <auto kFunction, typename... Others>
bool AddKernel(const char* name, unsigned most_threads, const Others&... /*others*/) {
  Kernels().push_back(new Kernel(
      name, &Binder<kFunction>::Bind, reinterpret_cast<const void*>(kFunction), most_threads));
  return true;
}

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_KERNEL_H_
