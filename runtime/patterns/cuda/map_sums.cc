#include "patterns/cuda/map_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/map_launch.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/map_vectors.h"
#include "patterns/map.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;

/// A launch of a plan, which has pieces of sums in the workspace, or all of them in the output.
struct MapSumPass {
  CUkernel kernel = nullptr;
  MapSumLaunch launch;
  LaunchShape shape;
  bool has_partial = false;
};

std::int64_t PowerOfTwoUpTo(std::int64_t number, std::int64_t most) {
  const auto ceiling = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(number, 1)));
  return std::min(static_cast<std::int64_t>(ceiling), most);
}

/// How threads and blocks share the terms from the launch's first on. `elements` are the vector's.
void Share(const MapPolicy& policy, const DeviceInfo& device, int elements, MapSumPass* pass) {
  const std::int64_t threads = policy.summing_threads;
  MapSumLaunch& launch = pass->launch;
  const internal::MapSumTask& sum = launch.sum;
  const int terms_of_vector = sum.has_places_last ? 1 : elements;
  const std::int64_t terms = sum.terms - launch.first_term;
  const std::int64_t places = CeilDivide(sum.places, std::int64_t{elements / terms_of_vector});
  const std::int64_t steps = CeilDivide(terms, std::int64_t{terms_of_vector});
  const std::int64_t most =
      sum.has_places_last ? threads / PowerOfTwoUpTo(places, policy.place_lanes) : threads;
  launch.sharers = static_cast<int>(PowerOfTwoUpTo(steps, most));
  const std::int64_t blocks = CeilDivide(places, threads / launch.sharers);
  const std::int64_t wanted = policy.summing_blocks * device.multiprocessors() / blocks;
  const std::int64_t worth = steps / (launch.sharers * policy.least_steps);
  const std::int64_t pieces = std::clamp<std::int64_t>(std::min(wanted, worth), 1, kMostBlocksYz);
  launch.piece = std::max<std::int64_t>(CeilDivide(steps, pieces), 1) * terms_of_vector;
  launch.pieces = static_cast<int>(std::max<std::int64_t>(CeilDivide(terms, launch.piece), 1));
  pass->shape = {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(launch.pieces),
      .threads = static_cast<unsigned>(threads)};
}

/// The inputs that have one element for all terms of a place, as bits.
unsigned FixedInputs(const internal::MapSumTask& sum, int inputs) {
  unsigned fixed = 0;
  for (int t = 0; t < inputs; ++t) {
    const auto* strides = sum.map.strides[t];
    const bool is_fixed = std::all_of(
        strides + sum.place_rank, strides + sum.map.rank, [](auto stride) { return stride == 0; });
    fixed |= is_fixed ? 1U << static_cast<unsigned>(t) : 0U;
  }
  return fixed;
}

/// The operator's kernels, and the one in which pieces come together.
struct MapSumKernels {
  CUkernel vectors = nullptr;
  CUkernel elements = nullptr;
  CUkernel finish = nullptr;
};

/// The passes of one sum of a map, or of none.
class PassesOfSum {
 public:
  PassesOfSum(
      const MapPolicy& policy,
      const OpTask& task,
      const DeviceInfo& device,
      const MapSumKernels& kernels,
      const internal::MapTask& map,
      const internal::MapSumTask& sum)
      : policy_(policy),
        task_(task),
        device_(device),
        kernels_(kernels),
        map_(map),
        sum_(sum),
        elements_(ElementsOfVector(task.lead().type)) {}

  /// Adds them to others. They need the workspace that is returned.
  std::size_t AddTo(std::vector<MapSumPass>* passes) {
    const std::size_t first = passes->size();
    if (HasVectors()) {
      Add(kernels_.vectors, elements_, sum_, 0, passes);
    } else if (const std::int64_t rows = RowsOfVectors(); rows != 0) {
      AddByRows(rows, passes);
    } else if (IsOneRow()) {
      internal::MapSumTask whole = sum_;
      whole.terms -= whole.terms % elements_;
      Add(kernels_.vectors, elements_, whole, 0, passes);
      Add(kernels_.elements, 1, sum_, whole.terms, passes);
    } else {
      Add(kernels_.elements, 1, sum_, 0, passes);
    }
    return Finish(first, passes);
  }

