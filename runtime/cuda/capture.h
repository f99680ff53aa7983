#ifndef GRADSMITH_CUDA_CAPTURE_H_
#define GRADSMITH_CUDA_CAPTURE_H_

#include <cuda.h>

#include "cuda/driver.h"

namespace gradsmith::cuda {

/// IsCapturing says whether a stream is being captured into a CUDA graph. The default stream cannot
/// be.
inline bool IsCapturing(CUstream stream) {
  if (stream == nullptr) {
    return false;
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Driver().cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/// StreamCapture is the CUDA graph that a stream is being captured into.
struct StreamCapture {
  /// A number that no other capture of the process has; 0 where the stream is not captured.
  cuuint64_t id = 0;
  /// Null where the stream is not captured, or where an error has spoilt the capture.
  CUgraph graph = nullptr;
};

/// CaptureOf returns what a stream is being captured into.
inline StreamCapture CaptureOf(CUstream stream) {
  StreamCapture capture;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
#if CUDA_VERSION >= 13000
  const CUresult result = Driver().cuStreamGetCaptureInfo(
      stream, &status, &capture.id, &capture.graph, nullptr, nullptr, nullptr);
#else
  const CUresult result = Driver().cuStreamGetCaptureInfo(
      stream, &status, &capture.id, &capture.graph, nullptr, nullptr);
#endif
  return result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? capture
                                                                             : StreamCapture();
}

/// RelaxedCapture lets this thread allocate and wait while some other stream is captured.
class RelaxedCapture {
 public:
  RelaxedCapture() { Driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  RelaxedCapture(RelaxedCapture&&) = delete;
  RelaxedCapture& operator=(RelaxedCapture&&) = delete;
  ~RelaxedCapture() { Driver().cuThreadExchangeStreamCaptureMode(&mode_); }

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CAPTURE_H_
