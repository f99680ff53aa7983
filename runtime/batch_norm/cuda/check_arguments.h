#ifndef GRADSMITH_BATCH_NORM_CUDA_CHECK_ARGUMENTS_H_
#define GRADSMITH_BATCH_NORM_CUDA_CHECK_ARGUMENTS_H_

#include <cstdint>

/// What batch_norm/cuda/check.cc passes to the kernels of
/// batch_norm/cuda/kernels/batch_norm_check.cu, by value. Both compile this file: plain C++17.
namespace gradsmith::batch_norm::check {

/// Threads of a block.
constexpr int kThreads = 512;
/// Blocks of the kernel that fills channels with data that hurts, at most: they go on to further
/// channels.
constexpr std::int64_t kMostHurtBlocks = 1 << 16;
/// Batch and three spatial axes.
constexpr int kSampleDims = 4;
/// Channels that are checked, at most.
constexpr std::int64_t kMaxChannels = 64;

/// Which elements: one block takes a channel and all its samples.
struct Samples {
  std::int64_t channels;
  std::int64_t checked;  ///< channels, spread over all, the first and the last among them
  std::int64_t count;    ///< of each channel
  std::int64_t dims[kSampleDims];
};

/// A tensor of the task; one number for each channel has zero strides along samples.
struct Tensor {
  const void* data;    ///< null where it is absent
  const void* before;  ///< what was there, where it was added to; null where it was not
  int type;            ///< as DataType
  std::int64_t channel_stride;
  std::int64_t strides[kSampleDims];
};

struct Forward {
  Samples samples;
  double epsilon;
  double momentum;
  bool relu;
  Tensor X;
  Tensor scale;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor Y;
  Tensor new_mean;
  Tensor new_var;
  Tensor saved_mean;
  Tensor saved_inv_std;
};

struct Backward {
  Samples samples;
  Tensor dY;
  Tensor X;
  Tensor scale;
  Tensor bias;  ///< absent without ReLU
  Tensor saved_mean;
  Tensor saved_inv_std;
  Tensor dX;
  Tensor dScale;
  Tensor dBias;
};

/// Kinds of data that hurt: a constant, a mean that is large beside its deviation, numbers near the
/// type's largest and near its smallest. A channel has one.
constexpr std::int64_t kHurtfulKinds = 4;

/// What is filled with such data; absent tensors are not.
struct Hurt {
  Samples samples;
  std::int64_t first;  ///< the kind of the first channel
  Tensor X;
  Tensor dY;
  Tensor saved_mean;
  Tensor saved_inv_std;
  Tensor bias;
};

}  // namespace gradsmith::batch_norm::check

#endif  // GRADSMITH_BATCH_NORM_CUDA_CHECK_ARGUMENTS_H_
