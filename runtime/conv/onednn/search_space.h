#ifndef GRADSMITH_CONV_ONEDNN_SEARCH_SPACE_H_
#define GRADSMITH_CONV_ONEDNN_SEARCH_SPACE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conv/task.h"
#include "core/candidate.h"
#include "core/selection.h"
#include "cpu/trial.h"
#include "gradsmith/context.h"

namespace gradsmith::conv {

/// CpuSearchSpace offers the ways to compute a float task on the CPU: our own kernel ("own/gemm"),
/// to which the others' results are held, and oneDNN's implementations ("onednn/...").
class CpuSearchSpace : public internal::SearchSpace {
 public:
  /// `threads` is how many oneDNN's take.
  CpuSearchSpace(
      const Context& context,
      const Task& task,
      int threads,
      const internal::SearchPolicy& policy);

  [[nodiscard]] std::string Describe() const override;
  [[nodiscard]] int batches() const override { return 2; }
  std::vector<internal::Candidate> List(int batch, std::vector<internal::Rejection>* rejections)
      override;
  Result<std::unique_ptr<internal::Plan>> Build(const std::string& id) override;
  Result<double> Check(internal::Plan& plan) override;
  [[nodiscard]] bool MayTakeMilliseconds() const override;
  Result<double> Time(internal::Plan& plan) override;

 private:
  /// Calls try_it(trial); running out of memory is an error like any other.
  template <typename Call>
  auto InTrial(const Call& try_it) -> decltype(try_it(std::declval<cpu::Trial&>()));

  const Context& context_;
  Task task_;
  int threads_;
  bool is_deterministic_;
  bool allow_reduced_accuracy_;
  std::optional<cpu::Trial> trial_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_ONEDNN_SEARCH_SPACE_H_
