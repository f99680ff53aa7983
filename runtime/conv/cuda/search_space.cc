#include "conv/cuda/search_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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
#include "conv/cuda/tensor_cores.h"
#include "conv/cuda/warpgroups.h"
#include "cuda/bad_engines.h"
#include "cuda/exactness.h"

namespace gradsmith::conv {

namespace {

using internal::Candidate;
using internal::KernelName;
using internal::Plan;
using internal::Rejection;

constexpr const char* kDepthwise = "own/depthwise";
constexpr const char* kTensorCores = "own/tensor-cores";
constexpr const char* kDirect = "own/direct";

constexpr std::array<const char*, kSources> kSourceNames = {
    "graph (heuristic A)", "own kernels on tensor cores", "graph (fallback)", "legacy"};

/// The first two are exchanged where ours are likely to be quicker.
constexpr std::array<Source, kSources> kSourceOrder = {
    kHeuristicA, kOwnTensorCores, kFallback, kLegacyApi};

/// Runs our own kernel.
class DirectPlan final : public Plan {
 public:
  DirectPlan(const cuda::DeviceInfo& device, const Task& task) : device_(device), task_(task) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    return Direct(
        device_, launch.stream, task_.primitive, task_.problem, launch.operands[kX],
        launch.operands[kW], launch.operands[kY], task_.accumulate);
  }

 private:
  const cuda::DeviceInfo& device_;
  Task task_;
};

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

/// A candidate for the task from one for a form of it.
Candidate InForm(const OperandForm& form, Candidate candidate) {
  candidate.id = internal::InForm(form.name, candidate.id);
  candidate.engine = internal::InForm(form.name, candidate.engine);
  candidate.workspace += CopiesBytes(form);
  return candidate;
}

Status Unfit(const KernelName& name) {
  return InvalidArgument("'" + name.Write() + "' does not fit the problem");
}

/// A filter's gradient sums so many products that what tensor cores cut off counts. Depthwise ones
/// do without them.
bool MayCutOff(const Task& task) {
  const Problem& problem = task.problem;
  const bool is_depthwise = problem.group > 1 && problem.x_channels == problem.group;
  return IsFilter(task) && !is_depthwise;
}

bool IsInTf32(const internal::SearchPolicy& policy, DataType type) {
  return policy.allow_tf32 && type == DataType::kFloat;
}

/// Reduced accuracy is that of what PyTorch and cuDNN's own search take.
cuda::Exactness
ExactnessOf(const internal::SearchPolicy& policy, DataType type, bool keeps_promise) {
  if (IsInTf32(policy, type)) {
    return cuda::Exactness::kTf32;
  }
  if (policy.allow_reduced_accuracy) {
    return cuda::Exactness::kUsual;
  }
  return keeps_promise ? cuda::Exactness::kPromised : cuda::Exactness::kStrict;
}

}  // namespace

Result<double> CheckResult(
    cuda::Trial& trial,
    const cuda::DeviceInfo& device,
    const Task& task,
    const std::array<void*, kOperands>& operands,
    const void* before,
    TrialData data,
    const Demands& demands,
    const internal::SearchPolicy& policy) {
  const SampleSize size = data == TrialData::kUsual ? SampleSize::kLarge : SampleSize::kSmall;
  if (Status status = CheckSample(
          device, trial.stream(), task.primitive, task.problem, operands[kX], operands[kW],
          operands[kY], before, trial.difference(), size);
      !status.ok()) {
    return status;
  }
  const Result<cuda::Difference> difference = trial.Read();
  if (!difference.ok()) {
    return difference.status();
  }
  // By chance, or where terms cancel, a few are further off.
  if (constexpr int kFew = 50; demands.rounds_once && data == TrialData::kUsual &&
                               difference->rounded_twice > difference->compared / kFew) {
    return Unsupported("rounds what it adds twice");
  }
  const DataType type = task.problem.type;
  const double terms = TermsOf(task);
  if (Status status = cuda::CheckDifference(
          *difference, type, terms, ExactnessOf(policy, type, demands.keeps_promise),
          MayCutOff(task) ? terms : 0);
      !status.ok()) {
    return status;
  }
  return cuda::RelativeError(*difference);
}

