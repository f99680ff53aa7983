/// What the emulated GPU's cuDNN does answer.

#include <cudnn_graph.h>

#include <cstdio>

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  std::snprintf(message, max_size, "cuDNN's kernels do not run on the emulated GPU");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static char here;
  *handle = reinterpret_cast<cudnnHandle_t>(&here);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t /*handle*/) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t /*handle*/, cudaStream_t /*stream*/) {
  return CUDNN_STATUS_SUCCESS;
}
