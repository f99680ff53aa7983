#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate.h"
#include "core/candidate_name.h"
#include "core/selection.h"
#include "cuda/cudnn.h"
#include "cuda/descriptor.h"
#include "cuda/dynamic_library.h"
#include "cuda/graph.h"
#include "cuda/support_cells.h"
#include "gradsmith/ops.h"
#include "gradsmith/schema.h"
#include "support_families.h"

#define GRADSMITH_DECLARE(family)                                  \
  namespace gradsmith::family {                                    \
  cuda::SupportQuestions AskedOfCudnn(cuda::TypesOnCuda types_of); \
  }
#define GRADSMITH_ASK(family) family::AskedOfCudnn(&TypesOf),

GRADSMITH_FAMILIES(GRADSMITH_DECLARE)

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

Engines that cuDNN compiles at run time are listed only where libcuda.so.1 is found: a link of that name to the CUDA
Toolkit's lib64/stubs/libcuda.so is enough. Elsewhere the table has - for their number, and no primitive that has no
others, as batch normalization.

The description of an H200 is tests/data/h200_deviceprop.json.
)";

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
Result<Served> Ask(const cuda::GraphTarget& target, const cuda::SupportCell& cell) {
  Served served;
  for (const cuda::SupportForm& form : cell.forms) {
    const Result<cuda::OperationGraph> graph = form.make_graph(target);
    if (!graph.ok()) {
      return graph.status();
    }
    const Result<Engines> engines = CountEngines(target, *graph, cell.type);
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

/// Whether cuDNN lists engines that it compiles at run time.
bool HasDriver() {
  static const bool has = cuda::DynamicLibrary::Open({"libcuda.so.1"}).ok();
  return has;
}

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

void PrintRow(const cuda::SupportCell& cell, const Served& served) {
  const std::string compiled = HasDriver() ? std::to_string(served.engines.compiled) : "-";
  std::printf(
      "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", cell.primitive.c_str(), cell.types.c_str(),
      cell.channels_last ? "NHWC" : "NCHW", cell.axes, cell.feature.c_str(), served.source.c_str(),
      served.engines.brought, compiled.c_str());
}

/// Writes the rows of a family.
Status WriteRows(const cuda::GraphTarget& target, const cuda::SupportQuestions& asked) {
  if (asked.needs_driver && !HasDriver()) {
    return {};
  }
  for (const cuda::SupportCell& cell : asked.cells) {
    const Result<Served> served = Ask(target, cell);
    if (!served.ok()) {
      return served.status().WithPrefix(cell.primitive + ", " + cell.feature + ": ");
    }
    PrintRow(cell, *served);
  }
  return {};
}

int Fail(const std::string& message) {
  std::cerr << "gradsmith-support: " << message << "\n";
  return 1;
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
            << "primitive\ttype\tlayout\taxes\tfeature\tsource\tengines\tcompiled\n";
  for (const cuda::SupportQuestions& asked : {GRADSMITH_FAMILIES(GRADSMITH_ASK)}) {
    if (Status status = WriteRows(*target, asked); !status.ok()) {
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
