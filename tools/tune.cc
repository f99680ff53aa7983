#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/cpu_candidates.h"
#include "gradsmith/cache.h"
#include "gradsmith/context.h"
#include "gradsmith/device_buffer.h"
#include "gradsmith/kernel.h"
#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "problem_line.h"

namespace gradsmith::tools {

namespace {

constexpr const char* kUsage =
    R"(Choose the kernels of a list of problems ahead of time, and look after what was chosen.

    gradsmith-tune [options] FILE    tune the problems of FILE ("-": standard input)
    gradsmith-tune --show            list what is remembered
    gradsmith-tune --export FILE     write what is remembered to FILE
    gradsmith-tune --import FILE     remember what FILE holds as well
    gradsmith-tune --clear           forget all

Each line of FILE is an op, the name of one of its rows, the dims of its inputs, and attributes; # begins a comment:

    ConvGrad half X=128x64x56x56 W=64x64x3x3 pads=1,1,1,1 layout=NHWC accumulate=dW,dB

accumulate names the gradients that are added to what is there, as calls with Accumulating() do: their kernels are
chosen apart.

Options
    --device N           the CUDA device, 0 unless given
    --cpu                the CPU instead, where the library was built with oneDNN's kernels
    --threads N          of the CPU: one for each processor unless given
    --mode MODE          benchmark (the default: time all kernels), heuristic or default
    --budget SECONDS     per primitive: after that no further kernel is tried; 10 unless given
    --allow-tf32         float may be multiplied in TF32
    --allow-reduced-accuracy
                         kernels that are less exact than is promised may be taken where they are faster
    --exact-padding      only kernels of convolutions that never multiply padding
    --deterministic      only kernels that give the same bits each time
    --workspace BYTES    most workspace that a kernel may take
    --verbose            a line for each kernel that was tried: its time, or why it cannot be taken

The environment variable GRADSMITH_CACHE names the file that choices are kept in.
)";

struct Options {
  ContextOptions context;
  std::string file;
  std::string verb;
  std::string path;
  bool verbose = false;
};

int Fail(const std::string& message) {
  std::cerr << "gradsmith-tune: " << message << "\n";
  return 1;
}

/// Parses the whole of a text; false where it is no number of the type, or less than 0.
template <typename Number>
bool Parse(const std::string& text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end && *number >= 0;
}

/// Reads the arguments; false with a message in `*error`.
class ArgumentReader {
 public:
  ArgumentReader(int argc, char** argv) : arguments_(argv + 1, argv + argc) {}

  bool Read(Options* options, std::string* error) {
    options->context.device.backend = Backend::kCuda;
    options->context.search_mode = SearchMode::kBenchmark;
    for (position_ = 0; position_ < arguments_.size(); ++position_) {
      *error = ReadOne(options);
      if (!error->empty()) {
        return false;
      }
    }
    if (options->verb.empty() && options->file.empty()) {
      *error = "which file of problems? (--help says more)";
    }
    return error->empty();
  }

 private:
  std::string ReadOne(Options* options) {
    const std::string name = arguments_[position_];
    if (name == "--help" || name == "-h" || name == "--show" || name == "--clear") {
      options->verb = name;
      return "";
    }
    if (name == "--allow-tf32") {
      options->context.allow_tf32 = true;
      return "";
    }
    if (name == "--exact-padding") {
      options->context.exact_padding = true;
      return "";
    }
    if (name == "--allow-reduced-accuracy") {
      options->context.allow_reduced_accuracy = true;
      return "";
    }
    if (name == "--verbose") {
      options->verbose = true;
      return "";
    }
    if (name == "--cpu") {
      options->context.device.backend = Backend::kCpu;
      return "";
    }
    if (name == "--deterministic") {
      options->context.deterministic = true;
      return "";
    }
    if (!name.starts_with("--")) {
      if (!options->file.empty()) {
        return name + ": one file of problems at a time; there is " + options->file;
      }
      options->file = name;
      return "";
    }
    if (position_ + 1 == arguments_.size()) {
      return name + ": unknown, or without its value";
    }
    return ReadValue(name, arguments_[++position_], options);
  }

