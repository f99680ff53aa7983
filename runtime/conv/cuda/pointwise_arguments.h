#ifndef GRADSMITH_CONV_CUDA_POINTWISE_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_POINTWISE_ARGUMENTS_H_

#include <cstdint>

/// What conv/cuda/pointwise.cc passes to the kernels of conv/cuda/kernels/conv_pointwise.cu, by
/// value. Both compile this file: plain C++17.
namespace gradsmith::conv::pointwise {

constexpr int kChunkBytes = 16;
constexpr int kElementBytes = 2;
constexpr int kVector = kChunkBytes / kElementBytes;
/// The warps that multiply for dX, and for dW: the same ones, or others at the same time.
constexpr int kWarps = 8;
/// The positions of a tile, which a block multiplies while it copies the next one.
constexpr int kPositions = 128;
constexpr int kStages = 2;

/// A kernel's room for channels, and how warps share the filter's gradient: `warps_of_x` of them
/// side by side along x's channels.
struct KernelConfig {
  int y_channels;
  int x_channels;
  int warps_of_x;
  /// Blocks that a multiprocessor has room for.
  int blocks;
  /// dX and dW have warps of their own.
  bool is_apart;
};

/// What each configuration has room for takes a warp up to 64 registers of sums.
constexpr int kConfigs = 4;
constexpr KernelConfig kConfigAt[kConfigs] = {
    {64, 64, 2, 2, false},
    {256, 64, 2, 1, true},
    {128, 128, 2, 1, false},
    {64, 256, 4, 1, false}};

constexpr int ThreadsOf(KernelConfig config) {
  return 32 * kWarps * (config.is_apart ? 2 : 1);
}

/// From one position's channels to the next one's in shared memory, in bytes: an odd number of
/// chunks, so that eight neighbours are in different banks.
constexpr int PitchOf(int channels) {
  return channels * kElementBytes + kChunkBytes;
}

constexpr int StageBytes(KernelConfig config) {
  return kPositions * (PitchOf(config.y_channels) + PitchOf(config.x_channels));
}

constexpr int SharedBytes(KernelConfig config) {
  return kStages * StageBytes(config) + config.y_channels * PitchOf(config.x_channels);
}

/// The channels of x whose products a warp sums for the filter's gradient.
constexpr int ColumnsOfWarp(KernelConfig config) {
  return config.x_channels / config.warps_of_x;
}

/// The warps along x's channels that have any: they take turns to sum dY's channels, and leave a
/// row of sums each.
constexpr int ActiveWarpsOfX(KernelConfig config, int x_channels) {
  return (x_channels + ColumnsOfWarp(config) - 1) / ColumnsOfWarp(config);
}

struct Arguments {
  std::int64_t positions;
  int y_channels;
  int x_channels;
  int active_warps_of_x;
};

}  // namespace gradsmith::conv::pointwise

#endif  // GRADSMITH_CONV_CUDA_POINTWISE_ARGUMENTS_H_