 private:
  /// Whether all inputs, and the outputs that are stored, lie in whole vectors along the last dim.
  [[nodiscard]] bool HasVectors() const {
    if (map_.rank == 0 || map_.dims[map_.rank - 1] % elements_ != 0) {
      return false;
    }
    return AreAll([&](int t) {
      const bool is_one = !task_.is_output(t) && map_.strides[t][map_.rank - 1] == 0;
      return is_one || HasRowsOfVectors(map_, task_, t);
    });
  }

  /// Whether all is summed into one place, and lies beside each other in memory.
  [[nodiscard]] bool IsOneRow() const {
    return sum_.output != internal::kNoMapSum && map_.rank == 1 && sum_.terms > elements_ &&
           HasNothingBetween();
  }

  /// How many rows of places beside each other are whole vectors together, as if they were one: of
  /// tensors that have nothing between their rows, or the same in each. Zero where that is not so,
  /// or not worth while.
  [[nodiscard]] std::int64_t RowsOfVectors() const {
    if (map_.rank != 2 || !sum_.has_places_last || sum_.terms == 0) {
      return 0;
    }
    const std::int64_t rows = elements_ / std::gcd(sum_.places, std::int64_t{elements_});
    return HasNothingBetween() && sum_.terms / rows >= policy_.least_steps ? rows : 0;
  }

  /// Whether vectors are whole wherever they begin, but of inputs that are broadcast along the
  /// first dim.
  [[nodiscard]] bool HasNothingBetween() const {
    return AreAll([&](int t) {
      return (!task_.is_output(t) && map_.strides[t][0] == 0) || IsInVectors(map_, task_, t);
    });
  }

  template <typename Predicate>
  [[nodiscard]] bool AreAll(const Predicate& predicate) const {
    for (int t = 0; t < task_.operands(); ++t) {
      if (IsWhole(map_, task_, t) && task_.tensors[t].present && !predicate(t)) {
        return false;
      }
    }
    return true;
  }

  /// Takes so many rows for one, and the last few as they are.
  void AddByRows(std::int64_t rows, std::vector<MapSumPass>* passes) {
    internal::MapSumTask joined = sum_;
    joined.terms /= rows;
    joined.places *= rows;
    joined.map.dims[0] = joined.places;
    joined.map.dims[1] = joined.terms;
    for (auto& strides : joined.map.strides) {
      strides[1] *= rows;
    }
    Add(kernels_.vectors, elements_, joined, 0, passes);
    passes->back().launch.places_of_row = sum_.places;
    if (joined.terms * rows != sum_.terms) {
      Add(kernels_.elements, 1, sum_, joined.terms * rows, passes);
    }
  }

  void Add(
      CUkernel kernel,
      int elements,
      const internal::MapSumTask& sum,
      std::int64_t first_term,
      std::vector<MapSumPass>* passes) const {
    MapSumPass pass;
    pass.kernel = kernel;
    pass.launch.sum = sum;
    pass.launch.summed = sum.output == internal::kNoMapSum ? 0 : 1U << sum.output;
    pass.launch.fixed = FixedInputs(sum, task_.inputs());
    pass.launch.first_term = first_term;
    Share(policy_, device_, elements, &pass);
    pass.launch.queued = elements > 1 ? QueuedInputs(pass.launch) : 0;
    pass.launch.queue_length = std::popcount(pass.launch.queued);
    const int slots = (pass.launch.queue_length * kMapSumStages) + std::popcount(pass.launch.fixed);
    pass.shape.shared_bytes = static_cast<unsigned>(slots * kVectorBytes) * pass.shape.threads;
    passes->push_back(pass);
  }

  /// The inputs of which each term has a vector, as bits: what is absent has none, and masks are
  /// shorter.
  [[nodiscard]] unsigned QueuedInputs(const MapSumLaunch& launch) const {
    unsigned queued = 0;
    for (int t = 0; t < task_.inputs(); ++t) {
      const bool is_mask = (task_.op->masks >> static_cast<unsigned>(t) & 1U) != 0;
      const bool is_vector =
          task_.tensors[t].present && launch.sum.map.strides[t][launch.sum.last] == 1;
      queued |= !is_mask && is_vector ? 1U << static_cast<unsigned>(t) : 0U;
    }
    return queued & ~launch.fixed;
  }

