#ifndef GRADSMITH_CORE_CANDIDATE_TRIAL_H_
#define GRADSMITH_CORE_CANDIDATE_TRIAL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/candidate.h"
#include "core/selection.h"
#include "core/stopwatch.h"

/// How candidates are listed, built, compared and reported, whoever chooses among them.
namespace gradsmith::internal {

/// Batches lists each batch of a space once, as that may take milliseconds, and keeps the
/// candidates that the policy allows.
class Batches {
 public:
  Batches(SearchSpace& space, const SearchPolicy& policy)
      : space_(space), policy_(policy), listed_(space.batches()) {}

  [[nodiscard]] int count() const { return static_cast<int>(listed_.size()); }

  /// The first time candidates that are not allowed are added to the rejections.
  const std::vector<Candidate>& At(int batch, std::vector<Rejection>* rejections);

 private:
  SearchSpace& space_;
  const SearchPolicy& policy_;
  std::vector<std::optional<std::vector<Candidate>>> listed_;
};

/// Rejected returns the rejection of a candidate by an error.
Rejection Rejected(const Candidate& candidate, const Status& status);

/// Build builds a candidate; null where it fails, with the reason among the rejections.
std::unique_ptr<Plan> Build(
    SearchSpace& space,
    const Candidate& candidate,
    const SearchPolicy& policy,
    std::vector<Rejection>* rejections);

/// TimeOfFewRuns returns the milliseconds of a plan's run, by as few runs as tell it from the best
/// so far, which is infinite where there is none. The first run may load code: it counts where it
/// is long and quicker than the best all the same, or surely hopeless. The second counts where it
/// is hopeless, and the quicker of both where that is long. Else it is the quicker of the second
/// and the third, or their mean where times vary. An error where a run fails.
Result<double>
TimeOfFewRuns(SearchSpace& space, const CandidateNotes& notes, Plan& plan, double best);

/// TakeIfRight makes a candidate the choice, by its plan that took so many milliseconds, where the
/// plan's output is right, and returns whether it is; otherwise the reason is among the rejections.
bool TakeIfRight(
    SearchSpace& space,
    const Candidate& candidate,
    std::unique_ptr<Plan> plan,
    SearchMode mode,
    double milliseconds,
    Selected* selected);

/// QuickestOfForms keeps the quickest candidate of each form that operands meet engines in.
class QuickestOfForms {
 public:
  void Note(const std::string& id, double milliseconds);

  /// The ids of those in other forms than the best candidate's that are not far behind it.
  [[nodiscard]] std::vector<std::string> Others(const Decision& best) const;

 private:
  /// The quickest candidate of each form, by the name of the form, and its time.
  std::map<std::string, std::pair<double, std::string>> of_forms_;
};

/// Reporter tells who asked for it of each candidate that was tried.
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
      const Selected& best) const;

 private:
  const SearchSpace& space_;
  const SearchPolicy& policy_;
  Stopwatch watch_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CANDIDATE_TRIAL_H_