ConvSearchSpace::ConvSearchSpace(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const Task& task,
    const std::array<void*, kOperands>& operands,
    internal::SearchPolicy policy)
    : ConvTrialSpace(device, stream, std::move(policy)),
      task_(task),
      operands_(operands),
      demands_{
          .rounds_once = task.accumulate && SizeOf(task.problem.type) == 2,
          .keeps_promise = task.problem.type == DataType::kFloat && !this->policy().allow_tf32 &&
                           !this->policy().allow_reduced_accuracy},
      forms_(FormsOf(task)),
      parts_to_count_(PartsToCount(task)),
      parts_(MustBeCut() ? parts_to_count_ : PartsForCopies()),
      part_(parts_ > 1 ? MakeSpaceOfPart(parts_, /*is_first=*/true) : nullptr) {}

std::int64_t ConvSearchSpace::PartsForCopies() const {
  std::size_t images = 0;
  std::size_t filters = 0;
  for (const OperandForm& form : forms_) {
    images = std::max(images, CopyBytes(form, kX) + CopyBytes(form, kY));
    filters = std::max(filters, CopyBytes(form, kW));
  }
  filters += PartSumsBytes(task_);
  // Beside its copies a kernel may need some workspace.
  const std::size_t room = policy().workspace_limit / 4 * 3;
  return room > filters ? PartsWithin(task_, images, room - filters) : 1;
}

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

/// Of the legacy API and cuDNN's fallback list the quickest come by exception, and listing takes up
/// to 15 ms. What comes last is our own, for any problem or for special ones.
bool ConvSearchSpace::IsPromising(int batch) const {
  if (IsOfPart(batch)) {
    return part_->IsPromising(batch - BatchesOfWhole());
  }
  if (batch == batches() - 1) {
    const OperandForm* const as_it_is = AsItIs();
    const bool is_depthwise =
        task_.problem.group > 1 && task_.problem.group == task_.problem.x_channels;
    return is_depthwise || (as_it_is != nullptr && (ImagesOf(*as_it_is) || PlanesOf(*as_it_is)));
  }
  const int place = (batch - 1) / static_cast<int>(forms_.size());
  return batch == 0 || place < 2;
}

std::unique_ptr<ConvSearchSpace> ConvSearchSpace::MakeSpaceOfPart(std::int64_t parts, bool is_first)
    const {
  return std::make_unique<ConvSearchSpace>(
      device(), stream(), PartOf(task_, parts, is_first), operands_, policy());
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
    ours_come_first_ = OursComeFirst(task_, IsInTf32(policy(), task_.problem.type), HasWindow());
  }
  return kSourceOrder.at(*ours_come_first_ ? 1 - place : place);
}

