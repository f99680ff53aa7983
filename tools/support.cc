#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "conv/cuda/form.h"
#include "conv/cuda/graph.h"
#include "conv/cuda/task.h"
#include "core/candidate.h"
#include "core/selection.h"
#include "cuda/cudnn.h"
#include "cuda/descriptor.h"
#include "cuda/graph.h"

namespace gradsmith::tools {

namespace {

constexpr const char* kUsage =
    R"(What the installed cuDNN offers for the convolutions of ops.yaml on a GPU that need not be there.

    gradsmith-support DEVICE.json           write a table to standard output: for each primitive, type, layout,
                                            number of axes and feature which source serves it, and with how many
                                            engines (deterministic, strict: no TF32, sums in float or wider).
                                            A first line, after #, is the version of cuDNN
    gradsmith-support --describe-device     write the description of GPU 0 of this machine

The description of an H200 is tests/data/h200_deviceprop.json.
)";

/// Feature is what is special about a cell's convolution.
struct Feature {
  const char* name = "";
  std::int64_t x_channels = 32;
  std::int64_t y_channels = 64;
  std::int64_t group = 1;
  std::int64_t filter = 3;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 1;
  std::int64_t pad_end = 1;
  bool accumulate = false;
  int alignment = 16;
};

constexpr Feature kFeatures[] = {
    {.name = "plain"},
    {.name = "pointwise", .filter = 1, .pad_begin = 0, .pad_end = 0},
    {.name = "strided", .stride = 2},
    {.name = "dilated", .dilation = 2, .pad_begin = 2, .pad_end = 2},
    {.name = "strided and dilated", .stride = 2, .dilation = 2},
    {.name = "asymmetric pads", .pad_begin = 0, .pad_end = 1},
    {.name = "grouped", .group = 4},
    {.name = "depthwise", .x_channels = 32, .y_channels = 32, .group = 32},
    {.name = "odd channels", .x_channels = 3, .y_channels = 5},
    {.name = "accumulating", .accumulate = true},
    {.name = "unaligned", .alignment = 0},
};

conv::Task MakeTask(
    conv::Primitive primitive,
    DataType type,
    bool channels_last,
    int spatial_rank,
    const Feature& feature) {
  constexpr std::int64_t kExtents[] = {64, 16, 8};
  conv::Task task;
  task.primitive = primitive;
  task.accumulate = feature.accumulate;
  conv::Problem& problem = task.problem;
  problem.type = type;
  problem.batch = 8;
  problem.x_channels = feature.x_channels;
  problem.y_channels = feature.y_channels;
  problem.group = feature.group;
  problem.spatial_rank = spatial_rank;
  for (int i = 0; i < spatial_rank; ++i) {
    conv::Axis& axis = problem.axes[i];
    axis.x = kExtents[spatial_rank - 1];
    axis.w = feature.filter;
    axis.stride = feature.stride;
    axis.dilation = feature.dilation;
    axis.pad_begin = feature.pad_begin;
    axis.pad_end = feature.pad_end;
    axis.y = ((axis.x + axis.pad_begin + axis.pad_end - (axis.dilation * (axis.w - 1)) - 1) /
              axis.stride) +
             1;
  }
  for (const conv::Operand operand : {conv::kX, conv::kW, conv::kY}) {
    const Dims dims = conv::DimsOf(problem, operand);
    conv::StridesOf(problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    task.alignment.at(operand) =
        feature.alignment > 0 ? feature.alignment : static_cast<int>(SizeOf(type));
  }
  return task;
}

/// What serves a cell: the source and how many of its engines the strictest policy allows.
struct Served {
  std::string source = "own";
  int engines = 0;
};

Result<Served> Ask(const cuda::GraphTarget& target, const conv::Task& task) {
  const internal::SearchPolicy strictest{.deterministic = true};
  for (const conv::Form& form : conv::FormsOf(task)) {
    const Result<cuda::OperationGraph> graph = conv::MakeGraph(target, form.inner);
    if (!graph.ok()) {
      return graph.status();
    }
    Served served;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      Result<std::vector<internal::Candidate>> candidates =
          cuda::ListEngines(target, *graph, mode, task.problem.type, "");
      if (!candidates.ok()) {
        return candidates.status();
      }
      for (const internal::Candidate& candidate : *candidates) {
        served.engines += internal::WhyFiltered(candidate, strictest).empty() ? 1 : 0;
      }
    }
    if (served.engines > 0) {
      served.source = form.name + "graph";
      return served;
    }
  }
  return Served();
}

int Fail(const std::string& message) {
  std::cerr << "gradsmith-support: " << message << "\n";
  return 1;
}

/// Writes the rows of one primitive and type.
Status WriteRows(const cuda::GraphTarget& target, conv::Primitive primitive, DataType type) {
  for (const bool channels_last : {false, true}) {
    for (int axes = 1; axes <= conv::kMaxSpatialRank; ++axes) {
      for (const Feature& feature : kFeatures) {
        const Result<Served> served =
            Ask(target, MakeTask(primitive, type, channels_last, axes, feature));
        if (!served.ok()) {
          return served.status().WithPrefix(std::string(feature.name) + ": ");
        }
        std::cout << ToString(primitive) << '\t' << ToString(type) << '\t'
                  << (channels_last ? "NHWC" : "NCHW") << '\t' << axes << '\t' << feature.name
                  << '\t' << served->source << '\t' << served->engines << '\n';
      }
    }
  }
  return {};
}

int WriteTable(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    return Fail("cannot read " + path);
  }
  if (!cuda::LoadCudnn().ok()) {
    return Fail(cuda::LoadCudnn().status().message());
  }
  const std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Result<cuda::GraphTarget> target = cuda::GraphTarget::Described(json);
  if (!target.ok()) {
    return Fail(path + ": " + target.status().message());
  }
  std::cout << "# cuDNN " << cuda::LoadCudnn()->version << "\n"
            << "primitive\ttype\tlayout\taxes\tfeature\tsource\tengines\n";
  for (const auto primitive :
       {conv::Primitive::kForward, conv::Primitive::kBackwardData,
        conv::Primitive::kBackwardFilter}) {
    for (const auto type :
         {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
      if (const Status status = WriteRows(*target, primitive, type); !status.ok()) {
        return Fail(status.message());
      }
    }
  }
  return 0;
}

int DescribeDevice() {
  if (!cuda::LoadCudnn().ok()) {
    return Fail(cuda::LoadCudnn().status().message());
  }
  const std::int32_t ordinal = 0;
  const Result<cuda::Descriptor> properties =
      cuda::DescriptorBuilder(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the device's description")
          .SetRaw(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &ordinal)
          .Finalize();
  if (!properties.ok()) {
    return Fail(properties.status().message());
  }
  const Result<std::string> json = properties->Text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  if (!json.ok()) {
    return Fail(json.status().message());
  }
  std::cout << *json << "\n";
  return 0;
}

int Main(const std::string& argument) {
  if (argument == "--describe-device") {
    return DescribeDevice();
  }
  if (argument.starts_with("--")) {
    Fail(argument + ": there is no such option (--help lists them)");
    return 2;
  }
  return WriteTable(argument);
}

}  // namespace

}  // namespace gradsmith::tools

int main(int argc, char** argv) {
  try {
    const std::string argument = argc == 2 ? argv[1] : "--help";
    if (argument == "--help") {
      std::cout << gradsmith::tools::kUsage;
      return argc == 2 ? 0 : 2;
    }
    return gradsmith::tools::Main(argument);
  } catch (const std::exception& error) {
    return gradsmith::tools::Fail(error.what());
  }
}
