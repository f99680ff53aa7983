#include "core/selection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/brief_look.h"
#include "core/candidate_name.h"
#include "core/candidate_trial.h"
#include "core/race.h"

namespace gradsmith::internal {

namespace {

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

constexpr int kSlowComesLast = 3;

/// Which candidates a quick choice leaves for later: those that are less exact, those that turn
/// milliseconds into a second once, and last those that are slow each time.
int Postponement(const Candidate& candidate) {
  if (candidate.notes.slow || candidate.notes.last_resort) {
    return kSlowComesLast;
  }
  if (candidate.notes.runtime_compiled) {
    return 2;
  }
  return candidate.notes.transforms ? 1 : 0;
}

/// A candidate's engine, in whatever form operands meet it.
std::string EngineOf(const Candidate& candidate) {
  const std::string form = InForm(FormOf(candidate.id), "");
  return candidate.engine.substr(candidate.engine.starts_with(form) ? form.size() : 0);
}

/// The first candidate that could be built and whose output is right. An engine whose output was
/// wrong several times most likely is in other forms and with other knobs too: these come after
/// the other engines.
class FirstChoice {
 public:
  FirstChoice(SearchSpace& space, const SearchPolicy& policy, Batches* batches)
      : space_(space), policy_(policy), batches_(batches), reporter_(space, policy) {}

  Result<Selected> Take() {
    if (TakeOne()) {
      LeaveDoubtful();
      return std::move(selected_);
    }
    return NoneIsLeft(space_, selected_.rejections);
  }

  [[nodiscard]] int tried() const { return tried_; }

 private:
  static constexpr int kMostRefusals = 3;

  bool TakeOne() {
    for (int batch = 0; batch < batches_->count(); ++batch) {
      const std::vector<Candidate>& allowed = batches_->At(batch, &selected_.rejections);
      listed_ += static_cast<int>(allowed.size());
      for (const Candidate& candidate : allowed) {
        if (Postponement(candidate) > 0) {
          postponed_.push_back(candidate);
        } else if (refusals_[EngineOf(candidate)] >= kMostRefusals) {
          doubtful_.push_back(candidate);
        } else if (Try(candidate)) {
          return true;
        }
      }
    }
    const auto taken =
        std::ranges::find_if(doubtful_, [this](const Candidate& one) { return Try(one); });
    doubtful_.erase(doubtful_.begin(), taken);
    return !doubtful_.empty() || TakePostponed();
  }

  bool TakePostponed() {
    if (space_.LeavesSlow()) {
      std::erase_if(postponed_, [this](const Candidate& candidate) {
        const bool is_left = Postponement(candidate) == kSlowComesLast;
        if (is_left) {
          selected_.rejections.push_back({candidate.id, "is slow: not while others may do"});
        }
        return is_left;
      });
    }
    std::ranges::stable_sort(postponed_, {}, Postponement);
    return std::ranges::any_of(postponed_, [this](const Candidate& one) { return Try(one); });
  }

  bool Try(const Candidate& candidate) {
    std::unique_ptr<Plan> plan = Build(space_, candidate, policy_, &selected_.rejections);
    const bool is_built = plan != nullptr;
    const bool is_taken = is_built && TakeIfRight(
                                          space_, candidate, std::move(plan), policy_.mode,
                                          /*milliseconds=*/0, &selected_);
    if (is_built && !is_taken) {
      ++refusals_[EngineOf(candidate)];
    }
    reporter_.Report(
        candidate, 0, is_taken ? "" : selected_.rejections.back().reason, ++tried_, listed_,
        selected_);
    return is_taken;
  }

  /// What is doubtful is not timed beside the choice either.
  void LeaveDoubtful() {
    for (const Candidate& candidate : doubtful_) {
      if (candidate.id != selected_.decision.id) {
        selected_.rejections.push_back({candidate.id, "its engine was refused in other forms"});
      }
    }
  }

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Batches* batches_;
  Reporter reporter_;
  Selected selected_;
  std::vector<Candidate> postponed_;
  std::vector<Candidate> doubtful_;
  /// How often an engine's output was wrong.
  std::map<std::string, int> refusals_;
  int listed_ = 0;
  int tried_ = 0;
};

Result<Selected> TakeQuickly(SearchSpace& space, const SearchPolicy& policy, Batches* batches) {
  FirstChoice first(space, policy, batches);
  Result<Selected> selected = first.Take();
  // The default's choice is the same on every run: it goes by no clock.
  const bool may_look = policy.mode == SearchMode::kHeuristic && policy.first_choice_seconds > 0;
  if (selected.ok() && may_look) {
    LookAtOthers(space, policy, first.tried(), batches, &*selected);
  }
  return selected;
}

/// A search that was cut short may not have come to what a quick choice takes, and does no worse.
void TryQuickChoice(SearchSpace& space, const SearchPolicy& policy, Batches* batches, Race* race) {
  SearchPolicy quick = policy;
  quick.mode = SearchMode::kHeuristic;
  quick.on_progress = {};
  const Result<Selected> choice = TakeQuickly(space, quick, batches);
  for (int batch = 0; choice.ok() && batch < batches->count(); ++batch) {
    std::vector<Rejection> told;
    for (const Candidate& candidate : batches->At(batch, &told)) {
      if (candidate.id == choice->decision.id) {
        race->TryBeyondBudget(candidate);
        return;
      }
    }
  }
}

Result<Selected> TakeFastest(SearchSpace& space, const SearchPolicy& policy, Batches* batches) {
  Selected best;
  Race race(space, policy, &best);
  for (const bool slow_to_list : {false, true}) {
    if (!race.is_over()) {
      race.Run(AllAllowed(space, slow_to_list, batches, &best.rejections));
    }
  }
  if (race.is_over() && policy.first_choice_seconds > 0) {
    TryQuickChoice(space, policy, batches, &race);
  }
  if (best.plan == nullptr) {
    return NoneIsLeft(space, best.rejections);
  }
  best.decision.of_other_forms = race.OfOtherForms();
  return best;
}

}  // namespace

Result<Selected> Select(SearchSpace& space, const SearchPolicy& policy) {
  const auto select = [&space, &policy] {
    Batches batches(space, policy);
    return policy.mode == SearchMode::kBenchmark ? TakeFastest(space, policy, &batches)
                                                 : TakeQuickly(space, policy, &batches);
  };
  Result<Selected> selected = select();
  const auto may_relax = [&space](StatusCode code) {
    const bool lacks_memory = code == StatusCode::kOutOfMemory;
    return (lacks_memory || code == StatusCode::kUnsupported) && space.Relax(lacks_memory);
  };
  while (!selected.ok() && may_relax(selected.status().code())) {
    selected = select();
  }
  return selected;
}

}  // namespace gradsmith::internal
