#include "cuda/bad_engines.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/warning.h"
#include "cuda/cudnn.h"

namespace gradsmith::cuda {

namespace {

struct BadEngine {
  std::string operation;
  std::string engine;
  std::string spatial_rank;
  int first_version = 0;
  int last_version = 0;
};

/// Reported by others: wrong results of three-axis engines (pytorch issue 163539 and its fix).
const std::vector<BadEngine>& BuiltIn() {
  static const auto& list = *new std::vector<BadEngine>{
      {"forward", "graph/23", "3", 90800, 91599},
      {"forward", "graph/5", "*", 92301, 92499},
      {"backward-data", "graph/23", "3", 90000, 99999},
  };
  return list;
}

std::vector<BadEngine> ReadFile(const std::string& path) {
  std::vector<BadEngine> list;
  std::ifstream file(path);
  if (!file) {
    internal::Warn("GRADSMITH_BAD_ENGINES: cannot read " + path);
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream fields(line);
    BadEngine bad;
    if (!(fields >> bad.operation)) {
      continue;
    }
    if (fields >> bad.engine >> bad.spatial_rank >> bad.first_version >> bad.last_version) {
      list.push_back(bad);
    } else {
      internal::Warn(
          path + ":" + std::to_string(number) +
          ": expected <operation> <source>/<engine> <rank or *> <first version> <last version>");
    }
  }
  return list;
}

const std::vector<BadEngine>& OfUser() {
  static const auto& list = *new std::vector<BadEngine>([] {
    const char* path = std::getenv("GRADSMITH_BAD_ENGINES");  // NOLINT(concurrency-mt-unsafe)
    return path == nullptr ? std::vector<BadEngine>() : ReadFile(path);
  }());
  return list;
}

bool Holds(
    const std::vector<BadEngine>& list,
    const std::string& operation,
    const std::string& engine,
    const std::string& spatial_rank) {
  const int version = LoadCudnn()->version;
  return std::any_of(list.begin(), list.end(), [&](const BadEngine& bad) {
    return bad.operation == operation && bad.engine == engine &&
           (bad.spatial_rank == "*" || bad.spatial_rank == spatial_rank) &&
           version >= bad.first_version && version <= bad.last_version;
  });
}

}  // namespace

bool IsKnownBad(const std::string& operation, const std::string& engine, int spatial_rank) {
  const std::string rank = std::to_string(spatial_rank);
  return Holds(BuiltIn(), operation, engine, rank) || Holds(OfUser(), operation, engine, rank);
}

Status
CheckEngine(const std::string& operation, const internal::KernelName& kernel, int spatial_rank) {
  return IsKnownBad(operation, kernel.Engine(), spatial_rank)
             ? Unsupported("'" + kernel.Kernel() + "' is known to be bad in " + CudnnVersionText())
             : Status();
}

}  // namespace gradsmith::cuda
