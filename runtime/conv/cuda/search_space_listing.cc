#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/depthwise_bands.h"
#include "conv/cuda/direct.h"
#include "conv/cuda/few_channels.h"
#include "conv/cuda/graph.h"
#include "conv/cuda/legacy.h"
#include "conv/cuda/parts.h"
#include "conv/cuda/planes.h"
#include "conv/cuda/preference.h"
#include "conv/cuda/search_space.h"
#include "conv/cuda/tensor_cores.h"
#include "conv/cuda/warpgroups.h"
#include "conv/cuda/wide_layers.h"
#include "cuda/bad_engines.h"

namespace gradsmith::conv {

namespace {

using internal::Candidate;
using internal::KernelName;
using internal::Rejection;

constexpr std::array<const char*, kSources> kSourceNames = {
    "graph (heuristic A)", "own kernels on tensor cores", "graph (fallback)", "legacy"};

/// The first two are exchanged where ours are likely to be quicker.
constexpr std::array<Source, kSources> kSourceOrder = {
    kHeuristicA, kOwnTensorCores, kFallback, kLegacyApi};

/// Allowed candidates of a detour that are listed, the best by cuDNN's heuristic: there are several
/// detours.
constexpr std::size_t kMostOfDetour = 8;

/// Whether a source's candidates may be the quickest of all in spite of the form's copies: of the
/// legacy API only those for channels first, for types that tensor cores do not take.
bool IsWorthDetour(const Task& task, const OperandForm& form, Source source) {
  const bool channels_first =
      form.inner.problem.y_strides == ContiguousStrides(DimsOf(form.inner.problem, kY));
  const bool is_wide = SizeOf(task.problem.type) > 2;
  return source == kHeuristicA || source == kOwnTensorCores ||
         (is_wide && (source == kFallback || channels_first));
}

/// OwnCandidate is a kernel of our own that is launched in one way.
Candidate OwnCandidate(const std::string& id, std::size_t workspace, bool in_tf32) {
  return {.id = id, .engine = id, .notes = {.tf32 = in_tf32}, .workspace = workspace};
}

/// OfSource writes the source's name before the variants that its candidates are named by.
std::vector<Candidate> OfSource(const char* source, std::vector<Candidate> variants) {
  for (Candidate& variant : variants) {
    variant.id = internal::NameOfVariant(source, variant.id);
    variant.engine = internal::NameOfVariant(source, variant.engine);
  }
  return variants;
}

/// Those of the fallback list and of the legacy API are the quickest of all by exception (the
/// latter in 1 of 400 searches by more than 3 %; docs/lab/searches.md), and some take a search's
/// budget.
std::vector<Candidate> AsFallbacks(std::vector<Candidate> candidates) {
  for (Candidate& candidate : candidates) {
    candidate.notes.fallback = true;
  }
  return candidates;
}

/// A candidate for the task from one for a form of it.
Candidate InForm(const OperandForm& form, Candidate candidate) {
  candidate.id = internal::InForm(form.name, candidate.id);
  candidate.engine = internal::InForm(form.name, candidate.engine);
  candidate.workspace += CopiesBytes(form);
  return candidate;
}

/// Depthwise kernels for a detour's operands. Where the task as it is has such kernels, those by
/// single results are not worth copies.
std::vector<Candidate> DepthwiseOfDetour(const OperandForm& form) {
  std::vector<Candidate> candidates;
  if (!form.is_detour) {
    return candidates;
  }
  const auto add = [&](const char* kernel, std::size_t workspace) {
    candidates.push_back(InForm(form, OwnCandidate(kernel, workspace, /*in_tf32=*/false)));
  };
  const bool takes_any = form.repeats > 1 && !form.is_for_own;
  if (const auto tiles = DepthwiseTilesOf(form.inner); tiles && takes_any) {
    add(kDepthwiseTiles, tiles->workspace);
  }
  if (DepthwiseFitsByRows(form.inner) || (takes_any && DepthwiseFits(form.inner))) {
    add(kDepthwise, DepthwiseWorkspace(form.inner));
  }
  if (const auto lines = DepthwiseLinesOf(form.inner)) {
    add(kDepthwiseLines, lines->workspace);
    if (LinesPay(form.inner)) {
      std::ranges::rotate(candidates, std::prev(candidates.end()));
    }
  }
  return candidates;
}

}  // namespace

int ConvSearchSpace::batches() const {
  return BatchesOfWhole() + (part_ != nullptr ? part_->batches() : 0) + 1;
}

std::vector<Candidate> ConvSearchSpace::List(int batch, std::vector<Rejection>* rejections) {
  if (batch == 0) {
    return ListFirst();
  }
  if (batch == batches() - 1) {
    return ListLast(rejections);
  }
  if (IsOfPart(batch)) {
    return ListInParts(batch - BatchesOfWhole(), rejections);
  }
  --batch;
  const auto forms = static_cast<int>(forms_.size());
  const OperandForm& form = forms_[batch % forms];
  const Source source = SourceAt(batch / forms);
  Result<std::vector<Candidate>> listed = ListOfForm(form, source);
  if (!listed.ok()) {
    rejections->push_back(
        {internal::InForm(form.name, kSourceNames.at(source)), listed.status().message()});
    return {};
  }
  for (Candidate& candidate : *listed) {
    if (const std::optional<KernelName> name = KernelName::Read(candidate.id)) {
      candidate.notes.known_bad = cuda::IsKnownBad(
          std::string(ToString(task_.primitive)), name->Engine(), task_.problem.spatial_rank);
      candidate.notes.slow = IsSlow(task_, *name);
      candidate.notes.last_resort = IsEndless(task_, *name);
    }
    candidate = InForm(form, std::move(candidate));
  }
  return std::move(*listed);
}

/// cuDNN's legacy heuristic takes up to 7 s for groups of half (9.19 on an H200).
bool ConvSearchSpace::IsSlowToList(int batch) const {
  if (IsOfPart(batch)) {
    return part_->IsSlowToList(batch - BatchesOfWhole());
  }
  if (batch == 0 || batch == batches() - 1) {
    return false;
  }
  const int place = (batch - 1) / static_cast<int>(forms_.size());
  return kSourceOrder.at(place) == kLegacyApi && task_.problem.group > 1 &&
         SizeOf(task_.problem.type) == 2;
}

/// The quickest candidate seldom is one of the legacy API or of cuDNN's fallback list, and listing
/// these takes up to 15 ms. What comes last is our own, for any problem or for special ones.
bool ConvSearchSpace::IsPromising(int batch) const {
  if (IsOfPart(batch)) {
    return part_->IsPromising(batch - BatchesOfWhole());
  }
  if (batch == batches() - 1) {
    const OperandForm* const as_it_is = AsItIs();
    return HasGroupOfEachChannel(task_.problem) || DirectPays(task_) ||
           (as_it_is != nullptr &&
            (FirstLayersOf(*as_it_is) || PlanesOf(*as_it_is) || FewChannelsOf(*as_it_is)));
  }
  const int place = (batch - 1) / static_cast<int>(forms_.size());
  return batch == 0 || place < 2;
}

/// The last batch has kernels of our own alone. Where the direct one among them is not likely to be
/// quick, it is a fallback, so that a look tries it late.
bool ConvSearchSpace::IsQuickToTry(int batch) const {
  return batch == batches() - 1 && IsPromising(batch);
}

/// Where it is for want of workspace, those that copy: others need no more for more images.
std::vector<Candidate> ConvSearchSpace::ListInParts(int batch, std::vector<Rejection>* rejections) {
  std::vector<Candidate> candidates = part_->List(batch, rejections);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.id == kDirect || (internal::FormOf(candidate.id).empty() && !MustBeCut());
  });
  for (Candidate& candidate : candidates) {
    candidate.id = internal::InParts(parts_, candidate.id);
    candidate.engine = internal::InParts(parts_, candidate.engine);
    candidate.workspace += PartSumsBytes(task_);
  }
  return candidates;
}

