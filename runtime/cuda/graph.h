#ifndef GRADSMITH_CUDA_GRAPH_H_
#define GRADSMITH_CUDA_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/candidate.h"
#include "core/plan.h"
#include "cuda/cudnn.h"
#include "cuda/descriptor.h"
#include "cuda/thread_state.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Candidates of cuDNN's graph API. A family builds an operation graph; the rest is here.
namespace gradsmith::cuda {

/// GraphTarget is what a graph is planned for: the GPU of a handle, or a GPU that is only
/// described, for which everything but running works.
class GraphTarget {
 public:
  explicit GraphTarget(CudnnHandle* handle) : handle_(handle) {}
  /// Described reads cuDNN's JSON description of a device; needs cuDNN 9.11.
  static Result<GraphTarget> Described(const std::string& json);

  [[nodiscard]] CudnnHandle* handle() const { return handle_; }
  /// The device's description, or null where there is a handle.
  [[nodiscard]] const Descriptor* properties() const { return properties_.get(); }

 private:
  CudnnHandle* handle_ = nullptr;
  std::shared_ptr<const Descriptor> properties_;
};

/// GraphTensor is a tensor of an operation graph; `uid` is its place among the problem's operands.
struct GraphTensor {
  std::int64_t uid = 0;
  DataType type = DataType::kFloat;
  Dims dims;
  Strides strides;
  /// What the address is a multiple of, in bytes: 16, or an element's size.
  std::int64_t alignment = 16;
  /// Whether it is between two operations of the graph, and never in memory.
  bool is_virtual = false;
};

Result<Descriptor> MakeTensor(const GraphTensor& tensor);

/// OperationGraph is a finalized graph and what it is made of.
struct OperationGraph {
  std::vector<Descriptor> parts;
  std::vector<Descriptor> operations;
  Descriptor graph;
  /// The ids of all tensors that are not virtual.
  std::vector<std::int64_t> uids;
};

/// FinalizeGraph makes the graph of operations that are finalized already.
Result<OperationGraph> FinalizeGraph(
    const GraphTarget& target,
    std::vector<Descriptor> parts,
    std::vector<Descriptor> operations,
    std::vector<std::int64_t> uids);

/// EngineChoice is an engine of a graph and the values of its knobs.
struct EngineChoice {
  std::int64_t engine = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;

  /// "engine 67/2=1,5=0".
  [[nodiscard]] std::string Text() const;
  static Result<EngineChoice> Parse(const std::string& text);
};

/// What cuDNN notes of an engine, or why that cannot be read.
using EngineNotes = Result<std::vector<std::int64_t>>;

/// ToNotes reads an engine's numerical and behavior notes. One whose numerical notes cannot be read
/// counts as not deterministic, and in float as TF32.
internal::CandidateNotes
ToNotes(const EngineNotes& numerical, const EngineNotes& behavior, DataType type);

/// ListEngines returns what a heuristic of cuDNN offers, best first. An id is an EngineChoice's
/// text, an engine its number. An empty list is an answer. TF32 is noted where `type` is float.
Result<std::vector<internal::Candidate>> ListEngines(
    const GraphTarget& target,
    const OperationGraph& graph,
    cudnnBackendHeurMode_t mode,
    DataType type);

/// BuildGraphPlan builds the plan of a choice, which runs on the target's handle. Operands are
/// addressed by uid.
Result<std::unique_ptr<internal::Plan>>
BuildGraphPlan(const GraphTarget& target, const OperationGraph& graph, const EngineChoice& choice);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_GRAPH_H_
