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
