#ifndef GRADSMITH_CORE_PLAN_H_
#define GRADSMITH_CORE_PLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "gradsmith/status.h"

/// A CUDA stream as the driver declares it, whose header only the CUDA backend includes.
struct CUstream_st;

namespace gradsmith {
class Context;
}  // namespace gradsmith

namespace gradsmith::internal {

/// Launch is what one run of a plan needs.
struct Launch {
  /// The stream that the work is enqueued on, where it is on CUDA.
  CUstream_st* stream = nullptr;
  /// The addresses of the problem's tensors, in the order of its family.
  std::span<void* const> operands;
  /// Device memory of the size that the plan's workspace() asks for.
  void* workspace = nullptr;
  /// The numbers of the call on which no choice of a plan depends, in the order of its family.
  std::span<const double> scalars = {};
  /// The call's context, whose threads do the work, where it is on the CPU.
  const Context* context = nullptr;
};

/// Plan is a candidate that is ready to run, on one device and by one thread at a time.
class Plan : public std::enable_shared_from_this<Plan> {
 public:
  Plan() : serial_(++last_serial) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  Plan(Plan&&) = delete;
  Plan& operator=(Plan&&) = delete;
  virtual ~Plan() = default;

  /// A number that no other plan of the process has, before or after.
  [[nodiscard]] std::uint64_t serial() const { return serial_; }

  /// Whether no call has run the plan before; asking makes it so.
  bool TakeFirstRun() { return std::exchange(is_new_, false); }

  /// Bytes of workspace, aligned to 256.
  [[nodiscard]] virtual std::size_t workspace() const = 0;

  /// Run enqueues the work. It neither allocates device memory nor waits.
  virtual Status Run(const Launch& launch) = 0;

 private:
  static inline std::atomic<std::uint64_t> last_serial = 0;

  std::uint64_t serial_;
  bool is_new_ = true;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PLAN_H_
