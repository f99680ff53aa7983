#include "core/brief_look.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/candidate_name.h"
#include "core/candidate_trial.h"
#include "core/race.h"
#include "core/stopwatch.h"

namespace gradsmith::internal {

namespace {

/// The quicker of two runs, as the first of a plan loads its code; of three where that is not
/// `hopeless`. An error where a run fails.
Result<double> QuickestOfFew(SearchSpace& space, Plan& plan, double hopeless) {
  constexpr double kLoading = 20;  // milliseconds: what loading may make of a quick run
  Result<double> first = space.Time(plan);
  if (!first.ok() || *first > hopeless + kLoading) {
    return first;
  }
  Result<double> second = space.Time(plan);
  if (!second.ok() || *second > hopeless) {
    return second;
  }
  const Result<double> third = space.Time(plan);
  return third.ok() ? Result<double>(std::min(*second, *third)) : third;
}

/// Candidates in the order in which a look tries them: the best of each promising batch as it is
/// listed, then the second of each, and so on; then the same of the other batches.
class Looks {
 public:
  Looks(SearchSpace& space, const SearchPolicy& policy, Selected* selected)
      : space_(space), policy_(policy), selected_(selected) {}

  /// Nothing where there are no more.
  std::optional<Candidate> Next() {
    for (;;) {
      while (batch_ < space_.batches()) {
        List(batch_++);
        if (!ranks_.empty() && !ranks_.front().empty()) {
          return TakeFrom(0);
        }
      }
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        if (!ranks_[rank].empty()) {
          return TakeFrom(rank);
        }
      }
      if (!std::exchange(lists_promising_, false)) {
        return std::nullopt;
      }
      batch_ = 0;
    }
  }

 private:
  void List(int batch) {
    if (space_.IsSlowToList(batch) || space_.IsPromising(batch) != lists_promising_) {
      return;
    }
    std::vector<Candidate> listed = Allowed(space_, batch, policy_, &selected_->rejections);
    std::erase_if(listed, [&](const Candidate& candidate) { return !IsWorthALook(candidate); });
    Keep(std::move(listed));
  }

  /// Not what is slow, or turns milliseconds into a second; nor what is less exact; nor what was
  /// tried before the first choice.
  [[nodiscard]] bool IsWorthALook(const Candidate& candidate) const {
    const CandidateNotes& notes = candidate.notes;
    const auto is_tried = [&](const std::string& id) { return id == candidate.id; };
    return !is_tried(selected_->decision.id) && !notes.transforms && !notes.slow &&
           !notes.last_resort && !notes.runtime_compiled &&
           std::ranges::none_of(selected_->rejections, is_tried, &Rejection::id);
  }

  /// Engines rank by their places in the batch, their further knobs and fallbacks later.
  void Keep(std::vector<Candidate> listed) {
    std::map<std::string, std::size_t> engines;
    for (Candidate& candidate : listed) {
      const std::size_t knobs = engines[candidate.engine]++;
      const std::size_t others = engines.size() - 1;
      const std::size_t rank = others + (2 * knobs) + (candidate.notes.fallback ? 2 : 0);
      ranks_.resize(std::max(ranks_.size(), rank + 1));
      ranks_[rank].push_back(std::move(candidate));
    }
  }

  Candidate TakeFrom(std::size_t rank) {
    Candidate candidate = std::move(ranks_[rank].front());
    ranks_[rank].erase(ranks_[rank].begin());
    return candidate;
  }

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Selected* selected_;
  int batch_ = 0;
  bool lists_promising_ = true;
  std::vector<std::vector<Candidate>> ranks_;
};

/// What was timed and may be taken.
struct Timed {
  Candidate candidate;
  std::unique_ptr<Plan> plan;
  double milliseconds = 0;
};

/// A look at others beside the first choice, which took so many milliseconds.
class BriefLook {
 public:
  BriefLook(SearchSpace& space, const SearchPolicy& policy, Selected* selected)
      : space_(space), policy_(policy), reporter_(space, policy), selected_(selected) {}

  void Run(std::optional<Candidate> candidate, Looks* looks) {
    // Where a run takes milliseconds, more depends on the choice.
    constexpr double kRuns = 4;
    const double seconds =
        policy_.first_choice_seconds + (kRuns * selected_->decision.milliseconds / 1e3);
    while (candidate) {
      TimeOne(*candidate);
      candidate = reporter_.seconds() < seconds ? looks->Next() : std::nullopt;
    }
    NoteForms();
    TakeQuickest();
  }

