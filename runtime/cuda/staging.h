#ifndef GRADSMITH_CUDA_STAGING_H_
#define GRADSMITH_CUDA_STAGING_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/inline_vector.h"
#include "core/plan.h"
#include "cuda/op_task.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// StagedOperand is what Staging does with an operand.
struct StagedOperand {
  /// How much of the workspace it takes, a multiple of 256; 0 where it is taken as it is.
  std::size_t bytes = 0;
  /// It is copied into the workspace before the plan runs, or out of it afterwards.
  bool is_read = false;
  bool is_written = false;
};

/// GivenCopy is the copy of an operand that others have a place for, or have made.
struct GivenCopy {
  /// -1 for none.
  int operand = -1;
  void* address = nullptr;
  bool is_made = false;
};

/// Staging runs a plan on operands of which some are copies in the workspace, before that of the
/// plan.
class Staging {
 public:
  using Operands = internal::InlineVector<StagedOperand, kMaxOperands>;

  Staging(Operands operands, std::unique_ptr<internal::Plan> inner)
      : operands_(std::move(operands)), inner_(std::move(inner)) {}

  [[nodiscard]] std::size_t workspace() const {
    std::size_t bytes = inner_->workspace();
    for (const StagedOperand& operand : operands_) {
      bytes += operand.bytes;
    }
    return bytes;
  }

  /// Run calls copy_in(operand, from, to) and copy_out(operand, from, to).
  template <typename CopyIn, typename CopyOut>
  Status Run(
      const internal::Launch& launch,
      const GivenCopy& given,
      const CopyIn& copy_in,
      const CopyOut& copy_out) {
    std::array<void*, kMaxOperands> staged{};
    std::byte* rest = Place(launch, given, &staged);
    for (int i = 0; i < operands_.size(); ++i) {
      const bool is_made = i == given.operand && given.is_made;
      if (operands_[i].bytes == 0 || !operands_[i].is_read || is_made) {
        continue;
      }
      if (Status status = copy_in(i, launch.operands[i], staged.at(i)); !status.ok()) {
        return status;
      }
    }
    const std::span<void* const> inner(staged.data(), launch.operands.size());
    if (Status status = inner_->Run({launch.stream, inner, rest, launch.scalars}); !status.ok()) {
      return status;
    }
    for (int i = 0; i < operands_.size(); ++i) {
      if (operands_[i].bytes == 0 || !operands_[i].is_written) {
        continue;
      }
      if (Status status = copy_out(i, staged.at(i), launch.operands[i]); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  /// Gives every operand its address and returns what is left of the workspace.
  std::byte* Place(
      const internal::Launch& launch,
      const GivenCopy& given,
      std::array<void*, kMaxOperands>* staged) const {
    auto* place = static_cast<std::byte*>(launch.workspace);
    for (int i = 0; i < operands_.size(); ++i) {
      if (operands_[i].bytes == 0) {
        staged->at(i) = launch.operands[i];
      } else if (i == given.operand) {
        staged->at(i) = given.address;
      } else {
        staged->at(i) = place;
        place += operands_[i].bytes;
      }
    }
    return place;
  }

  Operands operands_;
  std::unique_ptr<internal::Plan> inner_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_STAGING_H_
