#include "patterns/cuda/rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/rows_flat.h"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_shape.h"

namespace gradsmith::cuda {

namespace {

std::string KernelName(
    const RowsAccess& access,
    std::string_view of_functor,
    const internal::RowsTypes& types) {
  std::string name = "gradsmith_rows_";
  if (access.is_by_columns) {
    name += access.vector > 1 ? "by_columns_" : "by_columns_elements_";
  } else if (access.is_ragged) {
    name += "ragged_";
  } else {
    name += access.is_across ? "across_" : "along_";
    name += access.vector > 1 ? "vectors_" : "elements_";
  }
  name += std::string(of_functor) + "_" + std::string(KernelSuffix(types.first));
  return types.first == types.second ? name : name + "_" + std::string(KernelSuffix(types.second));
}

/// The kernels of a plan; `columns` is null where no columns are summed.
struct Kernels {
  CUkernel rows = nullptr;
  CUkernel columns = nullptr;
};

class RowsPlan final : public internal::Plan {
 public:
  RowsPlan(
      const internal::RowsTask& task,
      const RowsShape& shape,
      const RowsInfo& info,
      const Kernels& kernels)
      : task_(task), shape_(shape), info_(info), kernels_(kernels) {}

  [[nodiscard]] std::size_t workspace() const override {
    return shape_.partials_bytes + shape_.columns_bytes;
  }

  Status Run(const internal::Launch& launch) override {
    internal::RowsTask task = task_;
    std::ranges::copy(launch.operands, task.tensors);
    std::ranges::copy(launch.scalars, task.scalars);
    RowsLaunch rows = shape_.launch;
    rows.partials = launch.workspace;
    if (rows.parts > 1) {
      for (rows.phase = 0; rows.phase < info_.phases; ++rows.phase) {
        if (Status status = LaunchRows(launch.stream, task, rows); !status.ok()) {
          return status;
        }
      }
    }
    if (kernels_.columns == nullptr) {
      return LaunchRows(launch.stream, task, rows);
    }
    rows.columns = static_cast<std::byte*>(launch.workspace) + shape_.partials_bytes;
    Status status = LaunchRows(launch.stream, task, rows);
    if (!status.ok() || rows.is_only_block) {
      return status;
    }
    return LaunchColumns(launch.stream, task, rows.columns);
  }

 private:
  Status LaunchRows(CUstream stream, const internal::RowsTask& task, const RowsLaunch& rows) const {
    if (shape_.blocks == 0) {
      return {};
    }
    const LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(shape_.blocks),
        .blocks_y = static_cast<unsigned>(rows.parts),
        .threads = shape_.threads,
        .shared_bytes = shape_.shared_bytes};
    return Launch(kernels_.rows, shape, stream, task, rows);
  }

  Status LaunchColumns(CUstream stream, const internal::RowsTask& task, const void* partials)
      const {
    if (task.length == 0) {
      return {};
    }
    const RowsColumns columns = {
        .length = task.length,
        .blocks = static_cast<int>(shape_.blocks),
        .first = info_.counts.all_inputs() + info_.counts.outputs,
        .sums = info_.counts.column_sums,
        .partials = partials};
    const int of_block = shape_.has_many_columns ? ManyColumns::kColumns : FewColumns::kColumns;
    const int threads = shape_.has_many_columns ? ManyColumns::kThreads : FewColumns::kThreads;
    const std::int64_t blocks = std::min<std::int64_t>(
        internal::CeilDivide(task.length, std::int64_t{of_block}), std::int64_t{1} << 30U);
    const LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(blocks),
        .blocks_y = static_cast<unsigned>(columns.sums),
        .threads = static_cast<unsigned>(threads)};
    return Launch(kernels_.columns, shape, stream, task, columns);
  }

  internal::RowsTask task_;
  RowsShape shape_;
  RowsInfo info_;
  Kernels kernels_;
};

}  // namespace

Result<std::unique_ptr<internal::Plan>> MakeRowsPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const RowsKernels& kernels,
    std::span<const TensorRef> tensors,
    const internal::RowsAxes& axes) {
  const RowsInfo& info = kernels.info;
  if (Status status = internal::CheckRows(tensors, info.counts, axes); !status.ok()) {
    return status;
  }
  const internal::RowsTypes types = internal::TypesOf(tensors, info.counts);
  const internal::RowsTask rows = internal::RowsTaskOf(tensors, info.counts, axes, {});
  if (info.is_flat) {
    return MakeFlatRowPlan(target, image, kernels, tensors, rows);
  }
  const RowsAccess access = AccessOf(target, rows, tensors, info);
  const int bytes = static_cast<int>(std::max(SizeOf(types.first), SizeOf(types.second)));
  const RowsShape shape = ShapeOf(target, rows, access, info, bytes);
  const Result<CUkernel> kernel = FindKernelOf(
      MostShared(target), target.device.ordinal(), {&image},
      KernelName(access, kernels.name, types).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  Kernels found = {.rows = *kernel};
  if (shape.columns_bytes > 0) {
    std::string name = "gradsmith_rows_columns_";
    name += shape.has_many_columns ? "many_" : "";
    name += bytes == sizeof(double) ? "f64" : "f32";
    const Result<CUkernel> columns = FindKernel({&kImage_rows_columns}, name.c_str());
    if (!columns.ok()) {
      return columns.status();
    }
    found.columns = *columns;
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<RowsPlan>(rows, shape, info, found));
}

Result<std::unique_ptr<internal::Plan>> MakeRowsPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const OpTask& task,
    const RowsInfo& info) {
  const std::span<const TensorRef> tensors(
      task.tensors.begin(), static_cast<std::size_t>(task.operands()));
  const internal::RowsAxes axes = {.dims = static_cast<std::uint32_t>(task.choices[0])};
  return MakeRowsPlan(target, image, {.name = task.op->name, .info = info}, tensors, axes);
}

}  // namespace gradsmith::cuda