  /// Adds the pass in which pieces come together, where those from `first` on leave any.
  std::size_t Finish(std::size_t first, std::vector<MapSumPass>* passes) const {
    const std::span<MapSumPass> added = std::span(*passes).subspan(first);
    const bool is_whole = added.size() == 1 && added.front().launch.pieces == 1 &&
                          added.front().launch.places_of_row == 0;
    if (sum_.output == internal::kNoMapSum || is_whole) {
      return 0;
    }
    std::int64_t partial = 0;
    for (MapSumPass& pass : added) {
      pass.has_partial = true;
      pass.launch.first_partial = partial;
      partial += pass.launch.pieces * pass.launch.sum.places;
    }
    const std::int64_t lanes = PowerOfTwoUpTo(sum_.places, policy_.place_lanes);
    MapSumPass finish;
    finish.kernel = kernels_.finish;
    finish.launch.sum = sum_;
    finish.launch.sum.has_places_last = true;
    finish.launch.sharers = static_cast<int>(policy_.summing_threads / lanes);
    finish.launch.pieces = static_cast<int>(partial / sum_.places);
    finish.has_partial = true;
    finish.shape = {
        .blocks_x = static_cast<unsigned>(CeilDivide(sum_.places, lanes)),
        .threads = static_cast<unsigned>(policy_.summing_threads)};
    passes->push_back(finish);
    const DataType type = task_.lead().type;
    return static_cast<std::size_t>(partial) *
           (type == DataType::kDouble ? sizeof(double) : sizeof(float));
  }

  const MapPolicy& policy_;
  const OpTask& task_;
  const DeviceInfo& device_;
  const MapSumKernels& kernels_;
  const internal::MapTask& map_;
  internal::MapSumTask sum_;
  int elements_;
};

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
      sums.partial = pass.has_partial ? launch.workspace : nullptr;
      if (Status status = Launch(pass.kernel, pass.shape, launch.stream, sums); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  std::vector<MapSumPass> passes_;
  std::size_t workspace_;
};

Result<MapSumKernels> FindKernels(
    const MapPolicy& policy,
    const KernelImage& image,
    const OpTask& task,
    const DeviceInfo& device) {
  const std::string suffix(KernelSuffix(task.lead().type));
  const std::string behind = std::string(task.op->name) + "_" + suffix;
  MapSumKernels kernels;
  const int most_shared = task.inputs() * kMapSumStages * kVectorBytes * policy.summing_threads;
  const auto find = [&](const KernelImage& in, const std::string& name, CUkernel* to) -> Status {
    const bool is_finish = to == &kernels.finish;
    const Result<CUkernel> kernel =
        is_finish ? FindKernel({&in}, name.c_str())
                  : FindKernelOf(most_shared, device.ordinal(), {&in}, name.c_str());
    *to = kernel.ok() ? *kernel : nullptr;
    return kernel.ok() ? Status() : kernel.status();
  };
  Status status = find(image, "gradsmith_map_sum_vectors_" + behind, &kernels.vectors);
  if (status.ok()) {
    status = find(image, "gradsmith_map_sum_elements_" + behind, &kernels.elements);
  }
  if (status.ok()) {
    status = find(kImage_map_sums, "gradsmith_map_sum_finish_" + suffix, &kernels.finish);
  }
  if (!status.ok()) {
    return status;
  }
  return kernels;
}

}  // namespace

Result<std::unique_ptr<internal::Plan>> MakeMapSumPlan(
    const MapPolicy& policy,
    const KernelImage& image,
    const OpTask& task,
    const DeviceInfo& device,
    const MapWithSums& with_sums) {
  const Result<MapSumKernels> kernels = FindKernels(policy, image, task, device);
  if (!kernels.ok()) {
    return kernels.status();
  }
  const internal::MapTask& map = with_sums.map;
  std::vector<internal::MapSumTask> sums;
  for (unsigned rest = with_sums.sums; rest != 0; rest &= rest - 1) {
    sums.push_back(internal::MapSumTaskOf(map, task.inputs(), std::countr_zero(rest)));
  }
  if (sums.empty()) {
    sums.push_back(internal::MapWithoutSum(map));
  }
  // An output may be written over what the sums before it read.
  sums.back().map.stores = map.stores;
  std::vector<MapSumPass> passes;
  std::size_t workspace = 0;
  for (const internal::MapSumTask& sum : sums) {
    PassesOfSum of_sum(policy, task, device, *kernels, map, sum);
    workspace = std::max(workspace, of_sum.AddTo(&passes));
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<MapSumPlan>(std::move(passes), workspace));
}

}  // namespace gradsmith::cuda
