#include "gpu/legacy.h"

#include <array>

#include "cuda/cudnn.h"
#include "cuda/thread_state.h"

namespace gradsmith::bench {

using cuda::Cudnn;
using cuda::ToStatus;

cudnnHandle_t LegacyHandle(const Gpu& gpu) {
  cuda::CudnnHandle* handle = Take(cuda::ThreadState::OfThisThread(gpu.info()).handle());
  Require(handle->UseStream(gpu.stream()));
  return handle->raw();
}

LegacyTensor::LegacyTensor() {
  Require(ToStatus(
      Cudnn().cudnnCreateTensorDescriptor(descriptor_.place()), "making a tensor descriptor"));
}

LegacyTensor::LegacyTensor(DataType type, const Dims& dims, const Strides& strides)
    : LegacyTensor() {
  // The legacy API has four dims at least: a dim of one is put after the channels.
  std::array<int, kMaxRank + 1> sizes{};
  std::array<int, kMaxRank + 1> steps{};
  int count = 0;
  for (int i = 0; i < dims.size(); ++i) {
    while (i == 2 && count + dims.size() - i < 4) {
      sizes.at(count) = 1;
      steps.at(count++) = static_cast<int>(dims[2] * strides[2]);
    }
    sizes.at(count) = static_cast<int>(dims[i]);
    steps.at(count++) = static_cast<int>(strides[i]);
  }
  while (count < 4) {
    sizes.at(count) = 1;
    steps.at(count++) = 1;
  }
  Require(ToStatus(
      Cudnn().cudnnSetTensorNdDescriptor(
          descriptor_.raw(), cuda::ToCudnn(type), count, sizes.data(), steps.data()),
      "describing a tensor"));
}

}  // namespace gradsmith::bench
