#ifndef GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_
#define GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What batch_norm/cuda/own.cc passes to the kernels of batch_norm/cuda/kernels/batch_norm.cu, by
/// value. Both compile this file: plain C++17.
namespace gradsmith::batch_norm::own {

/// Threads of a block, but where a thread or a block holds a channel.
constexpr int kThreads = 256;
/// Blocks that a multiprocessor is to hold at once.
constexpr int kResidentBlocks = 4;
/// Bytes that a thread loads at once where it can.
constexpr int kVectorBytes = 16;

/// Threads of a block where each has a channel to itself.
constexpr int kShortThreads = 64;
/// The finishing kernels' blocks: channels, and threads that share a channel's slices.
constexpr int kFinishChannels = 8;
constexpr int kFinishLanes = 64;

/// Numbers of a channel that maps need, in double: see Coefficient in batch_norm_finish.cuh.
constexpr int kAllCoefficients = 6;

/// Threads side by side, each with its columns, at most.
constexpr int kMaxWidth = 128;

/// Where all of a gradient is one launch, of blocks that are all resident: bytes of shared memory
/// that a block needs for the sums of its threads, of two kinds, and then for the coefficients of
/// its tile, four or with ReLU five for each column. Elements of 2 bytes are added up in 4.
template <int kElementBytes, bool kRelu>
constexpr int kResidentScratch =
    (kRelu ? 5 * kMaxWidth : 2 * kThreads) * kVectorBytes * (kElementBytes == 2 ? 2 : 1);
/// A step's dY and X of a block's threads.
constexpr int kResidentStep = 2 * kThreads * kVectorBytes;
/// Steps for which it has room beside that: a quarter of the 228 KiB of compute capability 9.0,
/// less what the system takes.
template <int kElementBytes, bool kRelu>
constexpr int kResidentSlots = (56 * 1024 - kResidentScratch<kElementBytes, kRelu>) / kResidentStep;

/// Where a block holds all elements of its channels in shared memory: its threads, how
/// many such blocks a multiprocessor is to hold at once, its channels at most, and bytes of
/// elements, of which two blocks' fit a multiprocessor of compute capability 8.0 or 9.0.
constexpr int kHeldThreads = 512;
constexpr int kHeldBlocks = 2;
constexpr int kMostHeldChannels = 32;
constexpr int kMostHeldBytes = 64 * 1024;

/// Rows longer than this are cut into pieces that are shared out.
constexpr std::int64_t kPieceElements = 4096;

/// The dims but the channels, those that lie one behind the other made one, filled up in front with
/// ones.
constexpr int kSampleDims = 4;
constexpr int kInner = kSampleDims - 1;

/// How blocks go through tensors (N, C, D...): along rows, what lies along the innermost of the
/// sample dims, where block (x, y) takes channel x and slice y of its rows; or along columns, where
/// it takes tile x of them and slice y of the steps. A step goes on along the sample dims and finds
/// in each tensor one element of each column: of neighbouring samples first, `run` of them, then of
/// neighbouring channels.
///
///   channels last              run 1, columns are the channels, steps the samples
///   the same, odd and dense    as many samples in a step as make it whole vectors
///   channels first             run divides a row, steps are the rows' parts
struct Walk {
  std::int64_t channels;
  std::int64_t samples;  ///< of a channel
  std::int64_t counts[kSampleDims];
  std::int64_t slices;
  /// Threads of a block side by side: along a row, or along columns.
  int width;

  std::int64_t pieces;  ///< of each row
  /// Whether elements of rows that are a vector in one tensor are one in all.
  bool vectors_alike;

  std::int64_t columns;
  std::int64_t run;
  std::int64_t steps;
  /// From a thread's step to its next: as many as a block has at once, where slices are parts of
  /// the steps, or as all slices have at once, where they are interleaved.
  std::int64_t ahead;
  std::int64_t tail;  ///< columns that are left after the last step
  /// Partial sums of a slice, of one kind: of each channel, or of each place where it is in the
  /// columns.
  std::int64_t places;

  /// Where three samples of X's channel 0 lie, of which the median is its pivot.
  std::int64_t pivots[3];
};

struct Operand {
  void* data;
  std::int64_t channel_stride;
  std::int64_t strides[kSampleDims];
  /// Along columns: from a thread's step to its next, and what is added where that is in the next
  /// row, of the next plane, of the next volume.
  std::int64_t ahead;
  std::int64_t to_next_row[kSampleDims - 1];
};

/// The large tensors; absent ones are not touched.
struct Operands {
  Operand dY;
  Operand X;
  Operand output;
  bool accumulate;  ///< the output is added to
};

/// The samples of a channel one by one, whatever walk is taken: for sums that are made anew.
struct SampleGrid {
  std::int64_t counts[kSampleDims];
  Operand dY;
  Operand X;
};

/// One number for each channel, of any type.
struct Parameter {
  void* data;
  std::int64_t stride;
  int type;  ///< as DataType
  bool present;
  bool accumulate;
};

/// What X is normalized with: sums of gradients are of X - mean, and ReLU's take all of it.
struct Normalization {
  Parameter mean;
  Parameter inv_std;
  Parameter scale;
  Parameter bias;
};

/// The element types, numbered as DataType numbers them.
constexpr int kFloat = 0;
constexpr int kDouble = 1;
constexpr int kHalf = 2;
constexpr int kBFloat16 = 3;

/// What the forward's finishing kernel turns the sums of a slice into.
struct ForwardFinish {
  Walk walk;
  SampleGrid grid;
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

/// How a block's threads share out its channels, whose samples lie along the last two of the sample
/// dims.
struct HeldWalk {
  int channels;  ///< a power of two; neighbouring threads have neighbouring channels
  int lanes;     ///< threads of each
  cuda::Divisor inner;
};

struct BackwardFinish {
  Walk walk;
  SampleGrid grid;
  int type;                     ///< of X
  bool products;                ///< the sums of dY * (X - mean) were made
  Normalization normalization;  ///< its bias is absent without ReLU
  Parameter dScale;
  Parameter dBias;
};

}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_ARGUMENTS_H_