  static std::string
  ReadValue(const std::string& name, const std::string& value, Options* options) {
    if (name == "--export" || name == "--import") {
      options->verb = name;
      options->path = value;
      return "";
    }
    if (name == "--mode") {
      for (const SearchMode mode :
           {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
        if (value == ToString(mode)) {
          options->context.search_mode = mode;
          return "";
        }
      }
      return "--mode " + value + ": expected default, heuristic or benchmark";
    }
    if (name == "--device") {
      return Parse(value, &options->context.device.index) ? "" : Wrong(name, value, "an ordinal");
    }
    if (name == "--threads") {
      return Parse(value, &options->context.threads) ? "" : Wrong(name, value, "a number");
    }
    if (name == "--budget") {
      return Parse(value, &options->context.search_budget_seconds) ? ""
                                                                   : Wrong(name, value, "seconds");
    }
    if (name == "--workspace") {
      return Parse(value, &options->context.workspace_limit) ? "" : Wrong(name, value, "bytes");
    }
    return name + ": there is no such option (--help lists them)";
  }

  static std::string
  Wrong(const std::string& name, const std::string& value, const std::string& what) {
    return name + " " + value + ": expected " + what + ", 0 or more";
  }

  std::vector<std::string> arguments_;
  std::size_t position_ = 0;
};

void ShowProgress(const SearchProgress& progress) {
  std::fprintf(
      stderr, "\r  %3d/%d tried, %.1f s, best %.4f ms: %-60.60s", progress.tried,
      progress.candidates, progress.seconds, progress.best_milliseconds, progress.best.c_str());
}

/// As wide where nothing was measured.
std::string ErrorText(double error) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), error > 0 ? "error %.1e" : "             ", error);
  return text.data();
}

void ShowCandidate(const SearchProgress& progress) {
  if (progress.tried == 1) {
    std::printf("  %s\n", progress.problem.c_str());
  }
  std::printf(
      "  %7.3f s  %10.4f ms  %s  %s%s%s\n", progress.seconds, progress.milliseconds,
      ErrorText(progress.error).c_str(), progress.candidate.c_str(),
      progress.rejection.empty() ? "" : ": ", progress.rejection.c_str());
}

/// Memory for a problem's arguments.
class Arguments {
 public:
  Status Add(DataType type, const Dims& dims, bool channels_last, Device device) {
    const auto bytes = static_cast<std::size_t>(NumElements(dims)) * SizeOf(type);
    Result<DeviceBuffer> buffer = DeviceBuffer::Allocate(device, std::max<std::size_t>(bytes, 1));
    if (!buffer.ok()) {
      return buffer.status();
    }
    const Strides strides =
        channels_last && dims.size() > 2 ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    refs_.emplace_back(type, buffer->data(), dims, strides, device);
    buffers_.push_back(std::move(*buffer));
    return {};
  }
  /// An input that holds a shape, on the host.
  Status AddHeld(const Dims& held) {
    const Status status = Add(DataType::kInt64, Dims{held.size()}, false, Device{});
    if (status.ok()) {
      std::copy(held.begin(), held.end(), static_cast<std::int64_t*>(refs_.back().data));
    }
    return status;
  }
  void AddAbsent() { refs_.emplace_back(); }

  [[nodiscard]] const std::vector<TensorRef>& refs() const { return refs_; }

 private:
  std::vector<DeviceBuffer> buffers_;
  std::vector<TensorRef> refs_;
};

Status AddAll(
    const Row& row,
    const std::vector<const TensorSpec*>& specs,
    const std::vector<std::optional<Dims>>& dims,
    bool channels_last,
    Device device,
    Arguments* arguments) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::optional<Dims>& given = dims[i];
    if (!given) {
      arguments->AddAbsent();
      continue;
    }
    const TensorSpec& spec = *specs[i];
    const DataType type =
        spec.type_parameter < 0 ? spec.fixed_type : row.types[spec.type_parameter];
    Status status = spec.shape_of.empty() ? arguments->Add(type, *given, channels_last, device)
                                          : arguments->AddHeld(*given);
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

/// Problem is a line of the file, understood.
struct Problem {
  std::string place;
  std::string text;
  ProblemLine line;
  const Row* row = nullptr;
  Shapes shapes;
};

Result<Problem> ReadProblem(const Registry& registry, Backend backend, const std::string& text) {
  Result<ProblemLine> line = ParseProblemLine(registry, text);
  if (!line.ok()) {
    return line.status();
  }
  const Result<const Row*> row = FindRow(registry, *line, backend);
  if (!row.ok()) {
    return row.status();
  }
  Result<Shapes> shapes = InferShapes(registry, *line, **row);
  if (!shapes.ok()) {
    return shapes.status();
  }
  return Problem{"", text, std::move(*line), *row, std::move(*shapes)};
}

