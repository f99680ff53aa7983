#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/depthwise_bands.h"
#include "conv/cuda/direct.h"
#include "conv/cuda/few_channels.h"
#include "conv/cuda/graph.h"
#include "conv/cuda/legacy.h"
#include "conv/cuda/parts.h"
#include "conv/cuda/planes.h"
#include "conv/cuda/search_space.h"
#include "conv/cuda/tensor_cores.h"
#include "conv/cuda/warpgroups.h"
#include "conv/cuda/wide_layers.h"
#include "cuda/bad_engines.h"

namespace gradsmith::conv {

namespace {

using internal::KernelName;
using internal::Plan;

Status Unfit(const KernelName& name) {
  return InvalidArgument("'" + name.Write() + "' does not fit the problem");
}

}  // namespace

Result<std::unique_ptr<Plan>> ConvSearchSpace::Build(const std::string& id) {
  const std::optional<KernelName> name = KernelName::Read(id);
  return name ? Build(*name) : InvalidArgument("'" + id + "' is no candidate");
}

Result<std::unique_ptr<Plan>> ConvSearchSpace::Build(const KernelName& name) {
  if (name.parts > 1) {
    return BuildInParts(name);
  }
  if (name.form.empty()) {
    if (std::optional<Result<std::unique_ptr<Plan>>> plan = BuildInAnyForm(name)) {
      return std::move(*plan);
    }
  }
  const auto form = std::ranges::find(forms_, name.form, &OperandForm::name);
  return form == forms_.end() ? Unfit(name) : BuildInner(*form, name);
}

std::optional<Result<std::unique_ptr<Plan>>> ConvSearchSpace::BuildInAnyForm(
    const KernelName& name) const {
  const std::string kernel = name.Kernel();
  return kernel == kDirect ? MakeDirectPlan(device(), task_) : BuildDepthwise(task_, kernel);
}

std::optional<Result<std::unique_ptr<Plan>>> ConvSearchSpace::BuildDepthwise(
    const Task& task,
    const std::string& kernel) const {
  using Built = Result<std::unique_ptr<Plan>>;
  const Status unfit = InvalidArgument("'" + kernel + "' does not fit the problem");
  if (kernel == kDepthwiseTiles) {
    const std::optional<DepthwiseTiles> tiles = DepthwiseTilesOf(task);
    return tiles ? MakeDepthwiseTilesPlan(task, *tiles) : Built(unfit);
  }
  if (kernel == kDepthwiseBands) {
    const std::optional<DepthwiseBands> bands = BandsOf(task);
    return bands ? MakeDepthwiseBandsPlan(device().ordinal(), task, *bands) : Built(unfit);
  }
  if (kernel == kDepthwiseLines) {
    const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task);
    return lines ? MakeDepthwiseLinesPlan(task, *lines) : Built(unfit);
  }
  if (kernel == kDepthwise) {
    return DepthwiseFits(task) ? MakeDepthwisePlan(task) : Built(unfit);
  }
  return std::nullopt;
}

Result<std::unique_ptr<Plan>> ConvSearchSpace::BuildInParts(const KernelName& name) {
  const std::int64_t parts = name.parts;
  if (task_.problem.batch % parts != 0) {
    return Unfit(name);
  }
  KernelName of_part = name;
  of_part.parts = 1;
  Result<std::unique_ptr<Plan>> first = MakeSpaceOfPart(parts, /*is_first=*/true)->Build(of_part);
  const bool are_alike =
      PartOf(task_, parts, true).accumulate == PartOf(task_, parts, false).accumulate;
  if (!first.ok() || are_alike) {
    return first.ok() ? MakePartsPlan(device(), task_, parts, std::move(*first), nullptr)
                      : std::move(first);
  }
  Result<std::unique_ptr<Plan>> others = MakeSpaceOfPart(parts, /*is_first=*/false)->Build(of_part);
  if (!others.ok()) {
    return others;
  }
  return MakePartsPlan(device(), task_, parts, std::move(*first), std::move(*others));
}

/// Our own kernels that are launched in one way.
Result<std::unique_ptr<Plan>> ConvSearchSpace::BuildOwn(
    const OperandForm& form,
    const std::string& name) {
  if (name == kWindow) {
    const WindowWork* work = WindowOf(form);
    return work != nullptr ? BuildWindowPlan(device(), form.inner, *work)
                           : InvalidArgument("windows do not fit the problem");
  }
  const Status unfit = InvalidArgument("'" + name + "' does not fit the problem");
  if (name == kFewChannels) {
    const std::optional<FewChannels> few = FewChannelsOf(form);
    return few ? MakeFewChannelsPlan(device().ordinal(), form.inner, *few) : unfit;
  }
  if (name == kWarpgroups) {
    const std::optional<Warpgroups> warpgroups = WarpgroupsOf(form);
    return warpgroups ? MakeWarpgroupsPlan(device().ordinal(), form.inner, *warpgroups) : unfit;
  }
  if (name == kWideLayers) {
    const std::optional<WideLayers> wide = WideLayersOf(form);
    return wide ? MakeWideLayersPlan(device().ordinal(), form.inner, *wide) : unfit;
  }
  if (name == kFirstLayers) {
    const std::optional<FirstLayers> first_layers = FirstLayersOf(form);
    return first_layers ? MakeFirstLayersFilterPlan(device().ordinal(), form.inner, *first_layers)
                        : unfit;
  }
  if (name == kPlanes) {
    const std::optional<Planes> planes = PlanesOf(form);
    return planes ? MakePlanesPlan(device().ordinal(), form.inner, *planes) : unfit;
  }
  return InvalidArgument("'" + name + "' is no candidate");
}

Result<std::unique_ptr<Plan>> ConvSearchSpace::BuildInner(
    const OperandForm& form,
    const KernelName& name) {
  const Result<cuda::CudnnHandle*> handle = cuda::ThreadState::OfThisThread(device()).handle();
  if (!handle.ok()) {
    return handle.status();
  }
  if (Status status = cuda::CheckEngine(
          std::string(ToString(task_.primitive)), name, task_.problem.spatial_rank);
      !status.ok()) {
    return status;
  }
  const std::string kernel = name.Kernel();
  Result<std::unique_ptr<Plan>> inner = std::unique_ptr<Plan>();
  if (name.source == kGraph) {
    inner = BuildGraph(**handle, form, name.variant);
  } else if (name.source == kLegacy) {
    inner = BuildLegacyPlan(**handle, form.inner, name.variant);
  } else if (auto depthwise = BuildDepthwise(form.inner, kernel); depthwise) {
    inner = std::move(*depthwise);
  } else if (const auto tile = internal::VariantOf(kTensorCores, kernel); tile) {
    inner = BuildTensorCoresPlan(device(), form.inner, policy().allow_tf32, *tile);
  } else {
    inner = BuildOwn(form, kernel);
  }
  if (!inner.ok()) {
    return inner;
  }
  return WrapPlan(device(), task_, form, std::move(*inner));
}

Result<std::unique_ptr<Plan>> ConvSearchSpace::BuildGraph(
    cuda::CudnnHandle& handle,
    const OperandForm& form,
    const std::string& variant) {
  const Result<cuda::EngineChoice> engine = cuda::EngineChoice::Parse(variant);
  const Result<const cuda::OperationGraph*> graph = GraphOf(form);
  if (!engine.ok() || !graph.ok()) {
    return engine.ok() ? graph.status() : engine.status();
  }
  return cuda::BuildGraphPlan(cuda::GraphTarget(&handle), **graph, *engine);
}

}  // namespace gradsmith::conv
