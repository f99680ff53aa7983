#ifndef GRADSMITH_CORE_SELECTION_H_
#define GRADSMITH_CORE_SELECTION_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"

/// How one of a problem's candidates is chosen. Nothing here knows what is computed or by whom.
namespace gradsmith::internal {

/// SearchPolicy is what a choice must respect, and how it is made.
struct SearchPolicy {
  SearchMode mode = SearchMode::kHeuristic;
  bool deterministic = false;
  bool allow_tf32 = false;
  bool allow_reduced_accuracy = false;
  bool exact_padding = false;
  std::size_t workspace_limit = std::numeric_limits<std::size_t>::max();
  /// For kBenchmark: no new candidate is begun after so many seconds, from when the first was tried
  /// that loads libraries and code, but for those of a quick choice, and what that takes.
  double budget_seconds = 10;
  /// How long kHeuristic times others beside the first that is taken; 0: not at all.
  double first_choice_seconds = 0.008;
  std::function<void(const SearchProgress&)> on_progress = {};
};

/// Decision names the candidate that a problem is computed with.
struct Decision {
  std::string id;
  std::size_t workspace = 0;
  /// How it was chosen.
  SearchMode mode = SearchMode::kHeuristic;
  /// Median of the timed runs, or 0 where none was timed.
  double milliseconds = 0;
  /// What Check measured: the largest error of an output, relative to its norm.
  double error = 0;
  /// The quickest of each other form that was timed and not far behind, not compared; not kept in
  /// files. Beside another computation that shares its copies one of them may be the better choice.
  std::vector<std::string> of_other_forms = {};
};

/// Selected is a decision, its plan, and what happened to the others.
struct Selected {
  Decision decision;
  std::unique_ptr<Plan> plan;
  std::vector<Rejection> rejections;
};

/// WhyFiltered names the rule of the policy that excludes the candidate; empty where none does.
std::string WhyFiltered(const Candidate& candidate, const SearchPolicy& policy);

/// Select chooses a candidate that the policy allows, that could be built, and whose output was
/// compared. kDefault takes the first such one; so does kHeuristic, which then times it beside
/// others for a moment; kBenchmark takes the fastest, timing engines in turn and comparing the
/// output of those that would be taken. The error names what excluded each candidate.
Result<Selected> Select(SearchSpace& space, const SearchPolicy& policy);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SELECTION_H_
