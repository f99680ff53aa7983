#ifndef GRADSMITH_CORE_RACE_H_
#define GRADSMITH_CORE_RACE_H_

#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/candidate_trial.h"
#include "core/selection.h"

/// The search that times one candidate after the other.
namespace gradsmith::internal {

/// AllAllowed lists the candidates of all batches, either of those that are slow to list or of the
/// others: first the best of each engine, then the second of each and the best fallbacks, and so
/// on.
std::vector<Candidate> AllAllowed(
    const SearchSpace& space,
    bool slow_to_list,
    Batches* batches,
    std::vector<Rejection>* rejections);

/// Race tries candidates in turn, as long as there is time, and keeps the fastest.
class Race {
 public:
  /// Where there is a best one already, its time is known.
  Race(SearchSpace& space, const SearchPolicy& policy, Selected* best)
      : space_(space), policy_(policy), reporter_(space, policy), best_(best) {
    if (best->plan != nullptr) {
      forms_.Note(best->decision.id, best->decision.milliseconds);
    }
  }

  [[nodiscard]] bool is_over() const {
    return best_->plan != nullptr && reporter_.seconds() - loading_ > policy_.budget_seconds;
  }

  /// Takes candidates as AllAllowed lists them. After the first of each engine comes the next of
  /// that engine that did best, unless many of it have been tried.
  void Run(std::vector<Candidate> candidates);

  /// Tries one that was not tried, or not even listed, since the budget was spent; nothing where it
  /// was, or was left out for another reason.
  void TryBeyondBudget(const Candidate& candidate);

  /// The quickest of each form, the best candidate's and those far behind left out.
  [[nodiscard]] std::vector<std::string> OfOtherForms() const {
    return forms_.Others(best_->decision);
  }

 private:
  /// What is known of an engine: the time of its quickest candidate that was not refused.
  struct EngineSoFar {
    double quickest = std::numeric_limits<double>::infinity();
    int tries = 0;
  };

  /// The place of that which is to be tried next.
  [[nodiscard]] std::ptrdiff_t NextOf(const std::vector<Candidate>& candidates) const;
  /// Milliseconds by what its engine did so far, the longer the more of it were tried; for the
  /// first of an engine 0, or where it is a fallback half as long again as the best.
  [[nodiscard]] double ExpectedTime(const Candidate& candidate) const;
  [[nodiscard]] std::string WhySkipped(const Candidate& candidate) const;
  /// Tries one of so many.
  void Try(const Candidate& candidate, int all);

  SearchSpace& space_;
  const SearchPolicy& policy_;
  Reporter reporter_;
  Selected* best_;
  double loading_ = 0;
  int tried_ = 0;
  std::set<std::string> ids_of_tried_;
  /// Engines of which neither other knobs nor detours are tried, unless they have done well.
  std::vector<std::string> hopeless_;
  std::map<std::string, EngineSoFar> engines_;
  QuickestOfForms forms_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_RACE_H_
