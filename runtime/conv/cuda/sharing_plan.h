#ifndef GRADSMITH_CONV_CUDA_SHARING_PLAN_H_
#define GRADSMITH_CONV_CUDA_SHARING_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "core/plan.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::conv {

/// OperandCopy is how a plan lays out the copy that it makes of an operand.
struct OperandCopy {
  Dims dims;
  Strides strides;
  /// How much workspace the copy takes: a multiple of 256.
  std::size_t bytes = 0;

  friend bool operator==(const OperandCopy&, const OperandCopy&) = default;
};

/// Shared is what a run of a plan has to do with the other plans of its call.
struct Shared {
  /// A plan that copies this operand has the copy at `copy` and not in its workspace; -1 for none.
  int operand = -1;
  void* copy = nullptr;
  /// The copy is there already: Copy has made it, or the plan before, which makes the same one.
  bool is_copied = false;
  /// Where the plan also leaves sums of an operand's channels: see PartialSumRows.
  void* partial_sums = nullptr;
  /// Where these are to be added up, by a plan that AddsUpSums.
  const TensorRef* sums = nullptr;
};

/// SharingPlan is a plan that can leave something for the other plans of its call.
class SharingPlan : public internal::Plan {
 public:
  /// CopyOf returns the copy that the plan makes of an operand before all else; null for none.
  [[nodiscard]] virtual const OperandCopy* CopyOf(int /*operand*/) const { return nullptr; }

  /// PartialSumRows returns how many rows of partial sums of an operand's channels, in float, the
  /// plan can leave while it copies it, or, where it makes no copy, while it computes with it; 0
  /// where it cannot.
  [[nodiscard]] virtual std::int64_t PartialSumRows(int /*operand*/) const { return 0; }

  /// AddsUpSums returns whether the plan adds up the partial sums that it leaves, beside sums of
  /// its own.
  [[nodiscard]] virtual bool AddsUpSums() const { return false; }

  /// Copy enqueues no more than the copy of the shared operand, which CopyOf tells of.
  virtual Status Copy(const internal::Launch& /*launch*/, const Shared& /*shared*/) {
    return Internal("the plan copies nothing");
  }

  virtual Status RunShared(const internal::Launch& launch, const Shared& shared) = 0;
  Status Run(const internal::Launch& launch) final { return RunShared(launch, {}); }
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_SHARING_PLAN_H_
