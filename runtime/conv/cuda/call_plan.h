#ifndef GRADSMITH_CONV_CUDA_CALL_PLAN_H_
#define GRADSMITH_CONV_CUDA_CALL_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "conv/cuda/sharing_plan.h"
#include "conv/task.h"
#include "core/plan.h"
#include "cuda/call_graph.h"
#include "cuda/tensor_ops.h"

/// How a call's outputs are computed together.
namespace gradsmith::conv {

/// The tensors of a call, in this order wherever they are a list: a convolution's three, as inputs
/// and as results, and the sums of a bias gradient.
inline constexpr int kInputs = 0;
inline constexpr int kResults = kOperands;
inline constexpr int kSums = 2 * kOperands;
inline constexpr int kCallTensors = kSums + 1;

using CallAddresses = std::array<void*, kCallTensors>;

/// PlaceOf returns where among the tensors of a call an operand is, for the primitive with this
/// result.
constexpr int PlaceOf(Operand result, int operand) {
  return (operand == result ? kResults : kInputs) + operand;
}

/// OperandsOf returns a primitive's tensors among those of its call.
template <typename T>
std::array<T, kOperands> OperandsOf(
    Primitive primitive,
    const std::array<T, kCallTensors>& of_call) {
  std::array<T, kOperands> operands{};
  for (int i = 0; i < kOperands; ++i) {
    operands.at(i) = of_call.at(PlaceOf(ResultOf(primitive), i));
  }
  return operands;
}

/// Order is how outputs follow each other.
enum class Order : unsigned char {
  /// One after the other, in memory that they share.
  kInTurn,
  /// Where the call is recorded as a CUDA graph, as branches of it, each with its own memory; those
  /// that share a copy part when it is made.
  kSideBySide
};

/// Part is one of a call's primitives, and how it is computed; or all of them, in one pass.
struct Part {
  Primitive primitive = Primitive::kForward;
  internal::Plan* plan = nullptr;
  /// Where the plan belongs to the part.
  std::unique_ptr<internal::Plan> own = nullptr;
  /// The plan computes all results: its operands are CallAddresses.
  bool is_whole = false;
};

/// BiasSums is what a bias gradient sums, without addresses.
struct BiasSums {
  ConstTensorRef from;
  TensorRef to;
  cuda::SumPlan plan;
};

/// CallPlan computes what a call asks for: results of primitives, a bias gradient, or both. Where a
/// part leaves partial sums of what is summed, as it copies it or computes with it, that is read
/// once less.
class CallPlan final : public internal::Plan {
 public:
  /// `shared` is the operand that several outputs are computed from, and a bias gradient sums:
  /// where they need the same copy of it, it is made once. At most two parts; `sums` may be null.
  CallPlan(std::vector<Part> parts, const BiasSums* sums, Operand shared, Order order);

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  /// The workspace beyond that of its largest output.
  [[nodiscard]] std::size_t extra_workspace() const { return workspace_ - largest_; }
  [[nodiscard]] Order order() const { return order_; }

  /// Run enqueues the outputs one after the other. `operands` are CallAddresses.
  Status Run(const internal::Launch& launch) override;
  Status Enqueue(cuda::Branches& branches, const CallAddresses& addresses, void* workspace) const;

 private:
  /// Whether both parts make the same copy of the shared operand.
  [[nodiscard]] bool SharesCopy() const;
  /// The part that leaves partial sums; -1 for none.
  [[nodiscard]] int SummingPart() const;
  void Place();
  /// The call's stream, or another for work that others need not wait for.
  Result<CUstream> StreamOf(cuda::Branches& branches, bool may_fork) const;
  /// A call's addresses and where its workspace begins.
  struct Memory {
    const CallAddresses& addresses;
    std::byte* workspace;
  };
  Status EnqueueSums(CUstream stream, const Memory& memory) const;
  Status EnqueueCopy(CUstream stream, const Memory& memory) const;
  Status EnqueuePart(int part, bool is_copied, CUstream stream, const Memory& memory) const;
  Status EnqueueBranches(cuda::Branches& branches, const Memory& memory) const;
  [[nodiscard]] internal::Launch
  LaunchOf(int part, CUstream stream, std::span<void* const> operands, const Memory& memory) const;
  [[nodiscard]] Shared SharedOf(int part, const Memory& memory) const;
  [[nodiscard]] const OperandCopy* CopyOfShared(std::size_t part) const;

  std::vector<Part> parts_;
  /// The parts' plans that can share; null for others.
  std::array<SharingPlan*, 2> sharing_{};
  /// Where each part has its copy of the shared operand, and where the rest of its workspace
  /// begins.
  struct PartPlace {
    std::size_t copy = 0;
    std::size_t rest = 0;
  };
  std::array<PartPlace, 2> places_{};
  bool has_sums_;
  BiasSums sums_;
  Operand shared_;
  Order order_;
  bool shares_copy_ = false;
  int summing_part_ = -1;
  std::int64_t partial_rows_ = 0;
  std::size_t workspace_ = 0;
  std::size_t largest_ = 0;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CALL_PLAN_H_
