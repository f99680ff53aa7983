#include "onednn/library.h"

#include <fstream>
#include <string>

#include "core/cpu_candidates.h"
#include "core/problem_key.h"

namespace gradsmith::onednn {

namespace {

/// The processor's name as Linux tells it; empty where it does not, as on some architectures.
std::string ProcessorName() {
  constexpr const char* kField = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kField)) {
      return line.substr(line.find(':') + 1);
    }
  }
  return "";
}

/// The names of oneDNN's status codes that calls may come back with.
std::string Name(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "unimplemented";
    case dnnl_runtime_error:
      return "runtime error";
    default:
      return "status " + std::to_string(static_cast<int>(status));
  }
}

StatusCode CodeOf(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return StatusCode::kOutOfMemory;
    case dnnl_invalid_arguments:
    case dnnl_unimplemented:
      return StatusCode::kUnsupported;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

const dnnl::engine& Engine() {
  // Never destroyed: threads may still call while the program ends.
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::string Version() {
  const dnnl_version_t& version = *dnnl_version();
  return "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

std::int64_t Fingerprint() {
  static const auto fingerprint = [] {
    internal::ProblemKey key;
    key.AddText(ProcessorName());
    key.AddText(Version() + " " + dnnl_version()->hash);
    key.Add(static_cast<std::int64_t>(dnnl::get_effective_cpu_isa()));
    return static_cast<std::int64_t>(key.hash());
  }();
  return fingerprint;
}

Status StatusOf(const dnnl::error& error) {
  return {CodeOf(error.status), Version() + ": " + error.what() + " (" + Name(error.status) + ")"};
}

}  // namespace gradsmith::onednn

namespace gradsmith::internal {

bool CpuHasCandidates() {
  return true;
}

}  // namespace gradsmith::internal
