#ifndef GRADSMITH_CORE_CANDIDATE_H_
#define GRADSMITH_CORE_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/plan.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// CandidateNotes say how a candidate computes.
struct CandidateNotes {
  bool deterministic = true;
  /// Multiplies float in TF32.
  bool tf32 = false;
  /// Narrows inputs that are wider; never chosen.
  bool down_converts = false;
  /// Sums half or bf16 in less than float.
  bool reduced_precision = false;
  /// Multiplies transformed inputs (FFT, Winograd): right to rounding, but not exact on integers.
  bool transforms = false;
  /// Slow, as far as can be told without running it.
  bool slow = false;
  /// Slow, and there for when nothing else is.
  bool last_resort = false;
  /// Whether it is for when the better ones do not serve, and quicker only by exception.
  bool fallback = false;
  /// Its code is compiled when the plan is built, which takes up to seconds.
  bool runtime_compiled = false;
  /// Sums in numbers of a fixed range, so that large values may come out as NaN or infinite: taken
  /// only where all candidates are compared.
  bool may_overflow = false;
  /// May take one time or another by chance, as kernels side by side do: the mean of its runs
  /// counts, not the median.
  bool varies = false;
  /// Known to be wrong or to crash in this version of the library that it comes from.
  bool known_bad = false;
};

/// Candidate is one way to compute a problem, not built yet.
struct Candidate {
  /// A CandidateName (candidate_name.h), for example "graph/engine 67/2=1,5=0": names the candidate
  /// to the user and is all that it takes to build it again.
  std::string id;
  /// The part of the id that knobs vary: candidates of one engine are tried in turn with others.
  std::string engine;
  /// The knob that changes most, the size of tiles as a rule: candidates of one engine that differ
  /// in it are tried before those that do not.
  std::int64_t tile = 0;
  CandidateNotes notes = {};
  std::size_t workspace = 0;
};

/// Rejection says why a candidate was not taken.
struct Rejection {
  std::string id;
  std::string reason;
  /// There was no memory to try it in: it says nothing of the candidate.
  bool out_of_memory = false;
};

/// SearchSpace is a problem as selection sees it: ways to compute it, and how to try one.
class SearchSpace {
 public:
  SearchSpace() = default;
  SearchSpace(const SearchSpace&) = delete;
  SearchSpace& operator=(const SearchSpace&) = delete;
  SearchSpace(SearchSpace&&) = delete;
  SearchSpace& operator=(SearchSpace&&) = delete;
  virtual ~SearchSpace() = default;

  /// What is computed, for messages: op, types, shapes, layout, alignment.
  [[nodiscard]] virtual std::string Describe() const = 0;

  /// Candidates come in batches, the most promising first, so that a quick choice need not list
  /// all. An empty batch may be followed by others. Candidates that could not even be listed are
  /// added to `rejections`.
  [[nodiscard]] virtual int batches() const = 0;
  virtual std::vector<Candidate> List(int batch, std::vector<Rejection>* rejections) = 0;

  /// Whether listing a batch may take seconds: a search does that last.
  [[nodiscard]] virtual bool IsSlowToList(int /*batch*/) const { return false; }

  /// Whether a batch is likely to have the quickest of all: a brief look lists the others last.
  [[nodiscard]] virtual bool IsPromising(int /*batch*/) const { return true; }

  /// Whether a batch's candidates need no plan of another library, which takes milliseconds to
  /// build: a brief look lists such a batch first.
  [[nodiscard]] virtual bool IsQuickToTry(int /*batch*/) const { return false; }

  virtual Result<std::unique_ptr<Plan>> Build(const std::string& id) = 0;

  /// Check runs the plan on data of the problem's shapes, usual ones and such that hurt, into
  /// poisoned memory, and compares with another way to compute it. It returns the largest error of
  /// an output, relative to its norm; one that is too large is an error.
  virtual Result<double> Check(Plan& plan) = 0;

  /// Relax lowers what Check demands, for when no candidate is left; false where it cannot. Where
  /// memory was lacking, what is promised is still demanded: another process may have the memory.
  virtual bool Relax(bool /*lacks_memory*/) { return false; }

  /// Whether a quick choice leaves what is slow until Relax has lowered what Check demands: where
  /// nothing meets that, trying what is slow takes most of the time.
  [[nodiscard]] virtual bool LeavesSlow() const { return false; }

  /// Whether a run may take many milliseconds; then time is worth some to a quick choice as well.
  [[nodiscard]] virtual bool MayTakeMilliseconds() const { return false; }

  /// Time returns the milliseconds of one run with cold caches.
  virtual Result<double> Time(Plan& plan) = 0;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CANDIDATE_H_
