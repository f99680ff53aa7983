#ifndef GRADSMITH_CONV_CUDA_SEARCH_SPACE_H_
#define GRADSMITH_CONV_CUDA_SEARCH_SPACE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conv/cuda/conv_trial_space.h"
#include "conv/cuda/depthwise_bands.h"
#include "conv/cuda/few_channels.h"
#include "conv/cuda/first_layers.h"
#include "conv/cuda/form.h"
#include "conv/cuda/planes.h"
#include "conv/cuda/warpgroups.h"
#include "conv/cuda/wide_layers.h"
#include "conv/cuda/window.h"
#include "conv/task.h"
#include "conv/trial_data.h"
#include "core/candidate.h"
#include "core/candidate_name.h"
#include "core/selection.h"
#include "cuda/device.h"
#include "cuda/graph.h"
#include "cuda/thread_state.h"
#include "cuda/trial.h"

namespace gradsmith::conv {

/// Source is where candidates come from. All of one are asked for before those of the next.
enum Source : unsigned char { kHeuristicA, kOwnTensorCores, kFallback, kLegacyApi };
inline constexpr int kSources = 4;

/// What results are held to beside the type's own rounding.
struct Demands {
  /// What is added to in half or bf16 must be rounded once.
  bool rounds_once = false;
  /// Whether it is as exact as is promised, however many products are summed.
  bool keeps_promise = true;
};

/// IsInTf32 returns whether numbers of a type are multiplied in TF32 under a policy.
bool IsInTf32(const internal::SearchPolicy& policy, DataType type);

/// CheckResult compares what a trial's last run, on data of a kind, left in a task's result with
/// the direct computation, and returns how far it is off, relative to its norm. `before` is
/// Trial::Before of the result. The policy says how exact the result must be.
Result<double> CheckResult(
    cuda::Trial& trial,
    const cuda::DeviceInfo& device,
    const Task& task,
    const std::array<void*, kOperands>& operands,
    const void* before,
    TrialData data,
    const Demands& demands,
    const internal::SearchPolicy& policy);

/// ConvSearchSpace offers all ways to compute a task on CUDA: our own depthwise kernels where they
/// are the quickest, elsewhere at the end; in each form cuDNN's graph engines by heuristic A and
/// our own kernels on tensor cores (these first where they are likely to be quicker), then the
/// engines of cuDNN's fallback list, then the legacy API's algorithms; where a limit of workspace
/// has no room for a form's copies, the same in parts of the batch; at last our own kernels for any
/// problem. What has more elements than engines count is computed in parts alone, but for our own
/// kernels at the beginning and at the end.
class ConvSearchSpace final : public ConvTrialSpace {
 public:
  /// `operands` are the caller's addresses, `stream` the caller's. The policy says
  /// what is asked of results, and of which detours candidates are listed; selection sees to the
  /// rest.
  ConvSearchSpace(
      const cuda::DeviceInfo& device,
      CUstream stream,
      const Task& task,
      const std::array<void*, kOperands>& operands,
      internal::SearchPolicy policy);

  [[nodiscard]] std::string Describe() const override { return conv::Describe(task_); }
  [[nodiscard]] int batches() const override;
  std::vector<internal::Candidate> List(int batch, std::vector<internal::Rejection>* rejections)
      override;
  [[nodiscard]] bool IsSlowToList(int batch) const override;
  [[nodiscard]] bool IsPromising(int batch) const override;
  [[nodiscard]] bool IsQuickToTry(int batch) const override;
  Result<std::unique_ptr<internal::Plan>> Build(const std::string& id) override;
  Result<std::unique_ptr<internal::Plan>> Build(const internal::KernelName& name);
  bool Relax(bool lacks_memory) override;
  [[nodiscard]] bool LeavesSlow() const override;
  [[nodiscard]] bool MayTakeMilliseconds() const override;