Source ConvSearchSpace::SourceAt(int place) {
  if (place > 1) {
    return kSourceOrder.at(place);
  }
  if (!ours_come_first_) {
    ours_come_first_ = OursComeFirst(task_, IsInTf32(policy(), task_.problem.type), HasWindow()) ||
                       HasWideLayers();
  }
  return kSourceOrder.at(*ours_come_first_ ? 1 - place : place);
}

bool ConvSearchSpace::HasWindow() {
  return std::ranges::any_of(
      forms_, [&](const OperandForm& form) { return WindowOf(form) != nullptr; });
}

bool ConvSearchSpace::HasWideLayers() const {
  return std::ranges::any_of(forms_, [&](const OperandForm& form) {
    const std::optional<WideLayers> wide = WideLayersOf(form);
    return wide && WideLayersPay(task_, *wide);
  });
}

bool ConvSearchSpace::DepthwiseComesFirst() {
  return DepthwiseTilesOf(task_).has_value() ||
         (!CudnnHasDepthwise(task_) && !(WindowsPayForDepthwise(task_) && HasWindow()));
}

const OperandForm* ConvSearchSpace::AsItIs() const {
  const auto found =
      std::ranges::find_if(forms_, [](const OperandForm& form) { return form.name.empty(); });
  return found == forms_.end() ? nullptr : &*found;
}

