#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batch_norm/cuda/form.h"
#include "batch_norm/cuda/graph.h"
#include "batch_norm/cuda/task.h"
#include "conv/cuda/form.h"
#include "conv/cuda/graph.h"
#include "conv/task.h"
#include "core/candidate.h"
#include "core/candidate_name.h"
#include "core/selection.h"
#include "cuda/cudnn.h"
#include "cuda/descriptor.h"
#include "cuda/dynamic_library.h"
#include "cuda/graph.h"
#include "gradsmith/ops.h"
#include "gradsmith/schema.h"

namespace gradsmith::tools {

namespace {

constexpr const char* kUsage =
    R"(What the installed cuDNN offers for the operators of ops.yaml on a GPU that need not be there.

    gradsmith-support DEVICE.json           write a table to standard output: for each primitive, type, layout,
                                            number of axes and feature which source serves it, and with how many
                                            engines (deterministic, strict: no TF32, sums in float or wider): those
                                            whose code cuDNN brings, and those that it compiles at run time.
                                            A first line, after #, is the version of cuDNN
    gradsmith-support --describe-device     write the description of GPU 0 of this machine

Engines that cuDNN compiles at run time, all of batch normalization's, are listed only where libcuda.so.1 is found:
a link of that name to the CUDA Toolkit's lib64/stubs/libcuda.so is enough. Elsewhere the table has - for their number,
and no batch normalization.

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

/// Engines that the strictest policy allows: those whose code cuDNN brings, which are the same with
/// and without a driver, and those that are compiled at run time.
struct Engines {
  int brought = 0;
  int compiled = 0;
};

/// What serves a cell: the source and its engines.
struct Served {
  std::string source = "own";
  Engines engines;
};

Result<Engines>
CountEngines(const cuda::GraphTarget& target, const cuda::OperationGraph& graph, DataType type) {
  const internal::SearchPolicy strictest{.deterministic = true};
  Engines count;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const Result<std::vector<internal::Candidate>> candidates =
        cuda::ListEngines(target, graph, mode, type);
    if (!candidates.ok()) {
      return candidates.status();
    }
    for (const internal::Candidate& candidate : *candidates) {
      if (internal::WhyFiltered(candidate, strictest).empty()) {
        ++(candidate.notes.runtime_compiled ? count.compiled : count.brought);
      }
    }
  }
  return count;
}

/// The first form that has engines without a driver; failing that, the first that has any.
Result<Served> Ask(const cuda::GraphTarget& target, const conv::Task& task) {
  Served served;
  for (const conv::OperandForm& form : conv::FormsOf(task)) {
    const Result<cuda::OperationGraph> graph = conv::MakeGraph(target, form.inner);
    if (!graph.ok()) {
      return graph.status();
    }
    const Result<Engines> engines = CountEngines(target, *graph, task.problem.type);
    if (!engines.ok()) {
      return engines.status();
    }
    if (engines->brought > 0) {
      return Served{internal::InForm(form.name, "graph"), *engines};
    }
    if (engines->compiled > 0 && served.engines.compiled == 0) {
      served = {internal::InForm(form.name, "graph"), *engines};
    }
  }
  return served;
}

Result<Served> Ask(const cuda::GraphTarget& target, const cuda::OpTask& task) {
  const Result<batch_norm::StagedForm> form = batch_norm::GraphForm(task);
  if (!form.ok()) {
    return Served();
  }
  const Result<cuda::OperationGraph> graph = batch_norm::MakeGraph(target, *form);
  if (!graph.ok()) {
    return graph.status();
  }
  const Result<Engines> engines = CountEngines(target, *graph, batch_norm::XOf(task).type);
  if (!engines.ok()) {
    return engines.status();
  }
  return engines->brought + engines->compiled > 0 ? Served{"graph", *engines} : Served();
}

/// Whether cuDNN lists engines that it compiles at run time.
bool HasDriver() {
  static const bool has = cuda::DynamicLibrary::Open({"libcuda.so.1"}).ok();
  return has;
}

/// BatchNormFeature is what is special about a cell's batch normalization.
struct BatchNormFeature {
  const char* name = "";
  std::int64_t channels = 64;
  bool accumulate = false;
};

constexpr BatchNormFeature kBatchNormFeatures[] = {
    {.name = "plain"},
    {.name = "odd channels", .channels = 63},
    {.name = "accumulating", .accumulate = true},
};

/// The types of a row: T, T1, T2.
using Mix = std::array<DataType, 3>;

/// The types of the rows that ops.yaml has for an op on CUDA; none where it has no such op.
std::vector<std::span<const DataType>> TypesOf(std::string_view op) {
  std::vector<std::span<const DataType>> types;
  for (const std::span<const Row> rows : BuiltinTable()) {
    for (const Row& row : rows) {
      if (row.op->name == op && row.backend == Backend::kCuda) {
        types.push_back(row.types);
      }
    }
  }
  return types;
}

cuda::OpTask MakeTask(
    batch_norm::Activation activation,
    const Mix& mix,
    bool channels_last,
    int spatial_rank,
    const BatchNormFeature& feature) {
  using batch_norm::backward::Operand;
  Dims dims = {8, feature.channels};
  for (int i = 0; i < spatial_rank; ++i) {
    dims.push_back(16);
  }
  cuda::OpTask task;
  task.op = &batch_norm::OpOf(batch_norm::Direction::kBackward, activation);
  task.tensors.resize(batch_norm::backward::kOperands);
  if (activation != batch_norm::Activation::kNone) {
    task.tensors[Operand::kB] = TensorRef(mix[1], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kDY, Operand::kX, Operand::kDX}) {
    task.tensors[operand] =
        TensorRef(mix[0], nullptr, dims, batch_norm::DenseStrides(dims, channels_last));
  }
  for (const Operand operand : {Operand::kScale, Operand::kDScale, Operand::kDBias}) {
    task.tensors[operand] = TensorRef(mix[1], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kSavedMean, Operand::kSavedInvStd}) {
    task.tensors[operand] = TensorRef(mix[2], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kDX, Operand::kDScale, Operand::kDBias}) {
    task.tensors[operand].accumulate = feature.accumulate;
  }
  return task;
}

std::string Text(const Mix& mix) {
  return std::string(ToString(mix[0])) + "/" + std::string(ToString(mix[1])) + "/" +
         std::string(ToString(mix[2]));
}

void PrintRow(
    const std::string& primitive,
    const std::string& type,
    bool channels_last,
    int axes,
    const char* feature,
    const Served& served) {
  const std::string compiled = HasDriver() ? std::to_string(served.engines.compiled) : "-";
  std::printf(
      "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", primitive.c_str(), type.c_str(),
      channels_last ? "NHWC" : "NCHW", axes, feature, served.source.c_str(), served.engines.brought,
      compiled.c_str());
}

Status WriteConvolutions(const cuda::GraphTarget& target, conv::Primitive primitive) {
  for (const std::span<const DataType> row : TypesOf("Conv")) {
    const DataType type = row.front();
    for (const bool channels_last : {false, true}) {
      for (int axes = 1; axes <= conv::kMaxSpatialRank; ++axes) {
        for (const Feature& feature : kFeatures) {
          const Result<Served> served =
              Ask(target, MakeTask(primitive, type, channels_last, axes, feature));
          if (!served.ok()) {
            return served.status().WithPrefix(std::string(feature.name) + ": ");
          }
          PrintRow(
              std::string(ToString(primitive)), std::string(ToString(type)), channels_last, axes,
              feature.name, *served);
        }
      }
    }
  }
  return {};
}

Status WriteBatchNormalizations(
    const cuda::GraphTarget& target,
    batch_norm::Activation activation) {
  const char* const primitive = activation == batch_norm::Activation::kNone
                                    ? "batch-normalization-backward"
                                    : "batch-normalization-relu-backward";
  const char* const op = activation == batch_norm::Activation::kNone ? "BatchNormalizationGrad"
                                                                     : "BatchNormalizationReluGrad";
  for (const std::span<const DataType> types : TypesOf(op)) {
    const Mix mix = {types[0], types[1], types[2]};
    for (const bool channels_last : {false, true}) {
      for (int axes = 0; axes <= conv::kMaxSpatialRank; ++axes) {
        for (const BatchNormFeature& feature : kBatchNormFeatures) {
          const Result<Served> served =
              Ask(target, MakeTask(activation, mix, channels_last, axes, feature));
          if (!served.ok()) {
            return served.status().WithPrefix(std::string(feature.name) + ": ");
          }
          PrintRow(primitive, Text(mix), channels_last, axes, feature.name, *served);
        }
      }
    }
  }
  return {};
}

int Fail(const std::string& message) {
  std::cerr << "gradsmith-support: " << message << "\n";
  return 1;
}

/// Writes the rows of one primitive and type.
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
            << "primitive\ttype\tlayout\taxes\tfeature\tsource\tengines\tcompiled\n";
  for (const auto primitive :
       {conv::Primitive::kForward, conv::Primitive::kBackwardData,
        conv::Primitive::kBackwardFilter}) {
    if (Status status = WriteConvolutions(*target, primitive); !status.ok()) {
      return Fail(status.message());
    }
  }
  if (!HasDriver()) {
    return 0;
  }
  for (const auto activation : {batch_norm::Activation::kNone, batch_norm::Activation::kRelu}) {
    if (Status status = WriteBatchNormalizations(*target, activation); !status.ok()) {
      return Fail(status.message());
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
