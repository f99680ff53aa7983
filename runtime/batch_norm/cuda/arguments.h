#ifndef GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_
#define GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_

#include <cstdint>

/// What batch_norm/cuda/own.cc passes to the kernels of cuda/kernels/batch_norm.cu, by value. Both
/// compile this file: plain C++17.
namespace gradsmith::batch_norm::own {

constexpr int kThreads = 256;
/// Bytes that a thread loads at once where it can.
constexpr int kVectorBytes = 16;

/// The finishing kernels' blocks: channels, and threads that share a channel's slices.
constexpr int kFinishChannels = 32;
constexpr int kFinishLanes = 16;

/// Rows longer than this are cut into pieces that are shared out.
constexpr std::int64_t kPieceElements = 4096;

/// The dims but the channels, those that lie one behind the other made one, filled up in front with
/// ones.
constexpr int kSampleDims = 4;
constexpr int kInner = kSampleDims - 1;

/// How blocks go through tensors (N, C, D...): block (x, y) takes channel, or tile of channels, x,
/// and slice y of its samples. A row is what goes along the innermost of the sample dims.
struct Walk {
  std::int64_t channels;
  std::int64_t samples;
  std::int64_t counts[kSampleDims];
  std::int64_t pieces;  ///< of each row
  std::int64_t slices;
  /// Threads of a block side by side, a power of two: along a row, or along channels.
  int width;
};

struct Operand {
  void* data;
  std::int64_t channel_stride;
  std::int64_t strides[kSampleDims];
};

/// The large tensors; absent ones are not touched.
struct Operands {
  Operand dY;
  Operand X;
  Operand output;
  bool accumulate;  ///< the output is added to
};

/// One number for each channel, of any type.
struct Parameter {
  void* data;
  std::int64_t stride;
  int type;  ///< as DataType
  bool present;
  bool accumulate;
};

/// As DataType.
constexpr int kFloat = 0;
constexpr int kDouble = 1;
constexpr int kHalf = 2;
constexpr int kBFloat16 = 3;

/// What the forward's finishing kernel turns the sums of a slice into.
struct ForwardFinish {
  Walk walk;
  Operand X;
  int type;  ///< of X
  double epsilon;
  double momentum;
  Parameter scale;
  Parameter bias;
  Parameter running_mean;
  Parameter running_var;
  Parameter new_running_mean;
  Parameter new_running_var;
  Parameter saved_mean;
  Parameter saved_inv_std;
};

struct BackwardFinish {
  Walk walk;
  int type;       ///< of X
  bool products;  ///< the sums of dY * (X - mean) were made
  Parameter scale;
  Parameter saved_mean;
  Parameter saved_inv_std;
  Parameter dScale;
  Parameter dBias;
};

}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_
