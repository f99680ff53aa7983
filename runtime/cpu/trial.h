#ifndef GRADSMITH_CPU_TRIAL_H_
#define GRADSMITH_CPU_TRIAL_H_

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/uniform_range.h"
#include "cpu/aligned_memory.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::cpu {

/// Trial is where candidates are tried: memory of a problem's shapes and strides, apart from the
/// caller's, with random inputs, in [-1, 1) at first. All tensors are float, and the one at
/// `output` is the result.
class Trial {
 public:
  /// Computes the result from the operands in another way.
  using Reference = std::function<void(std::span<void* const> operands)>;

  /// `context` is the caller's; absent tensors stay absent.
  Trial(
      const Context& context,
      const std::vector<ConstTensorRef>& tensors,
      std::size_t output,
      Reference reference);

  /// Refill fills the inputs with other numbers, a range for each tensor, where they hold others.
  void Refill(std::span<const internal::UniformRange> ranges);

  /// Check runs the plan with a poisoned result and workspace, and returns how far the result is
  /// from the reference's, relative to its norm. It must be whole, and within `allowed`, and
  /// nothing between or beside its elements may be written. Where `twice`, a second run must give
  /// the same bits.
  Result<double> Check(internal::Plan& plan, double allowed, bool twice);

  /// Time returns the milliseconds of one run: the mean of several where one is short.
  Result<double> Time(internal::Plan& plan);

 private:
  struct Buffer {
    AlignedMemory memory;
    std::size_t count = 0;  // floats, the border on either side among them

    [[nodiscard]] std::span<float> all() const;
    /// The tensor's first element.
    [[nodiscard]] float* data() const;
  };

  static Buffer Allocate(const ConstTensorRef& tensor);
  /// Makes the workspace as large.
  void Reserve(std::size_t workspace);
  Status Run(internal::Plan& plan);
  Result<double> Compare(double allowed);
  void Fill();

  const Context& context_;
  std::size_t output_;
  Reference reference_;
  std::vector<Buffer> buffers_;
  std::vector<internal::UniformRange> ranges_;
  std::vector<void*> addresses_;
  /// What the reference computed.
  Buffer expected_;
  bool has_expected_ = false;
  AlignedMemory workspace_;
  const internal::Plan* last_timed_ = nullptr;
};

}  // namespace gradsmith::cpu

#endif  // GRADSMITH_CPU_TRIAL_H_
