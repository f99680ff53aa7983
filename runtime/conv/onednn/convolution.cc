#include "conv/onednn/convolution.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conv/onednn/descriptors.h"
#include "onednn/library.h"
#include "onednn/threads.h"

namespace gradsmith::conv {

namespace {

using dnnl::memory;
using internal::Candidate;
using internal::Plan;
using internal::Rejection;

/// Where the activations are kept: the ids' first part, and whether oneDNN chooses.
struct Place {
  const char* name;
  bool any_layout;
};
constexpr std::array<Place, 2> kPlaces = {{{"blocked", true}, {"plain", false}}};

std::size_t RoundedUp(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Memory of a layout, without an address yet.
memory Unplaced(const memory::desc& desc) {
  return {desc, onednn::Engine(), nullptr};
}

bool IsReference(std::string_view implementation) {
  return implementation.starts_with("ref");
}

bool IsChannelsLast(const Task& task) {
  return task.problem.x_strides[1] == 1 && task.problem.x_channels > 1;
}

/// Whether a matrix product is the quickest (2.6 with AVX2): where the patches of NCHW are the
/// images themselves, and where one channel would leave vectors of channels all but empty. That of
/// the filter has its threads wait for each other many times, which takes a hundred times as long
/// on processors that others use as well.
bool PrefersGemm(const Task& task) {
  if (task.primitive == Primitive::kBackwardFilter) {
    return false;
  }
  const Problem& problem = task.problem;
  const auto is_plain = [](const Axis& axis) { return axis.w == 1 && axis.x == axis.y; };
  const bool is_product =
      std::all_of(problem.axes.begin(), problem.axes.begin() + problem.spatial_rank, is_plain);
  const bool has_one_channel = problem.x_channels == 1 && task.primitive != Primitive::kForward;
  return !IsChannelsLast(task) && (is_product || has_one_channel);
}

/// How many of the rules of thumb a candidate goes against.
int Misfits(const Task& task, const Candidate& candidate) {
  const bool is_gemm = candidate.id.find("gemm") != std::string::npos;
  const bool is_plain = candidate.id.starts_with("plain/");
  const bool is_other = is_gemm != PrefersGemm(task);
  const bool is_elsewhere = is_plain != (IsChannelsLast(task) || PrefersGemm(task));
  return (is_other ? 2 : 0) + (is_elsewhere ? 1 : 0);
}

/// A list of oneDNN's primitives that run one after the other: copies of operands into the layouts
/// of the convolution, it, and the copy back.
class OneDnnPlan final : public Plan {
 public:
  OneDnnPlan(const Task& task, int threads, const dnnl::primitive_desc& convolution)
      : threads_(threads), stream_(onednn::Engine()) {
    const Operand result = ResultOf(task.primitive);
    std::unordered_map<int, memory> arguments;
    std::optional<memory> inner_result;
    for (int operand = 0; operand < kCpuOperands; ++operand) {
      const bool is_bias = operand == kBias;
      if (is_bias && !task.bias) {
        continue;
      }
      const bool is_added_later = is_bias && task.primitive == Primitive::kBackwardData;
      given_[operand] = Unplaced(is_added_later ? ShapedBias(task) : GivenDesc(task, operand));
      if (is_added_later) {
        continue;
      }
      const int argument = ArgumentOf(task.primitive, operand);
      const memory::desc wanted = convolution.query_md(dnnl::query::exec_arg_md, argument);
      memory inner = given_[operand];
      if (wanted != given_[operand].get_desc()) {
        inner = AddCopy(wanted);
        if (operand == result) {
          inner_result = inner;
        } else {
          AddReorder(given_[operand], inner);
        }
      }
      arguments.emplace(argument, inner);
    }
    Add(convolution, std::move(arguments));
    if (inner_result) {
      AddReorder(*inner_result, given_[result]);
    }
    if (task.bias && task.primitive == Primitive::kBackwardData) {
      const memory& x = given_[kX];
      Add(BiasAdder(x.get_desc(), given_[kBias].get_desc()),
          {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, given_[kBias]}, {DNNL_ARG_DST, x}});
    }
    PlaceScratchpad();
  }

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    const onednn::ThreadLimit limit(threads_);
    return onednn::Guarded([&] {
      Place(launch);
      for (const Step& step : steps_) {
        step.primitive.execute(stream_, step.arguments);
      }
      stream_.wait();
    });
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
    std::size_t scratchpad = 0;
  };
  /// What lies in the workspace, and where.
  struct InWorkspace {
    memory at;
    std::size_t offset = 0;
  };

