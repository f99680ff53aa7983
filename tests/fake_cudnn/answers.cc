/// What the fake cuDNN says of itself, as the environment has it.

#include <cudnn_graph.h>

#include <cstdlib>
#include <cstring>

namespace {

const char* Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): tests of one thread
  return value == nullptr ? "" : value;
}

}  // namespace

size_t cudnnGetVersion() {
  return std::strtoul(Environment("FAKE_CUDNN_VERSION"), nullptr, 10);
}

const char* cudnnGetErrorString(cudnnStatus_t /*status*/) {
  return "FAKE_STATUS";
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  std::strncpy(message, Environment("FAKE_CUDNN_LAST_ERROR"), max_size);
}