 private:
  [[nodiscard]] std::vector<cuda::TrialOperand> TrialOperands() const override;
  [[nodiscard]] std::vector<cuda::UniformRange> ValuesOf(TrialData data) const override;
  [[nodiscard]] std::vector<TriedTask> TriedTasks() const override;
  Result<double> Compare(const internal::Plan& plan, TrialData data) override;
  /// There are more elements than engines count.
  [[nodiscard]] bool MustBeCut() const { return parts_to_count_ > 1; }
  /// Batches before those of a part.
  [[nodiscard]] int BatchesOfWhole() const {
    return 1 + (MustBeCut() ? 0 : kSources * static_cast<int>(forms_.size()));
  }
  [[nodiscard]] bool IsOfPart(int batch) const {
    return part_ != nullptr && batch >= BatchesOfWhole() && batch < batches() - 1;
  }
  /// Parts for which there is room for a form's copies.
  [[nodiscard]] std::int64_t PartsForCopies() const;
  Source SourceAt(int place);
  bool HasWindow();
  /// Whether own/wide-layers is likely to be quicker than all others, in any form.
  [[nodiscard]] bool HasWideLayers() const;
  bool DepthwiseComesFirst();
  /// Null where operands must be copied.
  [[nodiscard]] const OperandForm* AsItIs() const;
  /// Our own kernels where they come before all others, in whatever form these take the operands.
  std::vector<internal::Candidate> ListFirst();
  /// own/depthwise-bands where it is likely to be quicker than all else, or where it is not.
  void AddBands(bool where_they_pay, std::vector<internal::Candidate>* candidates) const;
  /// Where own/few-channels is likely to be quicker than all else, or where it is not.
  void AddFewChannels(
      const OperandForm& form,
      bool where_they_pay,
      std::vector<internal::Candidate>* candidates) const;
  /// The same of own/first-layers.
  void AddFirstLayers(
      const OperandForm& form,
      bool where_they_pay,
      std::vector<internal::Candidate>* candidates) const;
  /// And of own/planes.
  void AddPlanes(
      const OperandForm& form,
      bool where_they_pay,
      std::vector<internal::Candidate>* candidates) const;
  [[nodiscard]] std::vector<internal::Candidate> ListDepthwise() const;
  std::vector<internal::Candidate> ListLast(std::vector<internal::Rejection>* rejections);
  Result<std::vector<internal::Candidate>> ListOfForm(const OperandForm& form, Source source);
  std::vector<internal::Candidate> ListOwn(const OperandForm& form);
  [[nodiscard]] std::optional<DepthwiseBands> BandsOf(const Task& task) const;
  /// Those kernels take channels as they are: none for a form that has more.
  [[nodiscard]] std::optional<FewChannels> FewChannelsOf(const OperandForm& form) const;
  [[nodiscard]] std::optional<Warpgroups> WarpgroupsOf(const OperandForm& form) const;
  [[nodiscard]] std::optional<WideLayers> WideLayersOf(const OperandForm& form) const;
  [[nodiscard]] std::optional<Planes> PlanesOf(const OperandForm& form) const;
  [[nodiscard]] std::optional<FirstLayers> FirstLayersOf(const OperandForm& form) const;
  /// Null where windows do not fit.
  const WindowWork* WindowOf(const OperandForm& form);
  Result<const cuda::OperationGraph*> GraphOf(const OperandForm& form);
  Result<std::unique_ptr<internal::Plan>> BuildOwn(
      const OperandForm& form,
      const std::string& name);
  Result<std::unique_ptr<internal::Plan>> BuildInner(
      const OperandForm& form,
      const internal::KernelName& name);
  Result<std::unique_ptr<internal::Plan>>
  BuildGraph(cuda::CudnnHandle& handle, const OperandForm& form, const std::string& variant);
  /// The search space of a part of the batch.
  std::unique_ptr<ConvSearchSpace> MakeSpaceOfPart(std::int64_t parts, bool is_first) const;
  std::vector<internal::Candidate> ListInParts(
      int batch,
      std::vector<internal::Rejection>* rejections);
  Result<std::unique_ptr<internal::Plan>> BuildInParts(const internal::KernelName& name);
  /// Our own depthwise kernels; nothing where the name is another's.
  [[nodiscard]] std::optional<Result<std::unique_ptr<internal::Plan>>> BuildDepthwise(
      const Task& task,
      const std::string& kernel) const;
  /// Our own kernels that take the operands as they are, whether that is one of the forms or not;
  /// nothing where the name is another's.
  [[nodiscard]] std::optional<Result<std::unique_ptr<internal::Plan>>> BuildInAnyForm(
      const internal::KernelName& name) const;

  Task task_;
  std::array<void*, kOperands> operands_;
  Demands demands_;
  /// Whether what is slow is listed too, whatever is demanded.
  bool lists_slow_ = false;
  std::vector<OperandForm> forms_;
  /// The parts in which engines count the elements.
  std::int64_t parts_to_count_;
  /// How many parts of the batch candidates are listed for as well, and of one of them; 1 and null
  /// where there are none.
  std::int64_t parts_;
  std::unique_ptr<ConvSearchSpace> part_;
  /// Known once candidates are listed: a choice that is remembered need not ask.
  std::optional<bool> ours_come_first_;
  /// The graphs by the names of their forms, by which what follows is found as well.
  std::map<std::string, cuda::OperationGraph> graphs_;
  std::map<std::string, std::optional<WindowWork>> windows_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_SEARCH_SPACE_H_