bool ConvSearchSpace::HasWindow() {
  return std::ranges::any_of(
      forms_, [&](const OperandForm& form) { return WindowOf(form) != nullptr; });
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
  const std::optional<FewChannels> few = FewChannelsOf(*as_it_is);
  if (few && FewChannelsPay(task_, *few)) {
    candidates.push_back(OwnCandidate(kFewChannels, few->workspace(), /*in_tf32=*/false));
  }
  const std::optional<Warpgroups> warpgroups = WarpgroupsOf(*as_it_is);
  if (warpgroups && WarpgroupsPay(task_, *warpgroups)) {
    candidates.push_back(OwnCandidate(kWarpgroups, warpgroups->workspace(), /*in_tf32=*/true));
  }
  AddImages(*as_it_is, /*where_they_pay=*/true, &candidates);
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

void ConvSearchSpace::AddImages(
    const OperandForm& form,
    bool where_they_pay,
    std::vector<Candidate>* candidates) const {
  const std::optional<Images> images = ImagesOf(form);
  if (images && ImagesPay(task_) == where_they_pay) {
    candidates->push_back(OwnCandidate(kImages, images->workspace(), /*in_tf32=*/false));
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
    candidates.push_back(
        {.id = kDepthwise, .engine = kDepthwise, .workspace = DepthwiseWorkspace(task_)});
  }
  for (const OperandForm& form : forms_) {
    if (form.is_detour && DepthwiseFitsByRows(form.inner)) {
      candidates.push_back(InForm(
          form, OwnCandidate(kDepthwise, DepthwiseWorkspace(form.inner), /*in_tf32=*/false)));
    } else if (const std::optional<DepthwiseLines> lines = DepthwiseLinesOf(form.inner);
               form.is_detour && lines) {
      candidates.push_back(
          InForm(form, OwnCandidate(kDepthwiseLines, lines->workspace, /*in_tf32=*/false)));
    }
  }
  if (DenseRowsPay(task_)) {
    std::ranges::reverse(candidates);
  }
  if (const std::optional<DepthwiseTiles> tiles = DepthwiseTilesOf(task_)) {
    candidates.insert(
        candidates.begin(),
        {.id = kDepthwiseTiles, .engine = kDepthwiseTiles, .workspace = tiles->workspace});
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
    AddImages(*form, /*where_they_pay=*/false, &candidates);
    AddPlanes(*form, /*where_they_pay=*/false, &candidates);
  }
  if ((demands_.rounds_once || demands_.keeps_promise) && MayTakeMilliseconds() && !lists_slow_) {
    rejections->push_back({kDirect, "is slow: not while others may do"});
  } else {
    candidates.push_back(
        {.id = kDirect, .engine = kDirect, .notes = {.last_resort = MayTakeMilliseconds()}});
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
    return listed.ok() ? OfSource(kLegacy, std::move(*listed)) : std::move(listed);
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
  for (Candidate& candidate : *listed) {
    candidate.notes.fallback = source == kFallback;
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
  if (const std::optional<FewChannels> few = FewChannelsOf(form);
      few && !(form.name.empty() && FewChannelsPay(task_, *few))) {
    candidates.push_back(OwnCandidate(kFewChannels, few->workspace(), /*in_tf32=*/false));
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

std::optional<Images> ConvSearchSpace::ImagesOf(const OperandForm& form) const {
  return PlanImagesFilter(device().compute_capability(), form.inner);
}

const WindowWork* ConvSearchSpace::WindowOf(const OperandForm& form) {
  auto found = windows_.find(form.name);
  if (found == windows_.end()) {
    found = windows_.emplace(form.name, MakeWindowWork(device(), form.inner, policy().allow_tf32))
                .first;
  }
  const std::optional<WindowWork>& work = found->second;
  return work ? &*work : nullptr;
}

Result<const cuda::OperationGraph*> ConvSearchSpace::GraphOf(const OperandForm& form) {
  if (const auto found = graphs_.find(form.name); found != graphs_.end()) {
    return &found->second;
  }
  const Result<cuda::CudnnHandle*> handle = cuda::ThreadState::OfThisThread(device()).handle();
  if (!handle.ok()) {
    return handle.status();
  }
  Result<cuda::OperationGraph> graph = MakeGraph(cuda::GraphTarget(*handle), form.inner);
  if (!graph.ok()) {
    return graph.status();
  }
  return &graphs_.emplace(form.name, std::move(*graph)).first->second;
}

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
  using Built = Result<std::unique_ptr<Plan>>;
  const std::string kernel = name.Kernel();
  if (kernel == kDirect) {
    return std::unique_ptr<Plan>(std::make_unique<DirectPlan>(device(), task_));
  }
  if (kernel == kDepthwiseTiles) {
    const std::optional<DepthwiseTiles> tiles = DepthwiseTilesOf(task_);
    return tiles ? MakeDepthwiseTilesPlan(task_, *tiles) : Built(Unfit(name));
  }
  if (kernel == kDepthwiseBands) {
    const std::optional<DepthwiseBands> bands = BandsOf(task_);
    return bands ? MakeDepthwiseBandsPlan(device().ordinal(), task_, *bands) : Built(Unfit(name));
  }
  if (kernel == kDepthwiseLines) {
    const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(task_);
    return lines ? MakeDepthwiseLinesPlan(task_, *lines) : Built(Unfit(name));
  }
  if (kernel == kDepthwise && DepthwiseFits(task_)) {
    return MakeDepthwisePlan(task_);
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
  if (name == kDepthwiseLines) {
    const std::optional<DepthwiseLines> lines = PlanDepthwiseLines(form.inner);
    return lines ? MakeDepthwiseLinesPlan(form.inner, *lines) : unfit;
  }
  if (name == kFewChannels) {
    const std::optional<FewChannels> few = FewChannelsOf(form);
    return few ? MakeFewChannelsPlan(device().ordinal(), form.inner, *few) : unfit;
  }
  if (name == kWarpgroups) {
    const std::optional<Warpgroups> warpgroups = WarpgroupsOf(form);
    return warpgroups ? MakeWarpgroupsPlan(device().ordinal(), form.inner, *warpgroups) : unfit;
  }
  if (name == kImages) {
    const std::optional<Images> images = ImagesOf(form);
    return images ? MakeImagesFilterPlan(device().ordinal(), form.inner, *images) : unfit;
  }
  if (name == kPlanes) {
    const std::optional<Planes> planes = PlanesOf(form);
    return planes ? MakePlanesPlan(device().ordinal(), form.inner, *planes) : unfit;
  }
  if (name == kDepthwiseBands) {
    const std::optional<DepthwiseBands> bands = BandsOf(form.inner);
    return bands ? MakeDepthwiseBandsPlan(device().ordinal(), form.inner, *bands) : unfit;
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
  } else if (kernel == kDepthwise && DepthwiseFitsByRows(form.inner)) {
    inner = MakeDepthwisePlan(form.inner);
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

std::vector<cuda::TrialOperand> ConvSearchSpace::TrialOperands() const {
  std::vector<cuda::TrialOperand> operands;
  for (const Operand operand : {kX, kW, kY}) {
    const bool is_output = operand == ResultOf(task_.primitive);
    ConstTensorRef tensor(
        task_.problem.type, operands_.at(operand), DimsOf(task_.problem, operand),
        StridesOf(task_.problem, operand));
    tensor.accumulate = is_output && task_.accumulate;
    operands.push_back({tensor, is_output});
  }
  return operands;
}

std::vector<cuda::UniformRange> ConvSearchSpace::ValuesOf(TrialData data) const {
  std::vector<cuda::UniformRange> values(kOperands);
  for (const Operand operand : {kX, kW, kY}) {
    if (operand != ResultOf(task_.primitive)) {
      const bool is_factor = operand == FactorOf(task_.primitive);
      values.at(operand) =
          is_factor ? RangeOfFactor(data, TermsOf(task_)) : RangeOfData(data, task_.problem.type);
    }
  }
  return values;
}

std::vector<TriedTask> ConvSearchSpace::TriedTasks() const {
  return {{&task_, {kX, kW, kY}}};
}

Result<double> ConvSearchSpace::Compare(TrialData data) {
  std::array<void*, kOperands> operands{};
  std::ranges::copy(trial().operands(), operands.begin());
  return CheckResult(
      trial(), device(), task_, operands, trial().Before(ResultOf(task_.primitive)), data, demands_,
      policy());
}

bool ConvSearchSpace::MayTakeMilliseconds() const {
  return IsLongRunning(task_);
}

bool ConvSearchSpace::Relax(bool lacks_memory) {
  const bool was_strict = demands_.rounds_once || demands_.keeps_promise;
  if (lacks_memory) {
    const bool lists_more =
        was_strict && MayTakeMilliseconds() && !std::exchange(lists_slow_, true);
    return std::exchange(demands_.rounds_once, false) || lists_more;
  }
  demands_ = {.rounds_once = false, .keeps_promise = false};
  return was_strict;
}

}  // namespace gradsmith::conv
