#include "core/brief_look.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/candidate_trial.h"
#include "core/race.h"
#include "core/stopwatch.h"

namespace gradsmith::internal {

namespace {

/// Whether a candidate is the first choice, or was refused before it.
bool WasTried(const Selected& selected, const Candidate& candidate) {
  return candidate.id == selected.decision.id ||
         std::ranges::find(selected.rejections, candidate.id, &Rejection::id) !=
             selected.rejections.end();
}

/// Whether a candidate may be quicker than the first choice and was not tried before it. Not worth
/// trying is what is less exact, what is known to be slow, or what has to be compiled, which takes
/// up to a second, where that is not to be.
bool IsWorthTrying(const Selected& selected, const Candidate& candidate, bool may_compile) {
  const CandidateNotes& notes = candidate.notes;
  return !notes.transforms && !notes.slow && !notes.last_resort &&
         (may_compile || !notes.runtime_compiled) && !WasTried(selected, candidate);
}

/// Candidates so that the first of each tile of an engine come before the second, and so on: what
/// heuristics list one after the other differs little.
std::vector<Candidate> Varied(const std::vector<Candidate>& listed) {
  std::map<std::pair<std::string, std::int64_t>, int> seen;
  std::vector<std::pair<int, const Candidate*>> ranked;
  ranked.reserve(listed.size());
  for (const Candidate& candidate : listed) {
    ranked.emplace_back(seen[{candidate.engine, candidate.tile}]++, &candidate);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<int, const Candidate*>::first);
  std::vector<Candidate> varied;
  varied.reserve(listed.size());
  for (const auto& [rank, candidate] : ranked) {
    varied.push_back(*candidate);
  }
  return varied;
}

/// How many promising candidates there are to try beside the first.
int CountPromising(const SearchSpace& space, Batches* batches, const Selected& selected) {
  std::ptrdiff_t count = 0;
  std::vector<Rejection> told;
  for (int batch = 0; batch < batches->count(); ++batch) {
    if (space.IsPromising(batch) && !space.IsSlowToList(batch)) {
      count +=
          std::ranges::count_if(batches->At(batch, &told), [&selected](const Candidate& candidate) {
            return IsWorthTrying(selected, candidate, /*may_compile=*/false);
          });
    }
  }
  return static_cast<int>(count);
}

/// Whether any other would have to be compiled.
bool AnyIsCompiled(const SearchSpace& space, Batches* batches, const Selected& selected) {
  std::vector<Rejection> told;
  for (int batch = 0; batch < batches->count(); ++batch) {
    if (!space.IsSlowToList(batch) &&
        std::ranges::any_of(batches->At(batch, &told), [&selected](const Candidate& candidate) {
          return candidate.notes.runtime_compiled &&
                 IsWorthTrying(selected, candidate, /*may_compile=*/true);
        })) {
      return true;
    }
  }
  return false;
}

/// Whether others that are compiled first may make up for that: where a run takes long, or where
/// there is little else, as for dW of 7x7 taps in half, of which cuDNN's compiled engine takes half
/// the time of the others.
bool IsWorthCompiling(const SearchSpace& space, Batches* batches, const Selected& selected) {
  constexpr double kLong = 50;     // milliseconds
  constexpr double kNotShort = 2;  // milliseconds
  constexpr int kLittleElse = 2;
  const double milliseconds = selected.decision.milliseconds;
  return space.MayTakeMilliseconds() &&
         (milliseconds >= kLong ||
          (milliseconds >= kNotShort && CountPromising(space, batches, selected) <= kLittleElse &&
           AnyIsCompiled(space, batches, selected)));
}

/// Candidates in the order in which a look tries them: the best of each promising batch as it is
/// listed, those first that are quick to try, then the second of each, and so on; then the same of
/// the other batches.
class Looks {
 public:
  Looks(const SearchSpace& space, Batches* batches, const Selected& selected)
      : space_(space), batches_(batches), selected_(selected), order_(batches->count()) {
    std::iota(order_.begin(), order_.end(), 0);
    // Clang 14 cannot compile std::ranges::stable_partition of GCC 12's library.
    std::stable_partition(
        order_.begin(), order_.end(), [&](int batch) { return space.IsQuickToTry(batch); });
  }