std::vector<Candidate> ConvSearchSpace::ListFirst() {
  std::vector<Candidate> candidates;
  AddBands(/*where_they_pay=*/true, &candidates);
  if (DepthwiseComesFirst()) {
    std::ranges::move(ListDepthwise(), std::back_inserter(candidates));
  }
  const OperandForm* const as_it_is = AsItIs();
  if (as_it_is == nullptr) {
    return candidates;
  }
  AddFewChannels(*as_it_is, /*where_they_pay=*/true, &candidates);
  const std::optional<WideLayers> wide = WideLayersOf(*as_it_is);
  if (wide && WideLayersPay(task_, *wide)) {
    candidates.push_back(OwnCandidate(kWideLayers, wide->workspace(), /*in_tf32=*/true));
  }
  const std::optional<Warpgroups> warpgroups = WarpgroupsOf(*as_it_is);
  if (warpgroups && WarpgroupsPay(task_, *warpgroups)) {
    candidates.push_back(OwnCandidate(kWarpgroups, warpgroups->workspace(), /*in_tf32=*/true));
  }
  AddFirstLayers(*as_it_is, /*where_they_pay=*/true, &candidates);
  AddPlanes(*as_it_is, /*where_they_pay=*/true, &candidates);
  return candidates;
}

void ConvSearchSpace::AddBands(bool where_they_pay, std::vector<Candidate>* candidates) const {
  if (BandsPay(task_) != where_they_pay) {
    return;
  }
  const bool in_tf32 = task_.problem.type == DataType::kFloat;
  if (const std::optional<DepthwiseBands> bands = BandsOf(task_)) {
    candidates->push_back(OwnCandidate(kDepthwiseBands, bands->workspace, in_tf32));
  }
  for (const OperandForm& form : forms_) {
    if (!form.is_detour) {
      continue;  // operands are taken as they are
    }
    if (const std::optional<DepthwiseBands> bands = BandsOf(form.inner)) {
      candidates->push_back(InForm(form, OwnCandidate(kDepthwiseBands, bands->workspace, in_tf32)));
    }
  }
}

void ConvSearchSpace::AddFewChannels(
    const OperandForm& form,
    bool where_they_pay,
    std::vector<Candidate>* candidates) const {
  const std::optional<FewChannels> few = FewChannelsOf(form);
  if (few && FewChannelsPay(task_, *few) == where_they_pay) {
    candidates->push_back(OwnCandidate(kFewChannels, few->workspace(), /*in_tf32=*/false));
  }
}

void ConvSearchSpace::AddFirstLayers(
    const OperandForm& form,
    bool where_they_pay,
    std::vector<Candidate>* candidates) const {
  const std::optional<FirstLayers> first_layers = FirstLayersOf(form);
  if (first_layers && FirstLayersPay(task_) == where_they_pay) {
    candidates->push_back(OwnCandidate(kFirstLayers, first_layers->workspace(), /*in_tf32=*/false));
  }
}

