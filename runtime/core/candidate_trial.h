#ifndef GRADSMITH_CORE_CANDIDATE_TRIAL_H_
#define GRADSMITH_CORE_CANDIDATE_TRIAL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/selection.h"
#include "core/stopwatch.h"

/// How candidates are listed, built, compared and reported, whoever chooses among them.
namespace gradsmith::internal {

/// Allowed lists the candidates of a batch that the policy allows; the others are rejected.
std::vector<Candidate> Allowed(
    SearchSpace& space,
    int batch,
    const SearchPolicy& policy,
    std::vector<Rejection>* rejections);

/// Rejected returns the rejection of a candidate by an error.
Rejection Rejected(const Candidate& candidate, const Status& status);

/// Build builds a candidate; null where it fails, with the reason among the rejections.
std::unique_ptr<Plan> Build(
    SearchSpace& space,
    const Candidate& candidate,
    const SearchPolicy& policy,
    std::vector<Rejection>* rejections);

/// Checked returns the error that was measured where the plan's output is right; otherwise nothing,
/// and the reason is among the rejections.
std::optional<double> Checked(
    SearchSpace& space,
    const Candidate& candidate,
    Plan& plan,
    std::vector<Rejection>* rejections);

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
