#include "patterns/cuda/map_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/map_launch.h"
#include "patterns/map.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;

/// Threads that lie beside each other in memory where places do: they read whole sectors.
constexpr std::int64_t kPlaceLanes = 32;
/// As few steps of a thread are worth a block.
constexpr std::int64_t kLeastSteps = 8;
/// Blocks of kMapThreads that a multiprocessor holds at once.
constexpr std::int64_t kBlocksOfMultiprocessor = 8;

/// A sum's pass, and where there are several pieces, that in which they come together.
struct MapSumPass {
  MapSumLaunch launch;
  CUkernel kernel = nullptr;
  LaunchShape shape;
  CUkernel finish = nullptr;
  LaunchShape finish_shape;
};

std::int64_t PowerOfTwoUpTo(std::int64_t number, std::int64_t most) {
  const auto ceiling = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(number, 1)));
  return std::min(static_cast<std::int64_t>(ceiling), most);
}

/// How threads and blocks share a sum. `elements` are the vector's.
void Share(const DeviceInfo& device, int elements, MapSumPass* pass) {
  MapSumLaunch& launch = pass->launch;
  const internal::MapSumTask& sum = launch.sum;
  const int terms_of_vector = sum.has_places_last ? 1 : elements;
  const std::int64_t places = CeilDivide(sum.places, std::int64_t{elements / terms_of_vector});
  const std::int64_t steps = CeilDivide(sum.terms, std::int64_t{terms_of_vector});
  const std::int64_t most =
      sum.has_places_last ? kMapThreads / PowerOfTwoUpTo(places, kPlaceLanes) : kMapThreads;
  launch.sharers = static_cast<int>(PowerOfTwoUpTo(steps, most));
  const std::int64_t blocks = CeilDivide(places, std::int64_t{kMapThreads / launch.sharers});
  const std::int64_t wanted =
      CeilDivide(kBlocksOfMultiprocessor * device.multiprocessors(), blocks);
  const std::int64_t worth = steps / (launch.sharers * kLeastSteps);
  const std::int64_t pieces = std::clamp<std::int64_t>(std::min(wanted, worth), 1, kMostBlocksYz);
  launch.piece = std::max<std::int64_t>(CeilDivide(steps, pieces), 1) * terms_of_vector;
  launch.pieces = static_cast<int>(std::max<std::int64_t>(CeilDivide(sum.terms, launch.piece), 1));
  pass->shape = {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(launch.pieces),
      .threads = kMapThreads};
  pass->finish_shape = {
      .blocks_x = static_cast<unsigned>(CeilDivide(sum.places, std::int64_t{kMapThreads / 32})),
      .threads = kMapThreads};
}

std::size_t PartialBytes(const MapSumLaunch& launch, DataType type) {
  const std::size_t bytes = type == DataType::kDouble ? sizeof(double) : sizeof(float);
  return launch.pieces == 1 ? 0
                            : static_cast<std::size_t>(launch.pieces * launch.sum.places) * bytes;
}

class MapSumPlan final : public internal::Plan {
 public:
  MapSumPlan(std::vector<MapSumPass> passes, std::size_t workspace)
      : passes_(std::move(passes)), workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    for (const MapSumPass& pass : passes_) {
      MapSumLaunch sums = pass.launch;
      std::ranges::copy(launch.operands, sums.sum.map.tensors);
      std::ranges::copy(launch.scalars, sums.sum.map.scalars);
      sums.partial = launch.workspace;
      if (Status status = Launch(pass.kernel, pass.shape, launch.stream, sums); !status.ok()) {
        return status;
      }
      if (sums.pieces == 1) {
        continue;
      }
      if (Status status = Launch(pass.finish, pass.finish_shape, launch.stream, sums);
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  std::vector<MapSumPass> passes_;
  std::size_t workspace_;
};

}  // namespace

Result<std::unique_ptr<internal::Plan>> MakeMapSumPlan(
    const KernelImage& image,
    const OpTask& task,
    const DeviceInfo& device,
    const MapWithSums& with_sums) {
  const std::string suffix(KernelSuffix(task.lead().type));
  const std::string name = std::string("gradsmith_map_sum_") +
                           (with_sums.has_vectors ? "vectors_" : "elements_") +
                           std::string(task.op->name) + "_" + suffix;
  const Result<CUkernel> kernel = FindKernel({&image}, name.c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const Result<CUkernel> finish =
      FindKernel({&kImage_map_sums}, ("gradsmith_map_sum_finish_" + suffix).c_str());
  if (!finish.ok()) {
    return finish.status();
  }
  std::vector<internal::MapSumTask> sums;
  for (unsigned rest = with_sums.sums; rest != 0; rest &= rest - 1) {
    sums.push_back(internal::MapSumTaskOf(with_sums.map, task.inputs(), std::countr_zero(rest)));
  }
  if (sums.empty()) {
    sums.push_back(internal::MapWithoutSum(with_sums.map));
  }
  std::vector<MapSumPass> passes;
  std::size_t workspace = 0;
  for (const internal::MapSumTask& sum : sums) {
    MapSumPass pass;
    pass.kernel = *kernel;
    pass.finish = *finish;
    pass.launch.sum = sum;
    Share(device, with_sums.has_vectors ? ElementsOfVector(task.lead().type) : 1, &pass);
    workspace = std::max(workspace, PartialBytes(pass.launch, task.lead().type));
    passes.push_back(pass);
  }
  // An output may be written over what the sums before it read.
  passes.back().launch.sum.map.stores = with_sums.map.stores;
  return std::unique_ptr<internal::Plan>(
      std::make_unique<MapSumPlan>(std::move(passes), workspace));
}

}  // namespace gradsmith::cuda
