#include "core/selection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/brief_look.h"
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

/// Counts those that it has tried.
Result<Selected>
TakeFirst(SearchSpace& space, const SearchPolicy& policy, Batches* batches, int* tried) {
  Selected selected;
  std::vector<Candidate> postponed;
  const Reporter reporter(space, policy);
  int listed = 0;
  const auto take = [&](const Candidate& candidate) {
    std::unique_ptr<Plan> plan = Build(space, candidate, policy, &selected.rejections);
    const bool is_taken =
        plan != nullptr &&
        TakeIfRight(space, candidate, std::move(plan), policy.mode, /*milliseconds=*/0, &selected);
    reporter.Report(
        candidate, 0, is_taken ? "" : selected.rejections.back().reason, ++*tried, listed,
        selected);
    return is_taken;
  };
  for (int batch = 0; batch < batches->count(); ++batch) {
    const std::vector<Candidate>& allowed = batches->At(batch, &selected.rejections);
    listed += static_cast<int>(allowed.size());
    for (const Candidate& candidate : allowed) {
      if (Postponement(candidate) > 0) {
        postponed.push_back(candidate);
      } else if (take(candidate)) {
        return selected;
      }
    }
  }
  if (space.LeavesSlow()) {
    std::erase_if(postponed, [&selected](const Candidate& candidate) {
      const bool is_left = Postponement(candidate) == kSlowComesLast;
      if (is_left) {
        selected.rejections.push_back({candidate.id, "is slow: not while others may do"});
      }
      return is_left;
    });
  }
  std::stable_sort(postponed.begin(), postponed.end(), [](const auto& a, const auto& b) {
    return Postponement(a) < Postponement(b);
  });
  if (std::any_of(postponed.begin(), postponed.end(), take)) {
    return selected;
  }
  return NoneIsLeft(space, selected.rejections);
}

Result<Selected> TakeQuickly(SearchSpace& space, const SearchPolicy& policy, Batches* batches) {
  int tried = 0;
  Result<Selected> selected = TakeFirst(space, policy, batches, &tried);
  // The default's choice is the same on every run: it goes by no clock.
  const bool may_look = policy.mode == SearchMode::kHeuristic && policy.first_choice_seconds > 0;
  if (selected.ok() && may_look) {
    LookAtOthers(space, policy, tried, batches, &*selected);
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
