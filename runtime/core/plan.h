#ifndef GRADSMITH_CORE_PLAN_H_
#define GRADSMITH_CORE_PLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// Launch is what one run of a plan needs: the device's stream (on the CPU the call's Context,
/// whose threads do the work), the addresses of the problem's tensors in the order of its family,
/// as much workspace as the plan asks for, and those numbers of the call on which no choice of a
/// plan depends, in the order of its family as well.
struct Launch {
  void* stream = nullptr;
  std::span<void* const> operands;
  void* workspace = nullptr;
  std::span<const double> scalars = {};
  /// A plan that copies this operand has the copy at `copy` and not in its workspace; -1 for none.
  int shared = -1;
  void* copy = nullptr;
  /// The copy is there already: Copy has made it, or the plan before, which makes the same one.
  bool is_copied = false;
  /// Where the plan also leaves sums of an operand's channels: see PartialSumRows.
  void* partial_sums = nullptr;
  /// Where these are to be added up, by a plan that AddsUpSums.
  const TensorRef* sums = nullptr;
};

/// OperandCopy is how a plan lays out the copy that it makes of an operand.
struct OperandCopy {
  Dims dims;
  Strides strides;
  /// Of workspace, a multiple of 256.
  std::size_t bytes = 0;

  friend bool operator==(const OperandCopy&, const OperandCopy&) = default;
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

  /// CopyOf returns the copy that the plan makes of an operand before all else; null for none.
  [[nodiscard]] virtual const OperandCopy* CopyOf(int /*operand*/) const { return nullptr; }

  /// PartialSumRows returns how many rows of partial sums of an operand's channels, in float, the
  /// plan can leave while it copies it, or, where it makes no copy, while it computes with it; 0
  /// where it cannot.
  [[nodiscard]] virtual std::int64_t PartialSumRows(int /*operand*/) const { return 0; }

  /// AddsUpSums returns whether the plan adds up the partial sums that it leaves, beside sums of
  /// its own.
  [[nodiscard]] virtual bool AddsUpSums() const { return false; }

  /// Copy enqueues no more than the copy of the launch's shared operand, which CopyOf tells of.
  virtual Status Copy(const Launch& /*launch*/) { return Internal("the plan copies nothing"); }

  /// Run enqueues the work. It neither allocates device memory nor waits.
  virtual Status Run(const Launch& launch) = 0;

 private:
  static inline std::atomic<std::uint64_t> last_serial = 0;

  std::uint64_t serial_;
  bool is_new_ = true;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PLAN_H_
