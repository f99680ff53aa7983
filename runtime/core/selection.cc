#include "core/selection.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/stopwatch.h"

namespace gradsmith::internal {

namespace {

/// More samples steady the median but take budget from other candidates.
constexpr std::size_t kSamples = 5;
constexpr std::size_t kVaryingSamples = 16;

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

Rejection Rejected(const Candidate& candidate, const Status& status) {
  return {candidate.id, status.message(), status.code() == StatusCode::kOutOfMemory};
}

/// Builds a candidate; null where it fails, with the reason among the rejections.
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

/// The error that was measured where the plan's output is right; otherwise nothing, and the reason
/// is among the rejections.
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

Status NoneIsLeft(const SearchSpace& space, const std::vector<Rejection>& rejections) {
  std::string message = space.Describe() + ": no candidate is left";
  if (rejections.empty()) {
    message += "; none was offered";
  }
  // Engines differ in their knobs alone: say each reason once, with how many it took.
  std::map<std::string, std::pair<std::string, int>> reasons;
  for (const Rejection& rejection : rejections) {
    auto& [first, count] = reasons[rejection.reason];
    first = count++ == 0 ? rejection.id : first;
  }
  for (const auto& [reason, candidates] : reasons) {
    message += "; " + candidates.first +
               (candidates.second > 1 ? " and " + std::to_string(candidates.second - 1) + " more"
                                      : std::string()) +
               ": " + reason;
  }
  return std::ranges::any_of(rejections, &Rejection::out_of_memory) ? OutOfMemory(message)
                                                                    : Unsupported(message);
}

/// Which candidates a quick choice leaves for later: those that are less exact, those that turn
/// milliseconds into a second once, and last those that are slow each time.
int Postponement(const Candidate& candidate) {
  if (candidate.notes.slow || candidate.notes.last_resort) {
    return 3;
  }
  if (candidate.notes.runtime_compiled) {
    return 2;
  }
  return candidate.notes.transforms ? 1 : 0;
}

/// Tells who asked for it of each candidate that was tried.
class Reporter {
 public:
  Reporter(const SearchSpace& space, const SearchPolicy& policy) : space_(space), policy_(policy) {}

  [[nodiscard]] double seconds() const { return watch_.Seconds(); }

