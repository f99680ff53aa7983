#include "conv/cuda/depthwise_configs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace gradsmith::conv::depthwise {

namespace {

struct NamedFilter {
  const char* name;
  int side;
  int step;
};

constexpr std::array<NamedFilter, kConfigs> kFilters = {{
    {"3x3", 3, 1},
    {"5x5", 5, 1},
    {"7x7", 7, 1},
    {"2x2_by_2", 2, 2},
    {"3x3_by_2", 3, 2},
    {"4x4_by_2", 4, 2},
    {"5x5_by_2", 5, 2},
}};

/// The index of a configuration in kFilters, or -1.
int Find(std::int64_t side, std::int64_t step) {
  const auto* found = std::ranges::find_if(kFilters, [&](const NamedFilter& config) {
    return config.side == side && config.step == step;
  });
  return found == kFilters.end() ? -1 : static_cast<int>(found - kFilters.begin());
}

}  // namespace

std::optional<KernelConfig> ConfigOf(const Task& task) {
  const Problem& problem = task.problem;
  if (problem.spatial_rank != 2 || NumElements(DimsOf(problem, kX)) == 0 ||
      NumElements(DimsOf(problem, kY)) == 0) {
    return std::nullopt;
  }
  const Axis& first = problem.axes[0];
  const Axis& last = problem.axes[1];
  const int found = Find(last.w, last.stride);
  if (first.w != last.w || first.stride != last.stride || found < 0 || first.dilation != 1 ||
      last.dilation != 1) {
    return std::nullopt;
  }
  const NamedFilter& config = kFilters.at(found);
  return KernelConfig{
      .side = config.side,
      .step = config.step,
      .spreads = task.primitive == Primitive::kBackwardData && config.step == 2};
}

int IndexOf(const KernelConfig& config) {
  return Find(config.side, config.step);
}

std::string NameOf(const KernelConfig& config) {
  return kFilters.at(IndexOf(config)).name;
}

Origin OriginOf(const Task& task, const Axis& axis) {
  const auto side = static_cast<int>(axis.w);
  const int center = CenterOf(side);
  const int pad = static_cast<int>(axis.pad_begin);
  const bool is_data = task.primitive == Primitive::kBackwardData;
  if (is_data && axis.stride == 2) {
    // x[p] meets y[(p + pad - tap) / 2]: tiles begin where p + pad - center is even.
    const int ahead = pad - center;
    const int odd = ahead & 1;
    return {-odd, (ahead - odd) / 2};
  }
  return {0, is_data ? pad - (side - 1 - center) : center - pad};
}

bool HasDenseRows(const Problem& problem, Operand operand) {
  const int last = problem.spatial_rank + 1;
  return StridesOf(problem, operand)[last] == 1 || DimsOf(problem, operand)[last] == 1;
}

bool HasSmallPlanes(const Problem& problem, Operand operand) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 4;
  constexpr std::int64_t kMargin = 32;
  const Strides& strides = StridesOf(problem, operand);
  std::int64_t rows = kMargin;
  for (const Axis& axis : {problem.axes[0], problem.axes[1]}) {
    if (axis.x > kMost || axis.y > kMost || std::abs(axis.pad_begin) > kMost) {
      return false;
    }
  }
  rows += problem.axes[0].x + problem.axes[0].y + std::abs(problem.axes[0].pad_begin);
  return std::abs(strides[2]) <= kMost / rows;
}

}  // namespace gradsmith::conv::depthwise
