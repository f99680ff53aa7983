#include "emulated_gpu/switch_stack.h"

#include <cstdint>
#include <cstring>

// The registers that a function must keep are left on the stack that is left.
#if defined(__x86_64__)
__asm__(R"(
  .text
  .hidden emulated_gpu_switch_stack
  .globl emulated_gpu_switch_stack
  .type emulated_gpu_switch_stack, @function
emulated_gpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size emulated_gpu_switch_stack, .-emulated_gpu_switch_stack
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .hidden emulated_gpu_switch_stack
  .globl emulated_gpu_switch_stack
  .type emulated_gpu_switch_stack, %function
emulated_gpu_switch_stack:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
  .size emulated_gpu_switch_stack, .-emulated_gpu_switch_stack
)");
#else
#error "the emulated GPU is written for x86-64 and AArch64"
#endif

namespace emulated_gpu {

void* NewStack(std::byte* end, void (*entry)()) {
#if defined(__x86_64__)
  constexpr std::size_t kFrame = 64;
  constexpr std::size_t kEntry =
      48;  // after six registers; the function then finds rsp + 8 aligned
#else
  constexpr std::size_t kFrame = 160;
  constexpr std::size_t kEntry = 8;
#endif
  std::byte* frame = end - kFrame;
  std::memset(frame, 0, kFrame);
  const auto address = reinterpret_cast<std::uintptr_t>(entry);
  std::memcpy(frame + kEntry, &address, sizeof(address));
  return frame;
}

}  // namespace emulated_gpu
