#include "cuda/graph.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/candidate_name.h"

namespace gradsmith::cuda {

namespace {

using internal::Candidate;
using internal::CandidateNotes;

/// Sets what a descriptor is planned for, under the attribute that its type has for it.
void SetTarget(
    const GraphTarget& target,
    cudnnBackendAttributeName_t properties,
    DescriptorBuilder* builder) {
  if (target.properties() != nullptr) {
    builder->Set(properties, *target.properties());
  }
}

Result<Descriptor>
MakeEngine(const GraphTarget& target, const Descriptor& graph, std::int64_t engine) {
  DescriptorBuilder builder(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine " + std::to_string(engine));
  builder.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
  SetTarget(target, CUDNN_ATTR_ENGINE_DEVICEPROP, &builder);
  return builder.Finalize();
}

Result<Descriptor> MakeConfig(const Descriptor& engine, const EngineChoice& choice) {
  std::vector<Descriptor> knobs;
  for (const auto& [type, value] : choice.knobs) {
    const auto knob_type = static_cast<cudnnBackendKnobType_t>(type);
    Result<Descriptor> knob =
        DescriptorBuilder(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob")
            .SetRaw(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob_type)
            .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
            .Finalize();
    if (!knob.ok()) {
      return knob.status();
    }
    knobs.push_back(std::move(*knob));
  }
  DescriptorBuilder builder(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, choice.Text());
  builder.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) {
    builder.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  }
  return builder.Finalize();
}

Result<EngineChoice> ReadChoice(const Descriptor& config, const Descriptor& engine) {
  EngineChoice choice;
  const Result<std::int64_t> index = engine.Integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (!index.ok()) {
    return index.status();
  }
  choice.engine = *index;
  Result<std::vector<Descriptor>> knobs =
      config.Children(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  if (!knobs.ok()) {
    return knobs.status();
  }
  for (const Descriptor& knob : *knobs) {
    const Result<std::vector<std::int64_t>> type =
        knob.Integers(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
    const Result<std::int64_t> value = knob.Integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    if (!type.ok() || type->empty() || !value.ok()) {
      return Internal("cuDNN lists a knob that cannot be read");
    }
    choice.knobs.emplace_back(type->front(), *value);
  }
  return choice;
}

Result<Candidate> ReadCandidate(const Descriptor& config, DataType type) {
  const Result<Descriptor> engine =
      config.Child(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!engine.ok()) {
    return engine.status();
  }
  const Result<EngineChoice> choice = ReadChoice(config, *engine);
  if (!choice.ok()) {
    return choice.status();
  }
  Candidate candidate;
  candidate.id = choice->Text();
  candidate.engine = std::to_string(choice->engine);
  for (const auto& [type, value] : choice->knobs) {
    candidate.tile = type == CUDNN_KNOB_TYPE_TILE_SIZE ? value : candidate.tile;
  }
  candidate.notes = ToNotes(
      engine->Integers(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE),
      engine->Integers(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE), type);
  // Older versions tell it of a built plan only.
  const Result<std::int64_t> workspace = config.Integer(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
  candidate.workspace = workspace.ok() ? static_cast<std::size_t>(*workspace) : 0;
  return candidate;
}

/// GraphPlan runs an execution plan. The variant pack of the last addresses is kept: a training
/// step comes back with the same.
class GraphPlan final : public internal::Plan {
 public:
  GraphPlan(
      CudnnHandle* handle,
      Descriptor plan,
      std::size_t workspace,
      std::vector<std::int64_t> uids)
      : handle_(handle),
        plan_(std::move(plan)),
        workspace_(workspace),
        uids_(std::move(uids)),
        addresses_(uids_.size()) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    if (handle_ == nullptr) {
      return Unsupported("the plan is for a device that is only described");
    }
    if (Status status = handle_->UseStream(launch.stream); !status.ok()) {
      return status;
    }
    if (Status status = Bind(launch); !status.ok()) {
      return status;
    }
    const cudnnStatus_t result =
        Cudnn().cudnnBackendExecute(handle_->raw(), plan_.raw(), pack_.raw());
    return result == CUDNN_STATUS_SUCCESS ? Status() : ToStatus(result, "running a cuDNN plan");
  }

 private:
  Status Bind(const internal::Launch& launch) {
    bool same = pack_.raw() != nullptr && launch.workspace == workspace_address_;
    for (std::size_t i = 0; i < uids_.size(); ++i) {
      void* address = launch.operands[uids_[i]];
      same = same && address == addresses_[i];
      addresses_[i] = address;
    }
    if (same) {
      return {};
    }
    workspace_address_ = launch.workspace;
    const auto count = static_cast<std::int64_t>(uids_.size());
    Result<Descriptor> pack =
        DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the addresses")
            .SetRaw(
                CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                addresses_.data())
            .SetRaw(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids_.data())
            .SetRaw(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace_address_)
            .Finalize();
    if (!pack.ok()) {
      pack_ = Descriptor();
      return pack.status();
    }
    pack_ = std::move(*pack);
    return {};
  }

  CudnnHandle* handle_;
  Descriptor plan_;
  std::size_t workspace_;
  std::vector<std::int64_t> uids_;
  std::vector<void*> addresses_;
  void* workspace_address_ = nullptr;
  Descriptor pack_;
};

bool Has(const EngineNotes& notes, std::int64_t note) {
  return notes.ok() && std::ranges::find(*notes, note) != notes->end();
}

}  // namespace

internal::CandidateNotes
ToNotes(const EngineNotes& numerical, const EngineNotes& behavior, DataType type) {
  // Of an engine that does not tell, the worse is taken.
  const bool is_unknown = !numerical.ok();
  CandidateNotes notes;
  notes.deterministic = !is_unknown && !Has(numerical, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  notes.tf32 =
      type == DataType::kFloat && (is_unknown || Has(numerical, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  notes.down_converts = Has(numerical, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  notes.reduced_precision = Has(numerical, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  notes.transforms =
      Has(numerical, CUDNN_NUMERICAL_NOTE_FFT) || Has(numerical, CUDNN_NUMERICAL_NOTE_WINOGRAD);
  notes.runtime_compiled = Has(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  return notes;
}

Result<GraphTarget> GraphTarget::Described(const std::string& json) {
  Result<Descriptor> properties =
      DescriptorBuilder(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the device's description")
          .SetRaw(
              CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              static_cast<std::int64_t>(json.size()), json.data())
          .Finalize();
  if (!properties.ok()) {
    return properties.status();
  }
  GraphTarget target(nullptr);
  target.properties_ = std::make_shared<const Descriptor>(std::move(*properties));
  return target;
}

Result<Descriptor> MakeTensor(const GraphTensor& tensor) {
  return DescriptorBuilder(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor descriptor")
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.uid)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, ToCudnn(tensor.type))
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, tensor.alignment)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual)
      .Finalize();
}

Result<OperationGraph> FinalizeGraph(
    const GraphTarget& target,
    std::vector<Descriptor> parts,
    std::vector<Descriptor> operations,
    std::vector<std::int64_t> uids) {
  DescriptorBuilder builder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the operation graph");
  builder.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (target.handle() != nullptr) {
    cudnnHandle_t handle = target.handle()->raw();
    builder.SetRaw(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  Result<Descriptor> graph = builder.Finalize();
  if (!graph.ok()) {
    return graph.status();
  }
  OperationGraph result;
  result.parts = std::move(parts);
  result.operations = std::move(operations);
  result.graph = std::move(*graph);
  result.uids = std::move(uids);
  return result;
}

std::string EngineChoice::Text() const {
  std::string text = "engine " + std::to_string(engine);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    text += (i == 0 ? "/" : ",") + std::to_string(knobs[i].first) + "=" +
            std::to_string(knobs[i].second);
  }
  return text;
}

Result<EngineChoice> EngineChoice::Parse(const std::string& text) {
  const Status malformed = InvalidArgument("'" + text + "' is not an engine with its knobs");
  std::string_view rest = text;
  EngineChoice choice;
  if (!internal::TakeNumber(&rest, "engine ", &choice.engine)) {
    return malformed;
  }
  while (!rest.empty()) {
    std::pair<std::int64_t, std::int64_t> knob;
    if (!internal::TakeNumber(&rest, choice.knobs.empty() ? "/" : ",", &knob.first) ||
        !internal::TakeNumber(&rest, "=", &knob.second)) {
      return malformed;
    }
    choice.knobs.push_back(knob);
  }
  return choice;
}

Result<std::vector<Candidate>> ListEngines(
    const GraphTarget& target,
    const OperationGraph& graph,
    cudnnBackendHeurMode_t mode,
    DataType type) {
  DescriptorBuilder builder(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "cuDNN's heuristics");
  builder.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
      .SetRaw(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  SetTarget(target, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, &builder);
  std::vector<Candidate> candidates;
  const Result<Descriptor> heuristic = [&] {
    // Mode B is not safe in several threads at once; cudnn-frontend guards it likewise.
    static auto& mutex = *new std::mutex;
    const std::scoped_lock lock(mutex);
    return builder.Finalize();
  }();
  if (!heuristic.ok()) {
    // So it says that it has none.
    return heuristic.status().code() == StatusCode::kUnsupported ? Result(candidates)
                                                                 : heuristic.status();
  }
  const Result<std::vector<Descriptor>> configs =
      heuristic->Children(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (!configs.ok()) {
    return configs.status();
  }
  for (const Descriptor& config : *configs) {
    Result<Candidate> candidate = ReadCandidate(config, type);
    if (!candidate.ok()) {
      return candidate.status();
    }
    candidates.push_back(std::move(*candidate));
  }
  return candidates;
}

Result<std::unique_ptr<internal::Plan>>
BuildGraphPlan(const GraphTarget& target, const OperationGraph& graph, const EngineChoice& choice) {
  const Result<Descriptor> engine = MakeEngine(target, graph.graph, choice.engine);
  if (!engine.ok()) {
    return engine.status();
  }
  const Result<Descriptor> config = MakeConfig(*engine, choice);
  if (!config.ok()) {
    return config.status();
  }
  DescriptorBuilder builder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan of " + choice.Text());
  if (target.handle() != nullptr) {
    cudnnHandle_t handle = target.handle()->raw();
    builder.SetRaw(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  SetTarget(target, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, &builder);
  builder.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config);
  Result<Descriptor> plan = builder.Finalize();
  if (!plan.ok()) {
    return plan.status();
  }
  const Result<std::int64_t> workspace = plan->Integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  if (!workspace.ok()) {
    return workspace.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<GraphPlan>(
      target.handle(), std::move(*plan), static_cast<std::size_t>(*workspace), graph.uids));
}

}  // namespace gradsmith::cuda
