#include "core/candidate_trial.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith::internal {

namespace {

std::string TooMuchWorkspace(const SearchPolicy& policy) {
  return "needs more workspace than the limit of " + std::to_string(policy.workspace_limit) +
         " bytes";
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

std::optional<double> Checked(
    SearchSpace& space,
    const Candidate& candidate,
    Plan& plan,
    std::vector<Rejection>* rejections) {
  const Result<double> error = space.Check(plan);
  if (!error.ok()) {
    rejections->push_back(Rejected(candidate, error.status()));
    return std::nullopt;
  }
  return *error;
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
