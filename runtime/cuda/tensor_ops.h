#ifndef GRADSMITH_CUDA_TENSOR_OPS_H_
#define GRADSMITH_CUDA_TENSOR_OPS_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/uniform_range.h"
#include "cuda/device.h"
#include "cuda/kernels/difference.h"
#include "cuda/kernels/tensor_ops.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Our own kernels over whole tensors. Tensors lie on the current device, have 1 to 5 dims, any of
/// the four types and any strides; those that are read may have zero strides. Empty tensors are
/// fine. Everything is enqueued on the stream; nothing allocates or waits.
namespace gradsmith::cuda {

/// PartOfDim returns the part of a tensor from index `begin` to `end` of a dim.
TensorRef PartOfDim(const TensorRef& tensor, int dim, std::int64_t begin, std::int64_t end);

/// CopyTensor writes `from` to `to`, which has the same dims; values are converted between types
/// through float, or exactly between float and double.
Status CopyTensor(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to);

/// AddTensor adds `from` to `to`, which has the same dims: half and bf16 in float, rounded once.
Status AddTensor(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to);

/// FillTensor sets every element.
Status FillTensor(const DeviceInfo& device, CUstream stream, double value, const TensorRef& to);

/// How the first of two stages goes through a tensor whose channels are summed.
enum class SumStage : std::uint8_t { kNone, kColumns, kRows, kAny };

/// SumPlan is how a tensor's channels are summed: the first stage, its launch, and the shape of the
/// partial sums. It depends on shape and strides only, and not on the device, as the sums' bits do.
struct SumPlan {
  SumStage stage = SumStage::kNone;
  std::int64_t blocks = 0;
  int threads = kSumThreads;
  ColumnSumsTask columns;
  RowSumsTask rows;
  AnySumsTask any;
  /// Rows of partial sums, one sum for each channel.
  std::int64_t partial_rows = 0;
  std::int64_t tail_rows = 0;
  std::int64_t tail_offset = 0;
  /// Bytes for the partial sums.
  std::size_t workspace = 0;
};

/// PlanSums plans for speed, and where that takes more workspace than the limit, to take none.
SumPlan PlanSums(
    const ConstTensorRef& from,
    std::size_t workspace_limit = std::numeric_limits<std::size_t>::max());

/// SumChannels writes to sums (C) the sums of from (N, C, D...) over all but C: the bias gradient.
/// Half, bf16 and float are summed in float, double in double, in an order that depends on shape
/// and strides only, so that the same call gives the same bits. Where `sums.accumulate`, they are
/// added to what is there. `plan` is PlanSums(from).
Status SumChannels(
    CUstream stream,
    SumPlan plan,
    const ConstTensorRef& from,
    const TensorRef& sums,
    void* workspace);

/// CopySumRows returns how many rows of partial sums of `from`'s channels CopyAndSum leaves; 0
/// where it cannot: it goes from channels first to channels last, in half, bf16 and float.
std::int64_t CopySumRows(const ConstTensorRef& from, const TensorRef& to);

/// CopyAndSum is CopyTensor that also writes float to `partial` (CopySumRows(from, to), C), for
/// SumPartials to add up.
Status CopyAndSum(CUstream stream, const ConstTensorRef& from, const TensorRef& to, void* partial);

/// SumPartials writes to sums (C) the sums of a matrix (rows, C) of partial sums, which are float,
/// and double for sums in double.
Status SumPartials(CUstream stream, std::int64_t rows, const void* partial, const TensorRef& sums);

/// PartialSums is a matrix (rows, C) of partial sums, and where the sums (C) go.
struct PartialSums {
  std::int64_t rows = 0;
  const void* partial = nullptr;
  TensorRef sums;
};

/// SumPartials of two matrices, whose sums have the same type: in one launch, unless the first has
/// few rows of many channels.
Status SumPartials(CUstream stream, const PartialSums& first, const PartialSums& second);

using internal::UniformRange;

/// FillRandom writes `count` elements of a type, dense: values in the range, hashed from index and
/// seed, with all the bits that the type has.
Status FillRandom(
    const DeviceInfo& device,
    CUstream stream,
    DataType type,
    void* data,
    std::int64_t count,
    std::uint64_t seed,
    const UniformRange& range = {});

/// CompareTensors writes the difference of a and b, which have the same dims, to device memory.
Status CompareTensors(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& a,
    const ConstTensorRef& b,
    Difference* difference);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_TENSOR_OPS_H_