Status Tune(const Problem& problem, const Context& context) {
  const OpSchema& op = *problem.row->op;
  const int length = problem.shapes.list_length;
  Arguments inputs;
  Arguments outputs;
  Status status = AddAll(
      *problem.row, SpecsOf(op.inputs, length), problem.shapes.inputs, problem.line.channels_last,
      context.device(), &inputs);
  if (status.ok()) {
    status = AddAll(
        *problem.row, SpecsOf(op.outputs, length), problem.shapes.outputs,
        problem.line.channels_last, context.device(), &outputs);
  }
  const Result<Kernel> kernel = Kernel::Create(*problem.row, problem.line.attributes);
  if (!status.ok() || !kernel.ok()) {
    return status.ok() ? kernel.status() : status;
  }
  const std::vector<ConstTensorRef> const_inputs(inputs.refs().begin(), inputs.refs().end());
  std::vector<TensorRef> written = outputs.refs();
  SetOutputs(op, problem.line, length, written);
  return kernel->Prepare(
      context, std::span<const ConstTensorRef>(const_inputs), std::span<const TensorRef>(written));
}

/// Reads the problems; what is wrong with a line is printed and counted in `*failed`.
std::vector<Problem> ReadProblems(
    const Registry& registry,
    Backend backend,
    const std::string& name,
    std::istream& lines,
    int* failed) {
  std::vector<Problem> problems;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) {
      continue;
    }
    const std::string place = name + ":" + std::to_string(number) + ": ";
    Result<Problem> problem = ReadProblem(registry, backend, line);
    if (problem.ok()) {
      problem->place = place;
      problems.push_back(std::move(*problem));
    } else {
      *failed += Fail(place + problem.status().message());
    }
  }
  return problems;
}

Status CheckCanTune(Device device) {
  return device.backend == Backend::kCpu && !internal::CpuHasCandidates()
             ? Unsupported(
                   "on the CPU there is nothing to choose: this gradsmith was built without oneDNN "
                   "(CMake option GRADSMITH_ONEDNN)")
             : CheckDevice(device);
}

int TuneFile(const Options& options) {
  std::ifstream file;
  if (options.file != "-") {
    file.open(options.file);
    if (!file || std::filesystem::is_directory(options.file)) {
      return Fail("cannot read " + options.file);
    }
  }
  Registry registry;
  if (const Status status = RegisterAll(registry); !status.ok()) {
    return Fail(status.message());
  }
  // All lines are read before the first is tuned, which takes long and needs a GPU.
  int failed = 0;
  const std::vector<Problem> problems = ReadProblems(
      registry, options.context.device.backend, options.file, options.file == "-" ? std::cin : file,
      &failed);
  if (const Status status = CheckCanTune(options.context.device); !status.ok()) {
    return Fail(status.message());
  }
  ContextOptions context_options = options.context;
  bool is_line_open = false;
  context_options.on_search_progress = [&](const SearchProgress& progress) {
    if (options.verbose) {
      ShowCandidate(progress);
    } else {
      ShowProgress(progress);
      is_line_open = true;
    }
  };
  const Context context(context_options);
  for (const Problem& problem : problems) {
    std::cerr << problem.text << "\n";
    const Status status = Tune(problem, context);
    if (std::exchange(is_line_open, false)) {
      std::cerr << "\n";
    }
    failed += status.ok() ? 0 : Fail(problem.place + status.message());
  }
  return failed == 0 ? 0 : 1;
}

int Show() {
  std::cout << "# " << (CacheFile().empty() ? "no file" : CacheFile()) << "\n";
  for (const CachedChoice& choice : CachedChoices()) {
    std::printf(
        "%-10s %9.4f ms  %s %12zu bytes  %s  <-  %s\n", std::string(ToString(choice.mode)).c_str(),
        choice.milliseconds, ErrorText(choice.error).c_str(), choice.workspace,
        choice.kernel.c_str(), choice.problem.c_str());
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  std::string error;
  if (!ArgumentReader(argc, argv).Read(&options, &error)) {
    Fail(error);
    return 2;
  }
  if (options.verb == "--help" || options.verb == "-h") {
    std::cout << kUsage;
    return 0;
  }
  if (options.verb == "--show") {
    return Show();
  }
  Status status;
  if (options.verb == "--clear") {
    status = ClearCache();
  } else if (options.verb == "--export") {
    status = ExportCache(options.path);
  } else if (options.verb == "--import") {
    status = ImportCache(options.path);
  } else {
    return TuneFile(options);
  }
  return status.ok() ? 0 : Fail(status.message());
}

}  // namespace

}  // namespace gradsmith::tools

int main(int argc, char** argv) {
  try {
    return gradsmith::tools::Main(argc, argv);
  } catch (const std::exception& error) {
    return gradsmith::tools::Fail(error.what());
  }
}
