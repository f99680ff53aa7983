#include "core/candidate_trial.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/candidate_name.h"

namespace gradsmith::internal {

namespace {

std::string TooMuchWorkspace(const SearchPolicy& policy) {
  return "needs more workspace than the limit of " + std::to_string(policy.workspace_limit) +
         " bytes";
}

std::vector<Candidate> Allowed(
    SearchSpace& space,
    int batch,
    const SearchPolicy& policy,
    std::vector<Rejection>* rejections) {
  std::vector<Candidate> allowed;
  for (Candidate& candidate : space.List(batch, rejections)) {
    if (std::string why = WhyFiltered(candidate, policy); !why.empty()) {
      rejections->push_back({std::move(candidate.id), std::move(why)});
    } else {
      allowed.push_back(std::move(candidate));
    }
  }
  return allowed;
}

}  // namespace

std::string WhyFiltered(const Candidate& candidate, const SearchPolicy& policy) {
  const CandidateNotes& notes = candidate.notes;
  if (notes.known_bad) {
    return "known to be bad in this version";
  }
  if (notes.down_converts) {
    return "narrows its inputs";
  }
  if (notes.reduced_precision) {
    return "sums in less than float";
  }
  if (notes.tf32 && !policy.allow_tf32) {
    return "computes in TF32, and allow_tf32 is off";
  }
  if (!notes.deterministic && (policy.deterministic || policy.mode == SearchMode::kDefault)) {
    return "is not deterministic";
  }
  if (notes.may_overflow && policy.mode != SearchMode::kBenchmark) {
    return "may overflow where values are large";
  }
  if (candidate.workspace > policy.workspace_limit) {
    return TooMuchWorkspace(policy);
  }
  return {};
}

const std::vector<Candidate>& Batches::At(int batch, std::vector<Rejection>* rejections) {
  std::optional<std::vector<Candidate>>& listed = listed_[batch];
  if (!listed) {
    listed = Allowed(space_, batch, policy_, rejections);
  }
  return *listed;
}

Rejection Rejected(const Candidate& candidate, const Status& status) {
  return {candidate.id, status.message(), status.code() == StatusCode::kOutOfMemory};
}

std::unique_ptr<Plan> Build(
    SearchSpace& space,
    const Candidate& candidate,
    const SearchPolicy& policy,
    std::vector<Rejection>* rejections) {
  Result<std::unique_ptr<Plan>> plan = space.Build(candidate.id);
  if (!plan.ok()) {
    rejections->push_back(Rejected(candidate, plan.status()));
    return nullptr;
  }
  if ((*plan)->workspace() > policy.workspace_limit) {
    rejections->push_back({candidate.id, TooMuchWorkspace(policy)});
    return nullptr;
  }
  return std::move(*plan);
}

Result<double>
TimeOfFewRuns(SearchSpace& space, const CandidateNotes& notes, Plan& plan, double best) {
  constexpr double kHopeless = 1.2;
  constexpr double kLoading = 20;  // milliseconds: what loading may make of a quick run
  constexpr double kLong = 1;      // milliseconds: so long a run differs little from the next
  constexpr double kNoOther = std::numeric_limits<double>::infinity();
  const auto is_steady = [&notes](double run) { return run >= kLong && !notes.varies; };
  Result<double> first = space.Time(plan);
  if (!first.ok() || *first > (kHopeless * best) + kLoading ||
      (best < kNoOther && *first < best && is_steady(*first))) {
    return first;
  }
  Result<double> second = space.Time(plan);
  if (!second.ok() || *second > kHopeless * best) {
    return second;
  }
  if (is_steady(*second)) {
    return std::min(*first, *second);
  }
  Result<double> third = space.Time(plan);
  if (!third.ok()) {
    return third;
  }
  return notes.varies ? (*second + *third) / 2 : std::min(*second, *third);
}

bool TakeIfRight(
    SearchSpace& space,
    const Candidate& candidate,
    std::unique_ptr<Plan> plan,
    SearchMode mode,
    double milliseconds,
    Selected* selected) {
  const Result<double> error = space.Check(*plan);
  if (!error.ok()) {
    selected->rejections.push_back(Rejected(candidate, error.status()));
    return false;
  }
  selected->decision = {
      .id = candidate.id,
      .workspace = plan->workspace(),
      .mode = mode,
      .milliseconds = milliseconds,
      .error = *error};
  selected->plan = std::move(plan);
  return true;
}

void QuickestOfForms::Note(const std::string& id, double milliseconds) {
  const auto [place, is_new] = of_forms_.try_emplace(FormOf(id), milliseconds, id);
  if (!is_new && milliseconds < place->second.first) {
    place->second = {milliseconds, id};
  }
}

std::vector<std::string> QuickestOfForms::Others(const Decision& best) const {
  constexpr double kFarBehind = 2;
  const std::string best_form = FormOf(best.id);
  std::vector<std::string> ids;
  for (const auto& [form, quickest] : of_forms_) {
    if (form != best_form && quickest.first < kFarBehind * best.milliseconds) {
      ids.push_back(quickest.second);
    }
  }
  return ids;
}

void Reporter::Report(
    const Candidate& candidate,
    double milliseconds,
    const std::string& rejection,
    int tried,
    int candidates,
    const Selected& best) const {
  if (policy_.on_progress) {
    policy_.on_progress(
        {.problem = space_.Describe(),
         .candidate = candidate.id,
         .milliseconds = milliseconds,
         .error = best.decision.id == candidate.id ? best.decision.error : 0,
         .rejection = rejection,
         .tried = tried,
         .candidates = candidates,
         .best = best.decision.id,
         .best_milliseconds = best.decision.milliseconds,
         .seconds = seconds()});
  }
}

}  // namespace gradsmith::internal
