#ifndef GRADSMITH_CONV_CUDA_TENSOR_CORES_VARIANTS_H_
#define GRADSMITH_CONV_CUDA_TENSOR_CORES_VARIANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conv/cuda/tensor_cores_arguments.h"
#include "conv/cuda/tensor_cores_work.h"
#include "conv/task.h"
#include "cuda/device.h"

/// The variants in which kernels on tensor cores compute a task, and the grids that they are
/// launched with.
namespace gradsmith::conv::tensor_cores {

/// The names of each Math, in candidates' and kernels' names.
inline constexpr std::array<const char*, 5> kMathNames = {
    "float", "tf32", "double", "half", "bf16"};

/// The most slices of a filter's gradient.
inline constexpr std::int64_t kMostSlices = 256;

/// Variant is what a candidate's id says: a math and one of its tiles, whether taps share rows, and
/// how many slices there may be, where that is less than usual.
struct Variant {
  Math math = Math::kFloat;
  int place = 0;
  Tile tile = {};
  bool by_lines = false;
  std::int64_t most_slices = kMostSlices;

  [[nodiscard]] std::string Id() const;
};

/// ReadAs returns whether a text is the variant's id, but for the slices that it asks for: these
/// are put down.
bool ReadAs(std::string_view text, Variant* variant);

/// VariantsOf returns all variants of a task's type, by lines those of half and bf16 alone.
std::vector<Variant> VariantsOf(const Task& task, bool in_tf32);

/// ColumnTilesOf returns how many tiles a row of the filter's gradient has. By lines, columns come
/// in units.
int ColumnTilesOf(const FilterArguments& arguments, const Variant& variant);

/// Grid is a launch: for each group, and for each part of a correlation, `blocks`, and for the
/// filter's gradient slices of the positions.
struct Grid {
  std::int64_t blocks = 0;
  std::int64_t slices = 1;
  /// Rounds of blocks, a round of those that sum only a part of the terms counting less.
  double rounds = 0;
};

/// PositionsOfSlice returns how many positions one of so many slices has, in whole stages.
int PositionsOfSlice(const Task& task, const FilterArguments& arguments, std::int64_t slices);

/// GridOf has as many slices as keep the device busy, and few: their sums are added up afterwards.
/// `arguments` are all set but for slices.
Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const FilterArguments& arguments,
    const Variant& variant);

/// GridOf has the same of a correlation, which has no slices.
Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Correlation& correlation,
    Tile tile);

/// IsWhole returns whether the only slice's sums go straight to the gradient.
bool IsWhole(const Grid& grid, const Variant& variant);

/// SliceBytes returns how many bytes a slice's sums take: those of half and bf16 are in float.
std::size_t SliceBytes(const Task& task);

/// FilterWorkspace returns how many bytes the sums of all slices take.
std::size_t FilterWorkspace(const Task& task, const Grid& grid, const Variant& variant);

}  // namespace gradsmith::conv::tensor_cores

#endif  // GRADSMITH_CONV_CUDA_TENSOR_CORES_VARIANTS_H_
