#include "cuda/cudnn.h"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/dynamic_library.h"

namespace gradsmith::cuda {

namespace {

constexpr int kOldestCudnn = 90000;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, at loading
  return value == nullptr ? "" : value;
}

Status FindFunctions(const DynamicLibrary& library, CudnnApi* api) {
#define GRADSMITH_FIND(name)                                           \
  if (Status status = library.Find(#name, &api->name); !status.ok()) { \
    return status;                                                     \
  }
  GRADSMITH_CUDNN_FUNCTIONS(GRADSMITH_FIND)
#undef GRADSMITH_FIND
  return {};
}

Result<CudnnLibrary> Load() {
  Result<DynamicLibrary> library = DynamicLibrary::Open(CudnnCandidates());
  if (!library.ok()) {
    return library.status().WithPrefix("there is no cuDNN 9: ");
  }
  CudnnLibrary cudnn;
  cudnn.path = library->path();
  if (Status status = FindFunctions(*library, &cudnn.api); !status.ok()) {
    return status.WithPrefix("cuDNN is not usable: ");
  }
  cudnn.version = static_cast<int>(cudnn.api.cudnnGetVersion());
  if (cudnn.version < kOldestCudnn) {
    return Unsupported(
        cudnn.path + " is version " + std::to_string(cudnn.version) + "; expected 9.0 or later");
  }
  return cudnn;
}

std::string VersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::vector<std::string> CudnnCandidates() {
  if (std::string given = Environment("GRADSMITH_CUDNN_LIBRARY"); !given.empty()) {
    return {given};
  }
  std::vector<std::string> candidates = {"libcudnn.so.9"};
  for (const std::string& toolkit : {Environment("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (!toolkit.empty()) {
      candidates.push_back(toolkit + "/lib64/libcudnn.so.9");
    }
  }
  // Pip's is in no place that the loader knows.
  if (constexpr std::string_view last = GRADSMITH_CUDNN_LAST; !last.empty()) {
    candidates.emplace_back(last);
  }
  return candidates;
}

const Result<CudnnLibrary>& LoadCudnn() {
  static const auto& cudnn = *new Result<CudnnLibrary>(Load());
  return cudnn;
}

const CudnnApi& Cudnn() {
  static const CudnnApi& api = LoadCudnn().value().api;
  return api;
}

std::string CudnnVersionText() {
  const Result<CudnnLibrary>& cudnn = LoadCudnn();
  return cudnn.ok() ? "cuDNN " + VersionText(cudnn->version) + " (" + cudnn->path + ")"
                    : cudnn.status().message();
}

Status ToStatus(cudnnStatus_t result, std::string_view doing) {
  if (result == CUDNN_STATUS_SUCCESS) {
    return {};
  }
  std::array<char, 1024> last{};
  Cudnn().cudnnGetLastErrorString(last.data(), last.size());
  const std::string message = std::string(doing) + ": " + Cudnn().cudnnGetErrorString(result) +
                              (last[0] == '\0' ? "" : " (" + std::string(last.data()) + ")");
  switch (result / 1000) {
    case CUDNN_STATUS_BAD_PARAM / 1000:
    case CUDNN_STATUS_NOT_SUPPORTED / 1000:
      return Unsupported(message);
    default:
      return result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                     result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                 ? OutOfMemory(message)
                 : Internal(message);
  }
}

cudnnDataType_t ToCudnn(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return CUDNN_DATA_FLOAT;
    case DataType::kDouble:
      return CUDNN_DATA_DOUBLE;
    case DataType::kMLFloat16:
      return CUDNN_DATA_HALF;
    case DataType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

}  // namespace gradsmith::cuda