  /// `rejection` is why the candidate is not taken; `candidates` how many there are to be tried.
  /// Its error is known where it is the best one.
  void Report(
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

 private:
  const SearchSpace& space_;
  const SearchPolicy& policy_;
  Stopwatch watch_;
};

Result<Selected> TakeFirst(SearchSpace& space, const SearchPolicy& policy) {
  Selected selected;
  std::vector<Candidate> postponed;
  const Reporter reporter(space, policy);
  int tried = 0;
  int listed = 0;
  const auto take = [&](const Candidate& candidate) {
    std::unique_ptr<Plan> plan = Build(space, candidate, policy, &selected.rejections);
    const std::optional<double> error =
        plan == nullptr ? std::nullopt : Checked(space, candidate, *plan, &selected.rejections);
    if (error) {
      selected.decision = {
          .id = candidate.id, .workspace = plan->workspace(), .mode = policy.mode, .error = *error};
      selected.plan = std::move(plan);
    }
    const bool is_taken = selected.plan != nullptr;
    reporter.Report(
        candidate, 0, is_taken ? "" : selected.rejections.back().reason, ++tried, listed, selected);
    return is_taken;
  };
  for (int batch = 0; batch < space.batches(); ++batch) {
    std::vector<Candidate> allowed = Allowed(space, batch, policy, &selected.rejections);
    listed += static_cast<int>(allowed.size());
    for (Candidate& candidate : allowed) {
      if (Postponement(candidate) > 0) {
        postponed.push_back(std::move(candidate));
      } else if (take(candidate)) {
        return selected;
      }
    }
  }
  std::stable_sort(postponed.begin(), postponed.end(), [](const auto& a, const auto& b) {
    return Postponement(a) < Postponement(b);
  });
  if (std::any_of(postponed.begin(), postponed.end(), take)) {
    return selected;
  }
  return NoneIsLeft(space, selected.rejections);
}

/// First the best of each engine, then the second of each and the best fallbacks, and so on; what
/// is compiled at run time comes after all else but what is slow.
std::vector<Candidate> Stratified(std::vector<Candidate> candidates) {
  std::map<std::string, int> seen;
  std::vector<std::pair<int, Candidate>> ranked;
  for (Candidate& candidate : candidates) {
    const int rank = seen[candidate.engine]++ + (candidate.notes.fallback ? 1 : 0);
    ranked.emplace_back(rank, std::move(candidate));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    const auto order = [](const auto& candidate) {
      const CandidateNotes& notes = candidate.second.notes;
      return std::tuple(notes.last_resort, notes.slow, notes.runtime_compiled, candidate.first);
    };
    return order(a) < order(b);
  });
  std::vector<Candidate> ordered;
  ordered.reserve(ranked.size());
  for (auto& [rank, candidate] : ranked) {
    ordered.push_back(std::move(candidate));
  }
  return ordered;
}

/// The median of so many runs.
Result<double> MedianOf(std::size_t count, SearchSpace& space, Plan& plan) {
  std::vector<double> samples;
  while (samples.size() < count) {
    const Result<double> milliseconds = space.Time(plan);
    if (!milliseconds.ok()) {
      return milliseconds;
    }
    samples.push_back(*milliseconds);
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// The mean of so many runs but for the slowest, which something else may have held up.
Result<double> MeanOf(std::size_t count, SearchSpace& space, Plan& plan) {
  double sum = 0;
  double slowest = 0;
  for (std::size_t run = 0; run < count; ++run) {
    const Result<double> milliseconds = space.Time(plan);
    if (!milliseconds.ok()) {
      return milliseconds;
    }
    sum += *milliseconds;
    slowest = std::max(slowest, *milliseconds);
  }
  return (sum - slowest) / static_cast<double>(count - 1);
}

/// Whether a run took long and much longer than the best.
bool IsHopeless(double milliseconds, double best) {
  constexpr double kMuchLonger = 2;
  constexpr double kLong = 50;  // milliseconds
  return milliseconds > std::max(kMuchLonger * best, kLong);
}

/// The median of some runs, or the mean of more where it varies, or of fewer where more would not
/// change the choice: the second run's where that is hopeless, as the first loads code.
Result<double> UsualTime(SearchSpace& space, const CandidateNotes& notes, Plan& plan, double best) {
  constexpr double kSurelySlower = 1.5;
  constexpr double kSteady = 10;      // milliseconds: so long a run differs little from the next
  constexpr double kNoLoading = 500;  // milliseconds: more than loading takes
  constexpr double kVeryLong = 2000;  // milliseconds: a budget is spent, and little depends on it
  Result<double> first = space.Time(plan);
  if (!first.ok() || *first > kVeryLong || (IsHopeless(*first, best) && *first > kNoLoading)) {
    return first;
  }
  Result<double> second = space.Time(plan);
  if (!second.ok() || IsHopeless(*second, best)) {
    return second;
  }
  Result<double> third = space.Time(plan);
  if (!third.ok()) {
    return third;
  }
  std::array<double, 3> samples = {*first, *second, *third};
  std::ranges::sort(samples);
  // Of three the median is not the first, and what varies may do better.
  const double quick = notes.varies ? samples[0] : samples[1];
  if (quick > std::min(kSurelySlower * best, kSteady)) {
    return samples[1];
  }
  return notes.varies ? MeanOf(kVaryingSamples, space, plan) : MedianOf(kSamples, space, plan);
}

double BestTime(const Selected& best) {
  return best.plan == nullptr ? std::numeric_limits<double>::infinity()
                              : best.decision.milliseconds;
}

/// Tries one candidate, returns its time or 0, and keeps it where it is the fastest so far.
/// Checking takes longer than timing, and most candidates are slower than the best before them:
/// only what would be kept is checked.
double
TryOne(SearchSpace& space, const Candidate& candidate, const SearchPolicy& policy, Selected* best) {
  std::unique_ptr<Plan> plan = Build(space, candidate, policy, &best->rejections);
  if (plan == nullptr) {
    return 0;
  }
  const double best_so_far = BestTime(*best);
  const Result<double> milliseconds = UsualTime(space, candidate.notes, *plan, best_so_far);
  if (!milliseconds.ok()) {
    best->rejections.push_back(Rejected(candidate, milliseconds.status()));
    return 0;
  }
  // By less it is chance, and what heuristics put first is the better guess.
  constexpr double kFaster = 0.99;
  if (*milliseconds >= kFaster * best_so_far) {
    return *milliseconds;
  }
  if (const std::optional<double> error = Checked(space, candidate, *plan, &best->rejections)) {
    best->decision = {
        .id = candidate.id,
        .workspace = plan->workspace(),
        .mode = SearchMode::kBenchmark,
        .milliseconds = *milliseconds,
        .error = *error};
    best->plan = std::move(plan);
  }
  return *milliseconds;
}

/// Of all batches, either of those that are slow to list or of the others.
std::vector<Candidate> AllAllowed(
    SearchSpace& space,
    const SearchPolicy& policy,
    bool slow_to_list,
    std::vector<Rejection>* rejections) {
  std::vector<Candidate> candidates;
  for (int batch = 0; batch < space.batches(); ++batch) {
    if (space.IsSlowToList(batch) != slow_to_list) {
      continue;
    }
    for (Candidate& candidate : Allowed(space, batch, policy, rejections)) {
      candidates.push_back(std::move(candidate));
    }
  }
  return Stratified(std::move(candidates));
}

/// Tries candidates in turn, as long as there is time, and keeps the fastest.
class Race {
  struct Timed {
    std::string id;
    double milliseconds = 0;
  };

 public:
  Race(SearchSpace& space, const SearchPolicy& policy, Selected* best)
      : space_(space), policy_(policy), reporter_(space, policy), best_(best) {}

  [[nodiscard]] bool is_over() const {
    return best_->plan != nullptr && reporter_.seconds() - loading_ > policy_.budget_seconds;
  }

  void Run(const std::vector<Candidate>& candidates) {
    const int all = tried_ + static_cast<int>(candidates.size());
    for (const Candidate& candidate : candidates) {
      ++tried_;
      if (std::string why = WhySkipped(candidate); !why.empty()) {
        best_->rejections.push_back({candidate.id, std::move(why)});
        continue;
      }
      const std::size_t rejected = best_->rejections.size();
      const double milliseconds = TryOne(space_, candidate, policy_, best_);
      const bool is_rejected = best_->rejections.size() > rejected;
      if (milliseconds > 0 && !is_rejected) {
        Note(candidate, milliseconds);
        best_form_ = best_->decision.id == candidate.id ? candidate.form : best_form_;
      }
      if (IsHopeless(milliseconds, BestTime(*best_))) {
        hopeless_.push_back(candidate.engine);
      }
      reporter_.Report(
          candidate, milliseconds, is_rejected ? best_->rejections.back().reason : "", tried_, all,
          *best_);
      // The first of all loads libraries and code, which may take longer than the rest.
      loading_ = tried_ == 1 ? reporter_.seconds() : loading_;
    }
  }

  /// The quickest of each form, the best candidate's and those far behind left out.
  [[nodiscard]] std::vector<std::string> OfOtherForms() const {
    constexpr double kFarBehind = 2;
    std::vector<std::string> ids;
    for (const auto& [form, timed] : of_forms_) {
      if (form != best_form_ && timed.milliseconds < kFarBehind * best_->decision.milliseconds) {
        ids.push_back(timed.id);
      }
    }
    return ids;
  }

 private:
  void Note(const Candidate& candidate, double milliseconds) {
    const auto [place, is_new] =
        of_forms_.try_emplace(candidate.form, Timed{candidate.id, milliseconds});
    if (!is_new && milliseconds < place->second.milliseconds) {
      place->second = {candidate.id, milliseconds};
    }
  }

  [[nodiscard]] std::string WhySkipped(const Candidate& candidate) const {
    if (best_->plan == nullptr) {
      return {};
    }
    if (candidate.notes.last_resort) {
      return "not tried: others do, and it is slow";
    }
    if (is_over()) {
      return "not tried: the search's budget was spent";
    }
    const bool is_hopeless = std::ranges::any_of(
        hopeless_, [&](const std::string& engine) { return candidate.engine.ends_with(engine); });
    return is_hopeless ? "not tried: the engine took much longer than the best" : "";
  }

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Reporter reporter_;
  Selected* best_;
  double loading_ = 0;
  int tried_ = 0;
  /// Engines of which neither other knobs nor detours are tried.
  std::vector<std::string> hopeless_;
  std::map<std::string, Timed> of_forms_;
  std::string best_form_;
};

Result<Selected> TakeFastest(SearchSpace& space, const SearchPolicy& policy) {
  Selected best;
  Race race(space, policy, &best);
  for (const bool slow_to_list : {false, true}) {
    if (!race.is_over()) {
      race.Run(AllAllowed(space, policy, slow_to_list, &best.rejections));
    }
  }
  if (best.plan == nullptr) {
    return NoneIsLeft(space, best.rejections);
  }
  best.decision.of_other_forms = race.OfOtherForms();
  return best;
}

/// A first choice that takes many milliseconds leaves time to look at others: as long as some tens
/// of its runs.
void ReplaceSlow(SearchSpace& space, const SearchPolicy& policy, Selected* selected) {
  constexpr double kSlow = 5;             // milliseconds
  constexpr double kWorthCompiling = 50;  // milliseconds
  constexpr double kRuns = 20;
  constexpr double kMostSeconds = 1;
  const Result<double> milliseconds = space.Time(*selected->plan);
  if (!milliseconds.ok() || *milliseconds < kSlow) {
    return;
  }
  selected->decision.milliseconds = *milliseconds;
  std::vector<Candidate> candidates = AllAllowed(space, policy, false, &selected->rejections);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.id == selected->decision.id || candidate.notes.transforms ||
           (candidate.notes.runtime_compiled && *milliseconds < kWorthCompiling);
  });
  SearchPolicy quick = policy;
  quick.budget_seconds = std::min(kRuns * *milliseconds / 1e3, kMostSeconds);
  Race(space, quick, selected).Run(candidates);
  selected->decision.mode = policy.mode;
}

Result<Selected> TakeQuickly(SearchSpace& space, const SearchPolicy& policy) {
  Result<Selected> selected = TakeFirst(space, policy);
  // The default's choice is the same on every run: it goes by no clock.
  if (selected.ok() && policy.mode == SearchMode::kHeuristic && space.IsLarge()) {
    ReplaceSlow(space, policy, &*selected);
  }
  return selected;
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

Result<Selected> Select(SearchSpace& space, const SearchPolicy& policy) {
  const auto select = policy.mode == SearchMode::kBenchmark ? &TakeFastest : &TakeQuickly;
  Result<Selected> selected = select(space, policy);
  const auto may_relax = [&space](StatusCode code) {
    const bool lacks_memory = code == StatusCode::kOutOfMemory;
    return (lacks_memory || code == StatusCode::kUnsupported) && space.Relax(lacks_memory);
  };
  while (!selected.ok() && may_relax(selected.status().code())) {
    selected = select(space, policy);
  }
  return selected;
}

}  // namespace gradsmith::internal
