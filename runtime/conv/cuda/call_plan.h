#ifndef GRADSMITH_CONV_CUDA_CALL_PLAN_H_
#define GRADSMITH_CONV_CUDA_CALL_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "conv/cuda/call.h"
#include "conv/cuda/sharing_plan.h"
#include "conv/task.h"
#include "core/plan.h"
#include "cuda/branching_plan.h"
#include "cuda/call_graph.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/context.h"

/// How a call's outputs are computed together.
namespace gradsmith::conv {

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
  std::shared_ptr<internal::Plan> plan;
  /// The plan computes all results: its operands are those of the call.
  bool is_whole = false;
};

/// BiasSums is what a bias gradient sums, without addresses.
struct BiasSums {
  ConstTensorRef from;
  TensorRef to;
  cuda::SumPlan plan;
};

/// CallParts is what a call's outputs are computed by, and how.
struct CallParts {
  /// The plans that compute them, at most two.
  std::vector<Part> parts;
  std::optional<BiasSums> sums = {};
  /// The operand that several outputs are computed from, and the bias gradient sums: where parts
  /// need the same copy of it, it is made once.
  Operand shared = kY;
  Order order = Order::kInTurn;
  /// Bytes of workspace, to which each part and the bias gradient keep alone.
  std::size_t limit = kNoLimit;
  /// The plans that were chosen for each primitive alone.
  std::vector<std::shared_ptr<internal::Plan>> alone = {};
};

/// CallPlan computes what a call asks for: results of primitives, a bias gradient, or both. Where a
/// part leaves partial sums of what is summed, as it copies it or computes with it, that is read
/// once less; unless the limit has no room for them beside the part. In turn the plan keeps to the
/// limit as its parts do.
class CallPlan final : public cuda::BranchingPlan {
 public:
  explicit CallPlan(CallParts call);

  /// BeginWith has a plan run before all else, on the operands of the call, in no workspace.
  void BeginWith(std::unique_ptr<internal::Plan> first) { first_ = std::move(first); }

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  /// The workspace beyond that of its largest output.
  [[nodiscard]] std::size_t extra_workspace() const { return workspace_ - largest_; }
  [[nodiscard]] Order order() const { return call_.order; }
  [[nodiscard]] const std::vector<std::shared_ptr<internal::Plan>>& alone() const {
    return call_.alone;
  }
  /// Whether a primitive is computed by the plan that was chosen for it alone.
  [[nodiscard]] bool HasChoiceAlone(std::size_t part) const {
    return call_.parts.size() == call_.alone.size() && call_.parts[part].plan == call_.alone[part];
  }

  Status Enqueue(cuda::Branches& branches, const internal::Launch& launch) override;

 private:
  /// Whether both parts make the same copy of the shared operand.
  [[nodiscard]] bool SharesCopy() const;
  /// The part that leaves partial sums; -1 for none.
  [[nodiscard]] int SummingPart() const;
  void Place();
  void PlaceParts(std::size_t begin);
  /// The call's stream, or another for work that others need not wait for.
  Result<CUstream> StreamOf(cuda::Branches& branches, bool may_fork) const;
  /// `call` is the launch of the whole call.
  Status EnqueueSums(CUstream stream, const internal::Launch& call) const;
  Status EnqueueCopy(CUstream stream, const internal::Launch& call) const;
  Status EnqueuePart(int part, bool is_copied, CUstream stream, const internal::Launch& call) const;
  Status EnqueueBranches(cuda::Branches& branches, const internal::Launch& call) const;
  [[nodiscard]] internal::Launch LaunchOf(
      int part,
      CUstream stream,
      std::span<void* const> operands,
      const internal::Launch& call) const;
  [[nodiscard]] Shared SharedOf(int part, const internal::Launch& call) const;
  [[nodiscard]] const OperandCopy* CopyOfShared(std::size_t part) const;

  CallParts call_;
  std::unique_ptr<internal::Plan> first_;
  /// The parts' plans that can share; null for others.
  std::array<SharingPlan*, 2> sharing_{};
  /// Where each part has its copy of the shared operand, and where the rest of its workspace
  /// begins.
  struct PartPlace {
    std::size_t copy = 0;
    std::size_t rest = 0;
  };
  std::array<PartPlace, 2> places_{};
  bool shares_copy_ = false;
  int summing_part_ = -1;
  std::int64_t partial_rows_ = 0;
  std::size_t workspace_ = 0;
  std::size_t largest_ = 0;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CALL_PLAN_H_