  void Add(const dnnl::primitive_desc_base& desc, std::unordered_map<int, memory> arguments) {
    steps_.push_back(
        {dnnl::primitive(desc.get()), std::move(arguments), desc.scratchpad_desc().get_size()});
  }

  memory AddCopy(const memory::desc& desc) {
    memory copy = Unplaced(desc);
    in_workspace_.push_back({copy, workspace_});
    workspace_ += RoundedUp(desc.get_size());
    return copy;
  }

  void AddReorder(const memory& from, const memory& to) {
    Add(dnnl::reorder::primitive_desc(
            onednn::Engine(), from.get_desc(), onednn::Engine(), to.get_desc(), Attributes()),
        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// One scratchpad serves all steps, as they run in turn.
  void PlaceScratchpad() {
    const auto most = static_cast<memory::dim>(
        std::ranges::max_element(steps_, {}, &Step::scratchpad)->scratchpad);
    if (most == 0) {
      return;
    }
    const memory scratchpad = AddCopy({{most}, memory::data_type::u8, memory::format_tag::a});
    for (Step& step : steps_) {
      step.arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad);
    }
  }

  void Place(const internal::Launch& launch) {
    for (std::size_t i = 0; i < launch.operands.size(); ++i) {
      if (given_.at(i)) {
        given_[i].set_data_handle(launch.operands[i]);
      }
    }
    if (launch.workspace == placed_at_) {
      return;
    }
    for (InWorkspace& each : in_workspace_) {
      each.at.set_data_handle(static_cast<std::byte*>(launch.workspace) + each.offset);
    }
    placed_at_ = launch.workspace;
  }

  int threads_;
  dnnl::stream stream_;
  std::array<memory, kCpuOperands> given_;
  std::vector<InWorkspace> in_workspace_;
  std::vector<Step> steps_;
  std::size_t workspace_ = 0;
  void* placed_at_ = nullptr;
};

}  // namespace

std::vector<Candidate>
ListOneDnn(const Task& task, int threads, std::vector<Rejection>* rejections) {
  const onednn::ThreadLimit limit(threads);
  std::vector<Candidate> candidates;
  for (const Place& place : kPlaces) {
    const std::string begin = std::string(place.name) + "/";
    const auto add = [&](const dnnl::primitive_desc& implementation) {
      const std::string id = begin + implementation.impl_info_str();
      const auto is_it = [&](const Candidate& each) { return each.id == id; };
      if (!IsReference(implementation.impl_info_str()) && std::ranges::none_of(candidates, is_it)) {
        candidates.push_back({.id = id, .engine = id});
      }
      return true;
    };
    const Status status =
        onednn::Guarded([&] { ForEachImplementation(task, place.any_layout, add); });
    if (!status.ok()) {
      rejections->push_back({begin, status.message()});
    }
  }
  std::ranges::stable_sort(
      candidates, {}, [&](const Candidate& candidate) { return Misfits(task, candidate); });
  return candidates;
}

Result<std::unique_ptr<Plan>>
BuildOneDnnPlan(const Task& task, int threads, const std::string& choice) {
  const onednn::ThreadLimit limit(threads);
  std::unique_ptr<Plan> plan;
  for (const Place& place : kPlaces) {
    const std::string begin = std::string(place.name) + "/";
    if (!choice.starts_with(begin)) {
      continue;
    }
    const auto build = [&](const dnnl::primitive_desc& implementation) {
      if (begin + implementation.impl_info_str() != choice) {
        return true;
      }
      plan = std::make_unique<OneDnnPlan>(task, threads, implementation);
      return false;
    };
    const Status status =
        onednn::Guarded([&] { ForEachImplementation(task, place.any_layout, build); });
    if (!status.ok()) {
      return status;
    }
  }
  if (plan == nullptr) {
    return Unsupported(onednn::Version() + " has no implementation '" + choice + "' of it");
  }
  return plan;
}

}  // namespace gradsmith::conv
