#ifndef GRADSMITH_TESTS_EMULATED_GPU_SWITCH_STACK_H_
#define GRADSMITH_TESTS_EMULATED_GPU_SWITCH_STACK_H_

#include <cstddef>

/// Leaves this stack, goes on with another where that was left, and returns when somebody comes
/// back to what is then in `*here`. The library's functions for this take many times as long.
extern "C" void emulated_gpu_switch_stack(void** here, void* there);

namespace emulated_gpu {

/// A stack on which nothing has run, to switch to: `entry` begins there, and must not return. `end`
/// is aligned to 16 bytes.
void* NewStack(std::byte* end, void (*entry)());

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_SWITCH_STACK_H_
