#ifndef GRADSMITH_BATCH_NORM_CUDA_OWN_PLAN_H_
#define GRADSMITH_BATCH_NORM_CUDA_OWN_PLAN_H_

#include <array>
#include <cstdint>

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/policy.h"
#include "gradsmith/tensor.h"

/// How the kernels of own.h go through tensors (N, C, D...). What is decided here depends on types,
/// dims and strides, and on which tensors a kernel goes through; addresses have a say in how
/// elements are loaded and none in the order of sums.
namespace gradsmith::batch_norm::own {

/// How a kernel's threads lie. The numbers are part of the kernels' places in the tables of own.cc.
enum class Path : unsigned char {
  kRows,     ///< along the samples of a channel
  kColumns,  ///< along columns
  kVectors,  ///< along columns, a vector of them for each thread
};
inline constexpr int kPaths = 3;

/// The tensors that a kernel goes through: dY, X and the output, null where it does not use them.
using Tensors = std::array<const ConstTensorRef*, 3>;

/// The most blocks along x: less than a grid takes.
inline constexpr std::int64_t kMaxBlocksX = 1 << 30;

/// Plan is how to go through some tensors together.
struct Plan {
  Path path = Path::kRows;
  Walk walk{};
  Operands operands{};
  SampleGrid grid{};
  std::int64_t blocks_x = 1;
  /// Whether one launch does it all: blocks have their channels to themselves.
  bool whole = false;
};

/// MakePlan goes the way that suits the first tensor of X and dY that there is. None is empty.
Plan MakePlan(const Policy& policy, const Tensors& tensors);

/// DimsPlan has the tensors' dims and strides, made as few as serve all of them, and no way to go.
Plan DimsPlan(const Tensors& tensors);

/// IsAligned returns whether an operand's first element is at a multiple of a vector's bytes.
bool IsAligned(const Operand& operand);

/// SumAlike returns whether sums are made in the same order.
bool SumAlike(const Plan& a, const Plan& b);

/// IsShort returns whether samples are so few, of so few elements in all, that a thread for each
/// channel is quickest. Which outputs there are has no say in it: sums are to be the same.
bool IsShort(const Policy& policy, const ConstTensorRef& tensor);

/// ShortPlan is for kernels of a thread for each channel.
Plan ShortPlan(const Tensors& tensors);

/// EmptyWalk has channels without samples: nothing to go through, but results to write.
Walk EmptyWalk(const Dims& dims);

std::int64_t SamplesPerChannel(const Dims& dims);

}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_OWN_PLAN_H_
