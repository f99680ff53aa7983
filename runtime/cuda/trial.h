#ifndef GRADSMITH_CUDA_TRIAL_H_
#define GRADSMITH_CUDA_TRIAL_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan.h"
#include "cuda/buffer.h"
#include "cuda/device.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::cuda {

/// TrialOperand is one of a problem's tensors. Its address counts for its alignment, and is read
/// where there is no memory for a copy.
struct TrialOperand {
  ConstTensorRef tensor;
  bool is_output = false;
  /// What it is filled with: an input, or an output that is added to.
  UniformRange values = {};
};

/// Trial is where candidates are tried: memory of the problem's shapes, strides and alignment,
/// apart from the caller's, with random inputs, on a stream of its own. Around each output, and
/// behind the workspace, lies memory that nobody may write.
class Trial {
 public:
  /// Create allocates and fills; it waits for the caller's stream. Absent operands stay absent.
  static Result<std::unique_ptr<Trial>> Create(
      const DeviceInfo& device,
      CUstream callers_stream,
      const std::vector<TrialOperand>& operands);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  Trial(Trial&&) = delete;
  Trial& operator=(Trial&&) = delete;
  ~Trial();

  [[nodiscard]] CUstream stream() const { return stream_; }
  /// The trial's addresses, null for absent operands.
  [[nodiscard]] std::span<void* const> operands() const { return addresses_; }
  /// What an output held before a run that adds to it; null for others.
  [[nodiscard]] const void* Before(std::size_t operand) const;
  /// CopyBefore enqueues a copy of that to device memory of the same layout; nothing for others.
  Status CopyBefore(std::size_t operand, void* to);
  /// The operand in the trial's memory.
  [[nodiscard]] TensorRef Ref(std::size_t operand) const;

  /// Run poisons the outputs, or restores those that are added to, and the workspace, then runs the
  /// plan once and waits. `scalars` are Launch's.
  Status Run(internal::Plan& plan, std::span<const double> scalars = {});

  /// Fill fills the operands with their values, as Create did.
  Status Fill();
  /// Whether inputs are copies: otherwise they are the caller's, and must not be written.
  [[nodiscard]] bool has_copies() const { return has_copies_; }
  /// Refill fills the operands with other values, one range for each; what they hold already is
  /// left alone.
  Status Refill(std::span<const UniformRange> values);

  /// CheckWritten reads all outputs whole; an element that is not finite was not written, or
  /// wrongly. What the last run wrote beyond its outputs or its workspace is an error as well.
  Status CheckWritten();
  /// The second half of it: whether the last run wrote beyond its outputs or its workspace.
  Status CheckGuards();

  /// CountNotFinite returns how many elements of an output are not finite after the last run.
  Result<std::int64_t> CountNotFinite(std::size_t output);

  /// Plant makes an input's element, so many behind its first in memory, not a number for the runs
  /// to come; Unplant makes it what it was.
  Status Plant(std::size_t operand, std::int64_t offset);
  Status Unplant();

  /// There is room for the differences of so many outputs, one behind the other.
  static constexpr int kDifferences = 8;
  /// Read waits and returns a difference that a kernel wrote to `difference()`.
  [[nodiscard]] Difference* difference() const {
    return static_cast<Difference*>(difference_.data());
  }
  Result<Difference> Read();
  Result<std::array<Difference, kDifferences>> ReadAll();

  /// Time runs the plan once with cold caches and returns its milliseconds: the GPU's, or the
  /// host's to enqueue it where that takes longer. `scalars` are Launch's.
  Result<double> Time(internal::Plan& plan, std::span<const double> scalars = {});

 private:
  explicit Trial(const DeviceInfo& device) : device_(device) {}

  Status Open(CUstream callers_stream);
  Status AllocateAll(const std::vector<TrialOperand>& operands, bool copy_inputs);
  Status ReserveWorkspace(const internal::Plan& plan);
  Status Poison(const internal::Plan& plan);
  Status CheckElements(std::size_t output);
  Status CheckGuards(std::size_t output);
  /// An error where the memory of a guard has been written.
  Status CheckGuard(const std::byte* guard, const std::string& where);
  Status Wait();

  const DeviceInfo& device_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  std::vector<TrialOperand> specs_;
  bool has_copies_ = false;
  std::vector<Buffer> buffers_;
  std::vector<Buffer> before_;
  std::vector<void*> addresses_;
  Buffer workspace_;
  /// How much of it the last run was given.
  std::size_t workspace_of_run_ = 0;
  Buffer difference_;
  /// Where an element was planted, and its bytes before.
  void* planted_ = nullptr;
  std::vector<std::byte> unplanted_;
  /// Twice the size of the L2 cache: writing it leaves nothing else there.
  Buffer flush_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_TRIAL_H_