 private:
  void TimeOne(const Candidate& candidate) {
    std::vector<Rejection>& rejections = selected_->rejections;
    const std::size_t rejected = rejections.size();
    std::unique_ptr<Plan> plan = Build(space_, candidate, policy_, &rejections);
    double milliseconds = 0;
    if (plan != nullptr) {
      const Result<double> timed = QuickestOfFew(space_, *plan, kHopeless * best_milliseconds());
      milliseconds = timed.ok() ? *timed : 0;
      if (!timed.ok()) {
        rejections.push_back(Rejected(candidate, timed.status()));
      }
    }
    ++tried_;
    reporter_.Report(
        candidate, milliseconds, rejections.size() > rejected ? rejections.back().reason : "",
        tried_, tried_, *selected_);
    if (milliseconds > 0) {
      timed_.push_back({candidate, std::move(plan), milliseconds});
    }
  }

  [[nodiscard]] double best_milliseconds() const {
    double best = selected_->decision.milliseconds;
    for (const Timed& timed : timed_) {
      best = std::min(best, timed.milliseconds);
    }
    return best;
  }

  /// The quickest of each form, the first choice among them, and not those far behind.
  void NoteForms() {
    constexpr double kFarBehind = 2;
    const Decision& first = selected_->decision;
    std::map<std::string, std::pair<double, std::string>> of_forms;
    of_forms[std::string(CandidateName::Parse(first.id).form)] = {first.milliseconds, first.id};
    for (const Timed& timed : timed_) {
      const std::pair<double, std::string> found = {timed.milliseconds, timed.candidate.id};
      const auto [place, is_new] = of_forms.try_emplace(timed.candidate.form, found);
      place->second = std::min(place->second, found);
    }
    for (const auto& [form, quickest] : of_forms) {
      if (quickest.first < kFarBehind * best_milliseconds()) {
        of_other_forms_.push_back(quickest.second);
      }
    }
  }

  /// The quickest whose output is right.
  void TakeQuickest() {
    std::ranges::stable_sort(timed_, {}, &Timed::milliseconds);
    for (Timed& timed : timed_) {
      if (timed.milliseconds >= kFaster * selected_->decision.milliseconds) {
        break;
      }
      if (const std::optional<double> error =
              Checked(space_, timed.candidate, *timed.plan, &selected_->rejections)) {
        selected_->decision = {
            .id = timed.candidate.id,
            .workspace = timed.plan->workspace(),
            .mode = policy_.mode,
            .milliseconds = timed.milliseconds,
            .error = *error};
        selected_->plan = std::move(timed.plan);
        break;
      }
    }
    std::erase(of_other_forms_, selected_->decision.id);
    selected_->decision.of_other_forms = std::move(of_other_forms_);
  }

  /// By less it is chance, and what heuristics put first is the better guess.
  static constexpr double kFaster = 0.97;
  static constexpr double kHopeless = 1.2;

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Reporter reporter_;
  Selected* selected_;
  int tried_ = 0;
  std::vector<Timed> timed_;
  std::vector<std::string> of_other_forms_;
};

/// Leaves time to look at others in a race.
void RaceOthers(SearchSpace& space, const SearchPolicy& policy, Selected* selected) {
  constexpr double kWorthCompiling = 50;  // milliseconds
  constexpr double kRuns = 20;
  constexpr double kMostSeconds = 1;
  const double milliseconds = selected->decision.milliseconds;
  std::vector<Candidate> candidates = AllAllowed(space, policy, false, &selected->rejections);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.id == selected->decision.id || candidate.notes.transforms ||
           (candidate.notes.runtime_compiled && milliseconds < kWorthCompiling);
  });
  SearchPolicy quick = policy;
  quick.budget_seconds = std::min(kRuns * milliseconds / 1e3, kMostSeconds);
  Race(space, quick, selected).Run(candidates);
  selected->decision.mode = policy.mode;
}

}  // namespace

void LookAtOthers(SearchSpace& space, const SearchPolicy& policy, Selected* selected) {
  Looks looks(space, policy, selected);
  std::optional<Candidate> other = looks.Next();
  if (!other) {
    return;
  }
  constexpr double kSlow = 5;  // milliseconds
  constexpr double kNothingIs = std::numeric_limits<double>::infinity();
  Result<double> milliseconds = space.Time(*selected->plan);
  const bool is_slow = space.IsLarge() && milliseconds.ok() && *milliseconds >= kSlow;
  if (milliseconds.ok() && !is_slow) {
    milliseconds = QuickestOfFew(space, *selected->plan, kNothingIs);
  }
  if (!milliseconds.ok()) {
    return;
  }
  selected->decision.milliseconds = *milliseconds;
  if (is_slow) {
    RaceOthers(space, policy, selected);
  } else {
    BriefLook(space, policy, selected).Run(std::move(other), &looks);
  }
}

}  // namespace gradsmith::internal