  /// Nothing where there are no more.
  std::optional<Candidate> Next() {
    for (;;) {
      while (next_ < order_.size()) {
        List(order_[next_++]);
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
      next_ = 0;
    }
  }

  /// How many are listed and not taken.
  [[nodiscard]] int left() const {
    std::size_t left = 0;
    for (const std::vector<Candidate>& rank : ranks_) {
      left += rank.size();
    }
    return static_cast<int>(left);
  }

  /// What is noted of the first choice, for which batches were listed in their order.
  [[nodiscard]] CandidateNotes OfFirst() const {
    std::vector<Rejection> told;
    for (int batch = 0; batch < batches_->count(); ++batch) {
      const std::vector<Candidate>& listed = batches_->At(batch, &told);
      const auto first = std::ranges::find(listed, selected_.decision.id, &Candidate::id);
      if (first != listed.end()) {
        return first->notes;
      }
    }
    return {};
  }

 private:
  /// What the policy does not allow was told of when the first was chosen, or is of no interest.
  void List(int batch) {
    if (space_.IsSlowToList(batch) || space_.IsPromising(batch) != lists_promising_) {
      return;
    }
    std::vector<Rejection> rejections;
    std::vector<Candidate> worth = Varied(batches_->At(batch, &rejections));
    std::erase_if(worth, [this](const Candidate& candidate) {
      return !IsWorthTrying(selected_, candidate, /*may_compile=*/false);
    });
    Keep(std::move(worth));
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

  const SearchSpace& space_;
  Batches* batches_;
  const Selected& selected_;
  /// Batches, and how many of them are listed.
  std::vector<int> order_;
  std::size_t next_ = 0;
  bool lists_promising_ = true;
  std::vector<std::vector<Candidate>> ranks_;
};

/// What was timed; its plan is kept where it may be taken.
struct Timed {
  Candidate candidate;
  std::unique_ptr<Plan> plan;
  double milliseconds = 0;
};

/// A look at others beside the first choice, whose time is known.
class BriefLook {
 public:
  /// So many candidates were tried before.
  BriefLook(SearchSpace& space, const SearchPolicy& policy, int tried, Selected* selected)
      : space_(space),
        policy_(policy),
        reporter_(space, policy),
        first_(selected->decision),
        selected_(selected),
        tried_(tried) {}

  void Run(std::optional<Candidate> candidate, Looks* looks) {
    // Where a run takes milliseconds, more depends on the choice.
    constexpr double kRuns = 4;
    const double seconds = policy_.first_choice_seconds + (kRuns * first_.milliseconds / 1e3);
    while (candidate) {
      TimeOne(std::move(*candidate), looks->left());
      candidate = reporter_.seconds() < seconds ? looks->Next() : std::nullopt;
    }
    TakeQuickest();
    selected_->decision.of_other_forms = OfOtherForms();
  }

 private:
  void TimeOne(Candidate candidate, int left) {
    std::vector<Rejection>& rejections = selected_->rejections;
    const std::size_t rejected = rejections.size();
    std::unique_ptr<Plan> plan = Build(space_, candidate, policy_, &rejections);
    double milliseconds = 0;
    if (plan != nullptr) {
      const Result<double> timed = TimeOfFewRuns(space_, candidate.notes, *plan, best_);
      milliseconds = timed.ok() ? *timed : 0;
      if (!timed.ok()) {
        rejections.push_back(Rejected(candidate, timed.status()));
      }
    }
    ++tried_;
    reporter_.Report(
        candidate, milliseconds, rejections.size() > rejected ? rejections.back().reason : "",
        tried_, tried_ + left, *selected_);
    if (milliseconds > 0) {
      best_ = std::min(best_, milliseconds);
      plan = milliseconds < kFaster * first_.milliseconds ? std::move(plan) : nullptr;
      timed_.push_back({std::move(candidate), std::move(plan), milliseconds});
    }
  }

  /// The quickest whose output is right; what is wrong is forgotten.
  void TakeQuickest() {
    std::ranges::stable_sort(timed_, {}, &Timed::milliseconds);
    while (!timed_.empty() && timed_.front().plan != nullptr) {
      Timed& timed = timed_.front();
      const bool is_taken = TakeIfRight(
          space_, timed.candidate, std::move(timed.plan), policy_.mode, timed.milliseconds,
          selected_);
      reporter_.Report(
          timed.candidate, timed.milliseconds, is_taken ? "" : selected_->rejections.back().reason,
          tried_, tried_, *selected_);
      if (is_taken) {
        return;
      }
      timed_.erase(timed_.begin());
    }
  }

  /// The first choice is one of its form.
  [[nodiscard]] std::vector<std::string> OfOtherForms() const {
    QuickestOfForms forms;
    forms.Note(first_.id, first_.milliseconds);
    for (const Timed& timed : timed_) {
      forms.Note(timed.candidate.id, timed.milliseconds);
    }
    return forms.Others(selected_->decision);
  }

  /// What part of the time of what heuristics put first another may take at most: by less it is
  /// chance, and the first is the better guess.
  static constexpr double kFaster = 0.97;

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Reporter reporter_;
  Decision first_;
  Selected* selected_;
  int tried_;
  double best_ = first_.milliseconds;
  std::vector<Timed> timed_;
};

/// Leaves time to look at others in a race.
void RaceOthers(
    SearchSpace& space,
    const SearchPolicy& policy,
    bool may_compile,
    Batches* batches,
    Selected* selected) {
  constexpr double kRuns = 20;
  constexpr double kMostSeconds = 1;
  const double milliseconds = selected->decision.milliseconds;
  std::vector<Candidate> candidates =
      AllAllowed(space, /*slow_to_list=*/false, batches, &selected->rejections);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return !IsWorthTrying(*selected, candidate, may_compile);
  });
  SearchPolicy quick = policy;
  quick.budget_seconds =
      std::max(policy.first_choice_seconds, std::min(kRuns * milliseconds / 1e3, kMostSeconds));
  Race race(space, quick, selected);
  race.Run(candidates);
  selected->decision.mode = policy.mode;
  selected->decision.of_other_forms = race.OfOtherForms();
}

}  // namespace

void LookAtOthers(
    SearchSpace& space,
    const SearchPolicy& policy,
    int tried,
    Batches* batches,
    Selected* selected) {
  Looks looks(space, batches, *selected);
  std::optional<Candidate> other = looks.Next();
  const bool may_take_milliseconds = space.MayTakeMilliseconds();
  if (!other && !(may_take_milliseconds && AnyIsCompiled(space, batches, *selected))) {
    return;
  }
  constexpr double kSlow = 5;  // milliseconds
  constexpr double kNoOther = std::numeric_limits<double>::infinity();
  Result<double> milliseconds = space.Time(*selected->plan);
  const bool is_slow = may_take_milliseconds && milliseconds.ok() && *milliseconds >= kSlow;
  if (milliseconds.ok() && !is_slow) {
    milliseconds = TimeOfFewRuns(space, looks.OfFirst(), *selected->plan, kNoOther);
  }
  if (!milliseconds.ok()) {
    return;
  }
  selected->decision.milliseconds = *milliseconds;
  const bool may_compile = IsWorthCompiling(space, batches, *selected);
  if (is_slow || may_compile) {
    RaceOthers(space, policy, may_compile, batches, selected);
  } else if (other) {
    BriefLook(space, policy, tried, selected).Run(std::move(other), &looks);
  }
}

}  // namespace gradsmith::internal