void ConvSearchSpace::AddPlanes(
    const OperandForm& form,
    bool where_they_pay,
    std::vector<Candidate>* candidates) const {
  const std::optional<Planes> planes = PlanesOf(form);
  if (planes && PlanesPay(task_, *planes) == where_they_pay) {
    const bool in_tf32 = task_.problem.type == DataType::kFloat;
    candidates->push_back(OwnCandidate(kPlanes, planes->workspace(), in_tf32));
  }
}

std::vector<Candidate> ConvSearchSpace::ListDepthwise() const {
  std::vector<Candidate> candidates;
  if (DepthwiseFits(task_)) {
    candidates.push_back(OwnCandidate(kDepthwise, DepthwiseWorkspace(task_), /*in_tf32=*/false));
  }
  const bool detours_first = DenseRowsPay(task_);
  for (const OperandForm& form : forms_) {
    std::vector<Candidate> of_form = DepthwiseOfDetour(form);
    candidates.insert(
        detours_first ? candidates.begin() : candidates.end(), std::move_iterator(of_form.begin()),
        std::move_iterator(of_form.end()));
  }
  if (const std::optional<DepthwiseTiles> tiles = DepthwiseTilesOf(task_)) {
    candidates.insert(
        candidates.begin(), OwnCandidate(kDepthwiseTiles, tiles->workspace, /*in_tf32=*/false));
  }
  if (const std::optional<DepthwiseLines> lines = DepthwiseLinesOf(task_)) {
    candidates.insert(
        LinesPay(task_) ? candidates.begin() : candidates.end(),
        OwnCandidate(kDepthwiseLines, lines->workspace, /*in_tf32=*/false));
  }
  return candidates;
}

std::vector<Candidate> ConvSearchSpace::ListLast(std::vector<Rejection>* rejections) {
  std::vector<Candidate> candidates;
  if (!DepthwiseComesFirst()) {
    candidates = ListDepthwise();
  }
  AddBands(/*where_they_pay=*/false, &candidates);
  if (const OperandForm* form = AsItIs()) {
    AddFewChannels(*form, /*where_they_pay=*/false, &candidates);
    AddFirstLayers(*form, /*where_they_pay=*/false, &candidates);
    AddPlanes(*form, /*where_they_pay=*/false, &candidates);
  }
  if ((demands_.rounds_once || demands_.keeps_promise) && MayTakeMilliseconds() && !lists_slow_) {
    rejections->push_back({kDirect, "is slow: not while others may do"});
  } else {
    candidates.push_back(
        {.id = kDirect,
         .engine = kDirect,
         .notes = {
             .slow = IsDirectSlow(task_),
             .last_resort = MayTakeMilliseconds() && !DirectPays(task_),
             .fallback = !DirectPays(task_)}});
  }
  return candidates;
}

Result<std::vector<Candidate>> ConvSearchSpace::ListOfForm(const OperandForm& form, Source source) {
  if (form.is_detour && !IsWorthDetour(task_, form, source)) {
    return std::vector<Candidate>();
  }
  if (source == kOwnTensorCores) {
    return ListOwn(form);
  }
  if (form.is_for_own) {
    return std::vector<Candidate>();
  }
  const Result<cuda::CudnnHandle*> handle = cuda::ThreadState::OfThisThread(device()).handle();
  if (!handle.ok()) {
    return handle.status();
  }
  if (source == kLegacyApi) {
    Result<std::vector<Candidate>> listed = ListLegacy(**handle, form.inner);
    return listed.ok() ? OfSource(kLegacy, AsFallbacks(std::move(*listed))) : std::move(listed);
  }
  const Result<const cuda::OperationGraph*> graph = GraphOf(form);
  if (!graph.ok()) {
    return graph.status();
  }
  Result<std::vector<Candidate>> listed = cuda::ListEngines(
      cuda::GraphTarget(*handle), **graph,
      source == kHeuristicA ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_FALLBACK, task_.problem.type);
  if (!listed.ok()) {
    return listed;
  }
  if (source == kFallback) {
    listed = AsFallbacks(std::move(*listed));
  }
  if (form.is_detour) {
    std::size_t allowed = 0;
    std::erase_if(*listed, [&](const Candidate& candidate) {
      return !internal::WhyFiltered(candidate, policy()).empty() || ++allowed > kMostOfDetour;
    });
  }
  return OfSource(kGraph, std::move(*listed));
}

