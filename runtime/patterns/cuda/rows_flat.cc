#include "patterns/cuda/rows_flat.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "core/arguments.h"
#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/rows.h"

namespace gradsmith::cuda {

namespace {

using internal::DenseRowTask;
using internal::RowsCounts;
using internal::RowsKind;
using internal::RowsTask;

int BytesOfWider(std::span<const TensorRef> tensors, const RowsCounts& counts) {
  const internal::RowsTypes types = internal::TypesOf(tensors, counts);
  return static_cast<int>(std::max(SizeOf(types.first), SizeOf(types.second)));
}

/// Whether vectors of an operand's elements are whole along the last dim, wherever they begin.
bool HasVectors(const RowsTask& row, int operand, int vector) {
  const std::int64_t* const strides = row.length_strides[operand];
  const int last = row.length_rank - 1;
  return strides[last] == 1 &&
         std::all_of(strides, strides + last, [&](auto stride) { return stride % vector == 0; });
}

std::string
KernelName(FlatAccess access, std::string_view of_functor, const internal::RowsTypes& types) {
  constexpr std::array<std::string_view, 3> kForms = {"dense", "vectors", "elements"};
  std::string name = "gradsmith_rows_flat_";
  name += kForms[static_cast<std::size_t>(access)];
  name += "_" + std::string(of_functor) + "_" + std::string(KernelSuffix(types.first));
  return types.first == types.second ? name : name + "_" + std::string(KernelSuffix(types.second));
}

/// Some of a call's outputs, by their places among the operands, and the blocks that write them.
struct FlatOutputs {
  int begin = 0;
  int end = 0;
  unsigned blocks = 1;
};

class FlatRowPlan final : public internal::Plan {
 public:
  FlatRowPlan(
      const RowsTask& row,
      const RowsCounts& counts,
      FlatAccess access,
      CUkernel kernel,
      const LaunchShape& shape)
      : row_(row), counts_(counts), access_(access), kernel_(kernel), shape_(shape) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    const int first = counts_.all_inputs();
    const int once = first + counts_.outputs + counts_.column_sums;
    const int end = once + counts_.row_outputs;
    if (!ReplacesWhatAllRead(launch, once)) {
      return Write(launch, {first, end, shape_.blocks_x});
    }
    Status status = Write(launch, {first, once, shape_.blocks_x});
    return status.ok() ? Write(launch, {once, end}) : status;
  }

 private:
  /// Whether an output of which there is one takes the place of an input of which there is one.
  [[nodiscard]] bool ReplacesWhatAllRead(const internal::Launch& launch, int first_once) const {
    const int begin = counts_.inputs + counts_.column_inputs;
    const auto inputs = launch.operands.subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(counts_.all_inputs() - begin));
    return std::ranges::any_of(
        launch.operands.subspan(static_cast<std::size_t>(first_once)), [&](const void* output) {
          return output != nullptr && std::ranges::find(inputs, output) != inputs.end();
        });
  }

  [[nodiscard]] Status Write(const internal::Launch& launch, const FlatOutputs& outputs) const {
    if (access_ != FlatAccess::kDense) {
      RowsTask row = row_;
      return LaunchWith(launch, outputs, &row);
    }
    DenseRowTask row = {.length = row_.length, .accumulate = row_.accumulate};
    std::ranges::copy(row_.types, row.types);
    return LaunchWith(launch, outputs, &row);
  }

  template <typename Task>
  Status LaunchWith(const internal::Launch& launch, const FlatOutputs& outputs, Task* row) const {
    std::ranges::copy(launch.operands, row->tensors);
    std::fill(row->tensors + counts_.all_inputs(), row->tensors + outputs.begin, nullptr);
    std::fill(row->tensors + outputs.end, std::end(row->tensors), nullptr);
    std::ranges::copy(launch.scalars, row->scalars);
    LaunchShape shape = shape_;
    shape.blocks_x = outputs.blocks;
    return Launch(kernel_, shape, launch.stream, *row);
  }

  RowsTask row_;
  RowsCounts counts_;
  FlatAccess access_;
  CUkernel kernel_;
  LaunchShape shape_;
};

}  // namespace

FlatAccess
FlatAccessOf(const RowsTask& row, std::span<const TensorRef> tensors, const RowsCounts& counts) {
  const int vector = kVectorBytes / BytesOfWider(tensors, counts);
  const int last = row.length_rank - 1;
  bool are_dense = last <= 0;
  bool are_vectors = last >= 0 && row.length_dims[last] % vector == 0;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (!tensors[t].present || internal::KindOf(t, counts) != RowsKind::kElement) {
      continue;
    }
    const bool is_aligned = AlignmentClass(tensors[t].data, tensors[t].type) == kVectorBytes;
    const bool is_spread = last >= 0 && t < counts.inputs && row.length_strides[t][last] == 0;
    are_dense = are_dense && is_aligned && (last < 0 || row.length_strides[t][0] == 1);
    are_vectors = are_vectors && (is_spread || (is_aligned && HasVectors(row, t, vector)));
  }
  if (are_dense) {
    return FlatAccess::kDense;
  }
  return are_vectors ? FlatAccess::kVectors : FlatAccess::kElements;
}

Result<std::unique_ptr<internal::Plan>> MakeFlatRowPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const RowsKernels& kernels,
    std::span<const TensorRef> tensors,
    const RowsTask& row) {
  const RowsCounts& counts = kernels.info.counts;
  if (row.rows != 1) {
    return Internal(
        std::string(kernels.name) + " has one row of all dims; expected 1 row, got " +
        std::to_string(row.rows));
  }
  const FlatAccess access = FlatAccessOf(row, tensors, counts);
  const internal::RowsTypes types = internal::TypesOf(tensors, counts);
  const Result<CUkernel> kernel =
      FindKernel({&image}, KernelName(access, kernels.name, types).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const std::span<const TensorRef> outputs = tensors.subspan(
      static_cast<std::size_t>(counts.all_inputs()), static_cast<std::size_t>(counts.outputs));
  const bool has_elements = std::ranges::any_of(outputs, &TensorRef::present);
  const std::int64_t at_once =
      access == FlatAccess::kElements ? 1 : kVectorBytes / BytesOfWider(tensors, counts);
  const std::int64_t threads = target.policy.threads_of_flat_row;
  const std::int64_t blocks =
      has_elements ? internal::CeilDivide(row.length / at_once, threads) : 1;
  const LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(std::max<std::int64_t>(blocks, 1)),
      .threads = static_cast<unsigned>(threads)};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FlatRowPlan>(row, counts, access, *kernel, shape));
}

}  // namespace gradsmith::cuda
