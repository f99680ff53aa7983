#include "patterns/cuda/map.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/map_launch.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/map_sums.h"
#include "patterns/cuda/map_vectors.h"
#include "patterns/map.h"

namespace gradsmith::cuda {

namespace {

/// MapAccess is how a kernel reads operands, which is a part of its name: dense ones by vectors,
/// others by vectors along rows, or across odd rows, or element by element.
enum class MapAccess : std::uint8_t { kDense, kVectors, kOddRows, kElements };

/// Whether vectors along the last dim are whole in all tensors that are not broadcast along it.
bool HasVectors(const internal::MapTask& map, const OpTask& task) {
  for (int t = 0; t < task.operands(); ++t) {
    const bool is_one = !task.is_output(t) && map.rank > 0 && map.strides[t][map.rank - 1] == 0;
    const bool is_one_row = map.rank == 1 && IsInVectors(map, task, t);
    if (IsWhole(map, task, t) && !is_one && !is_one_row && !HasRowsOfVectors(map, task, t)) {
      return false;
    }
  }
  return map.rank > 0;
}

/// The tensors whose vectors are whole wherever they begin, as bits, where rows are not: all but
/// those that are broadcast along some dim. Zero where others lie otherwise, or rows are shorter
/// than a vector.
unsigned InVectors(const internal::MapTask& map, const OpTask& task) {
  if (map.rank < 2 || map.dims[map.rank - 1] < ElementsOfVector(task.lead().type)) {
    return 0;
  }
  unsigned in_vectors = 0;
  for (int t = 0; t < task.operands(); ++t) {
    if (!IsWhole(map, task, t) || !task.tensors[t].present || IsInVectors(map, task, t)) {
      in_vectors |= 1U << static_cast<unsigned>(t);
    } else if (task.is_output(t) || !IsBroadcast(map, t)) {
      return 0;
    }
  }
  return in_vectors;
}

MapAccess AccessOf(const internal::MapTask& map, const OpTask& task) {
  if (!HasVectors(map, task)) {
    return map.in_vectors == 0 ? MapAccess::kElements : MapAccess::kOddRows;
  }
  bool is_dense = map.rank == 1 && map.word_step == 1;
  for (int t = 0; t < task.inputs(); ++t) {
    is_dense = is_dense && (map.strides[t][0] == 1 || !task.tensors[t].present);
  }
  return is_dense ? MapAccess::kDense : MapAccess::kVectors;
}

/// The name of an operator's kernels of an access, without the type.
std::string NameOf(MapAccess access, const OpTask& task) {
  constexpr std::array<std::string_view, 4> kNames = {"dense", "vectors", "odd_rows", "elements"};
  return "gradsmith_map_" + std::string(kNames[static_cast<std::size_t>(access)]) + "_" +
         std::string(task.op->name);
}

/// The kernel of the type's own if there is one, else that which serves half and bf16 both, and is
/// told the format (cuda/kernels/short_float.cuh).
Result<CUkernel> FindForType(const KernelImage& image, const std::string& name, DataType type) {
  Result<CUkernel> own =
      FindKernel({&image}, (name + "_" + std::string(KernelSuffix(type))).c_str());
  if (own.ok() || SizeOf(type) != 2) {
    return own;
  }
  Result<CUkernel> shared = FindKernel({&image}, (name + "_short").c_str());
  return shared.ok() ? shared : own;
}

class MapPlan final : public internal::Plan {
 public:
  MapPlan(const internal::MapTask& map, MapAccess access, CUkernel kernel, const LaunchShape& shape)
      : map_(map), access_(access), kernel_(kernel), shape_(shape) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    if (access_ == MapAccess::kDense) {
      internal::DenseMapTask map = {
          .count = map_.count,
          .accumulate = map_.accumulate,
          .stores = map_.stores,
          .is_bf16 = map_.is_bf16};
      return LaunchWith(launch, &map);
    }
    internal::MapTask map = map_;
    return LaunchWith(launch, &map);
  }

 private:
  template <typename Task>
  Status LaunchWith(const internal::Launch& launch, Task* map) const {
    std::ranges::copy(launch.operands, map->tensors);
    std::ranges::copy(launch.scalars, map->scalars);
    return Launch(kernel_, shape_, launch.stream, *map);
  }

  internal::MapTask map_;
  MapAccess access_;
  CUkernel kernel_;
  LaunchShape shape_;
};

}  // namespace

Result<std::unique_ptr<internal::Plan>> MakeMapPlan(
    const MapPolicy& policy,
    const KernelImage& image,
    const OpTask& task,
    const Target& target,
    MakeMapSums* make_sums) {
  const std::span<const TensorRef> tensors(
      task.tensors.begin(), static_cast<std::size_t>(task.operands()));
  const internal::MapTraits traits = {
      .inputs = task.inputs(),
      .masks = task.op->masks,
      .bits = task.op->bits,
      .optional = task.op->optional,
      .has_sums = make_sums != nullptr};
  if (Status status = internal::CheckMap(tensors, traits); !status.ok()) {
    return status;
  }
  const DataType type = task.lead().type;
  internal::MapTask map = internal::MapTaskOf(tensors, task.inputs(), {}, task.op->bits);
  map.is_bf16 = type == DataType::kBFloat16;
  const unsigned sums = internal::SummedOutputs(tensors, task.inputs(), map);
  map.in_vectors = InVectors(map, task);
  MapAccess access = AccessOf(map, task);
  if (make_sums != nullptr && (sums != 0 || access != MapAccess::kDense)) {
    return make_sums(policy, image, task, target.device, {map, sums});
  }
  Result<CUkernel> kernel = FindForType(image, NameOf(access, task), type);
  if (!kernel.ok() && access == MapAccess::kOddRows) {
    // Operators have no such kernel whose inputs have the dims of outputs by their shapes.
    access = MapAccess::kElements;
    kernel = FindForType(image, NameOf(access, task), type);
  }
  if (!kernel.ok()) {
    return kernel.status();
  }
  const std::int64_t vectors =
      access == MapAccess::kElements ? map.count : map.count / ElementsOfVector(type);
  const std::int64_t blocks =
      std::max<std::int64_t>(internal::CeilDivide(vectors, std::int64_t{policy.threads}), 1);
  const LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(blocks), .threads = static_cast<unsigned>(policy.threads)};
  return std::unique_ptr<internal::Plan>(std::make_unique<MapPlan>(map, access, *kernel, shape));
}

}  // namespace gradsmith::cuda