std::vector<Candidate> ConvSearchSpace::ListOwn(const OperandForm& form) {
  std::vector<Candidate> candidates;
  if (const WindowWork* work = WindowOf(form)) {
    candidates.push_back(WindowCandidate(form.inner, *work));
  }
  if (const auto few = FewChannelsOf(form); few && !form.name.empty()) {
    candidates.push_back(OwnCandidate(kFewChannels, few->workspace(), /*in_tf32=*/false));
  }
  const std::optional<WideLayers> wide = WideLayersOf(form);
  const bool wide_pays = wide && WideLayersPay(task_, *wide);
  if (wide_pays && !form.name.empty()) {
    candidates.push_back(OwnCandidate(kWideLayers, wide->workspace(), /*in_tf32=*/true));
  }
  std::optional<Warpgroups> warpgroups = WarpgroupsOf(form);
  if (warpgroups && form.name.empty() && WarpgroupsPay(task_, *warpgroups)) {
    warpgroups.reset();  // it is listed before all others
  }
  const bool comes_first = warpgroups && WarpgroupsBeatTensorCores(*warpgroups);
  if (comes_first) {
    candidates.push_back(OwnCandidate(kWarpgroups, warpgroups->workspace(), /*in_tf32=*/true));
  }
  const std::size_t copies = std::min(CopiesBytes(form), policy().workspace_limit);
  std::ranges::move(
      OfSource(
          kTensorCores,
          ListTensorCores(
              device(), form.inner, policy().allow_tf32, policy().workspace_limit - copies)),
      std::back_inserter(candidates));
  if (warpgroups && !comes_first) {
    candidates.push_back(OwnCandidate(kWarpgroups, warpgroups->workspace(), /*in_tf32=*/true));
  }
  if (wide && !wide_pays && WideLayersMayPay(*wide)) {
    candidates.push_back(OwnCandidate(kWideLayers, wide->workspace(), /*in_tf32=*/true));
  }
  return candidates;
}

std::optional<FewChannels> ConvSearchSpace::FewChannelsOf(const OperandForm& form) const {
  const Problem& inner = form.inner.problem;
  const bool has_more_channels =
      inner.x_channels != task_.problem.x_channels || inner.y_channels != task_.problem.y_channels;
  return has_more_channels ? std::nullopt
                           : PlanFewChannels(device().compute_capability(), form.inner);
}

std::optional<Warpgroups> ConvSearchSpace::WarpgroupsOf(const OperandForm& form) const {
  return policy().allow_tf32 ? PlanWarpgroups(device().compute_capability(), form.inner)
                             : std::nullopt;
}

std::optional<WideLayers> ConvSearchSpace::WideLayersOf(const OperandForm& form) const {
  return policy().allow_tf32 ? PlanWideLayers(device().compute_capability(), form.inner)
                             : std::nullopt;
}

std::optional<Planes> ConvSearchSpace::PlanesOf(const OperandForm& form) const {
  return policy().allow_tf32 || task_.problem.type != DataType::kFloat
             ? PlanPlanes(device().compute_capability(), form.inner)
             : std::nullopt;
}

std::optional<DepthwiseBands> ConvSearchSpace::BandsOf(const Task& task) const {
  return policy().allow_tf32 || task.problem.type != DataType::kFloat
             ? PlanDepthwiseBands(device().compute_capability(), task)
             : std::nullopt;
}

std::optional<FirstLayers> ConvSearchSpace::FirstLayersOf(const OperandForm& form) const {
  return PlanFirstLayersFilter(device().compute_capability(), form.inner);
}

}  // namespace gradsmith::conv
