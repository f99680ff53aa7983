#include "core/race.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gradsmith::internal {

namespace {

/// More samples steady the median but take budget from other candidates.
constexpr std::size_t kSamples = 5;
constexpr std::size_t kVaryingSamples = 16;

/// What a search leaves for later whatever its engine has done.
auto Reluctance(const Candidate& candidate) {
  const CandidateNotes& notes = candidate.notes;
  return std::tuple(notes.last_resort, notes.slow, notes.runtime_compiled);
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
    return std::tuple(Reluctance(a.second), a.first) < std::tuple(Reluctance(b.second), b.first);
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
  constexpr double kFarLonger = 4;
  constexpr double kNotShort = 10;  // milliseconds
  return milliseconds > std::max(kMuchLonger * best, kLong) ||
         milliseconds > std::max(kFarLonger * best, kNotShort);
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
  const Result<double> milliseconds =
      policy.mode == SearchMode::kBenchmark
          ? UsualTime(space, candidate.notes, *plan, best_so_far)
          : TimeOfFewRuns(space, candidate.notes, *plan, best_so_far);
  if (!milliseconds.ok()) {
    best->rejections.push_back(Rejected(candidate, milliseconds.status()));
    return 0;
  }
  // By less it is chance, and what heuristics put first is the better guess.
  constexpr double kFaster = 0.99;
  if (*milliseconds >= kFaster * best_so_far) {
    return *milliseconds;
  }
  TakeIfRight(space, candidate, std::move(plan), SearchMode::kBenchmark, *milliseconds, best);
  return *milliseconds;
}

constexpr std::string_view kSpent = "not tried: the search's budget was spent";

}  // namespace

std::vector<Candidate> AllAllowed(
    const SearchSpace& space,
    bool slow_to_list,
    Batches* batches,
    std::vector<Rejection>* rejections) {
  std::vector<Candidate> candidates;
  for (int batch = 0; batch < batches->count(); ++batch) {
    if (space.IsSlowToList(batch) == slow_to_list) {
      std::ranges::copy(batches->At(batch, rejections), std::back_inserter(candidates));
    }
  }
  return Stratified(std::move(candidates));
}

void Race::Run(std::vector<Candidate> candidates) {
  const int all = tried_ + static_cast<int>(candidates.size());
  while (!candidates.empty()) {
    const auto next = candidates.begin() + NextOf(candidates);
    const Candidate candidate = std::move(*next);
    candidates.erase(next);
    ++tried_;
    if (std::string why = WhySkipped(candidate); !why.empty()) {
      best_->rejections.push_back({candidate.id, std::move(why)});
    } else {
      Try(candidate, all);
    }
  }
}

std::ptrdiff_t Race::NextOf(const std::vector<Candidate>& candidates) const {
  const auto alike = std::ranges::find_if_not(candidates, [&](const Candidate& candidate) {
    return Reluctance(candidate) == Reluctance(candidates.front());
  });
  return std::ranges::min_element(
             candidates.begin(), alike, {},
             [&](const Candidate& candidate) { return ExpectedTime(candidate); }) -
         candidates.begin();
}

double Race::ExpectedTime(const Candidate& candidate) const {
  // An engine that nothing is known of, or nothing right, may do as well as what is not far behind.
  constexpr double kUnknown = 1.5;
  // Each further one of an engine is less likely to be its best.
  constexpr double kOfEachTry = 0.1;
  const auto found = engines_.find(candidate.engine);
  if (found == engines_.end()) {
    return candidate.notes.fallback ? kUnknown * BestTime(*best_) : 0;
  }
  const auto& [quickest, tries] = found->second;
  return std::min(quickest, kUnknown * BestTime(*best_)) * (1 + (kOfEachTry * tries));
}

void Race::TryBeyondBudget(const Candidate& candidate) {
  std::erase_if(best_->rejections, [&](const Rejection& rejection) {
    return rejection.id == candidate.id && rejection.reason == kSpent;
  });
  const auto is_it = [&](const std::string& id) { return id == candidate.id; };
  if (!ids_of_tried_.contains(candidate.id) &&
      std::ranges::none_of(best_->rejections, is_it, &Rejection::id)) {
    Try(candidate, tried_);
  }
}

void Race::Try(const Candidate& candidate, int all) {
  ids_of_tried_.insert(candidate.id);
  const std::size_t rejected = best_->rejections.size();
  const double milliseconds = TryOne(space_, candidate, policy_, best_);
  const bool is_rejected = best_->rejections.size() > rejected;
  EngineSoFar& engine = engines_[candidate.engine];
  ++engine.tries;
  if (milliseconds > 0 && !is_rejected) {
    forms_.Note(candidate.id, milliseconds);
    engine.quickest = std::min(engine.quickest, milliseconds);
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

std::string Race::WhySkipped(const Candidate& candidate) const {
  if (best_->plan == nullptr) {
    return {};
  }
  if (candidate.notes.last_resort) {
    return "not tried: others do, and it is slow";
  }
  if (is_over()) {
    return std::string(kSpent);
  }
  const auto found = engines_.find(candidate.engine);
  const bool did_well =
      found != engines_.end() && !IsHopeless(found->second.quickest, best_->decision.milliseconds);
  const bool is_hopeless = std::ranges::any_of(
      hopeless_, [&](const std::string& engine) { return candidate.engine.ends_with(engine); });
  return is_hopeless && !did_well ? "not tried: the engine took much longer than the best" : "";
}

}  // namespace gradsmith::internal
