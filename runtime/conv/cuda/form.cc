#include "conv/cuda/form.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/depthwise.h"
#include "conv/cuda/depthwise_bands.h"
#include "conv/cuda/few_channels.h"
#include "conv/cuda/parts.h"
#include "conv/cuda/preference.h"
#include "conv/cuda/window_problem.h"

namespace gradsmith::conv {

namespace {

constexpr int kVector = 16;

bool HasZeroStride(const Dims& dims, const Strides& strides) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) {
      return true;
    }
  }
  return false;
}

enum class Layout : unsigned char { kChannelsFirst, kChannelsLast };

Strides StridesIn(const Dims& dims, Layout layout) {
  return layout == Layout::kChannelsLast ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
}

/// Channels last where positions of the last axis are further apart than channels.
Strides DenseStrides(const Dims& dims, const Strides& strides) {
  const bool channels_last = strides[1] < strides[dims.size() - 1];
  return channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
}

/// Whether elements lie as the other strides have it: dims of size 1 may have any stride.
bool LieAlike(const Dims& dims, const Strides& a, const Strides& b) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && a[i] != b[i]) {
      return false;
    }
  }
  return true;
}

bool LiesIn(const Task& task, Operand operand, Layout layout) {
  const Dims dims = DimsOf(task.problem, operand);
  return LieAlike(dims, StridesOf(task.problem, operand), StridesIn(dims, layout));
}

/// The task with the strides that engines recognise a layout by. What lies in both, as a filter of
/// 1x1, goes with the others: an engine would convert all to one layout. But a filter of one
/// channel, a depthwise one, is channels first, for which cuDNN has more engines.
Task Normalized(const Task& task) {
  bool any_last = false;
  for (const Operand operand : {kX, kW, kY}) {
    any_last = any_last || (LiesIn(task, operand, Layout::kChannelsLast) &&
                            !LiesIn(task, operand, Layout::kChannelsFirst));
  }
  Task normalized = task;
  for (const Operand operand : {kX, kW, kY}) {
    const bool last_first = any_last && (operand != kW || DimsOf(task.problem, kW)[1] > 1);
    const Layout better = last_first ? Layout::kChannelsLast : Layout::kChannelsFirst;
    const Layout other = last_first ? Layout::kChannelsFirst : Layout::kChannelsLast;
    for (const Layout layout : {other, better}) {
      if (LiesIn(task, operand, layout)) {
        StridesOf(normalized.problem, operand) = StridesIn(DimsOf(task.problem, operand), layout);
      }
    }
  }
  return normalized;
}

/// Engines that take a declared alignment have read past it, which ends the whole CUDA context.
bool MustBeCopied(const Task& task, Operand operand) {
  return HasZeroStride(DimsOf(task.problem, operand), StridesOf(task.problem, operand)) ||
         task.alignment.at(operand) < kVector;
}

/// Has the form see a dense copy of an operand.
void Copy(Operand operand, const Strides& strides, OperandForm* form) {
  form->copied.at(operand) = true;
  form->inner.alignment.at(operand) = kVector;
  StridesOf(form->inner.problem, operand) = strides;
}

/// The form with copies of what is odd; `needed` tells whether there is no way without.
OperandForm Packed(const Task& task, bool* needed) {
  OperandForm form{.name = "packed", .inner = task};
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    const Strides& strides = StridesOf(task.problem, operand);
    const bool refused = MustBeCopied(task, operand);
    *needed = *needed || refused;
    if (refused || !IsDense(dims, strides)) {
      Copy(operand, DenseStrides(dims, strides), &form);
    }
  }
  return form;
}

bool CopiesAny(const OperandForm& form) {
  return form.copied != std::array<bool, kOperands>{};
}

/// The form in which all operands have a layout, and their channels are a multiple of `multiple`.
OperandForm Rearranged(const Task& task, std::string name, Layout layout, std::int64_t multiple) {
  OperandForm form{.name = std::move(name), .inner = task, .is_detour = true};
  Problem& problem = form.inner.problem;
  const auto pad = [multiple](std::int64_t channels) {
    return (channels + multiple - 1) / multiple * multiple;
  };
  problem.x_channels = pad(problem.x_channels);
  problem.y_channels = pad(problem.y_channels);
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(problem, operand);
    const Strides strides = StridesIn(dims, layout);
    if (MustBeCopied(task, operand) || dims != DimsOf(task.problem, operand) ||
        !LieAlike(dims, strides, StridesOf(task.problem, operand))) {
      Copy(operand, strides, &form);
    } else {
      StridesOf(problem, operand) = strides;
    }
  }
  return form;
}

/// Every position of x that is read is read by one tap; there are others.
bool CanBeSubsampled(const Problem& problem) {
  bool strided = false;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes.at(i);
    if (axis.w != 1 || axis.pad_begin != 0 || (axis.y - 1) * axis.stride >= axis.x) {
      return false;
    }
    strided = strided || axis.stride > 1;
  }
  return strided;
}

OperandForm Subsampled(const Task& task) {
  OperandForm form{.name = "subsampled", .inner = task, .subsampled = true, .is_detour = true};
  Problem& problem = form.inner.problem;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    Axis& axis = problem.axes.at(i);
    axis.x = axis.y;
    axis.stride = 1;
    axis.pad_end = 0;
  }
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(problem, operand);
    if (operand == kX || MustBeCopied(task, operand)) {
      Copy(operand, DenseStrides(dims, StridesOf(task.problem, operand)), &form);
    }
  }
  return form;
}

/// How much more padding an axis has at its beginning than at its end; less where it is negative.
std::int64_t PaddingAhead(const Axis& axis) {
  return axis.pad_begin - axis.pad_end;
}

bool HasUnlikeEnds(const Problem& problem) {
  return std::any_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank,
      [](const Axis& axis) { return PaddingAhead(axis) != 0; });
}

/// Returns nothing where the wider x would have more elements than a tensor may have.
std::optional<OperandForm> Bordered(const Task& task) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 59;
  Task inner = task;
  for (int i = 0; i < task.problem.spatial_rank; ++i) {
    Axis& axis = inner.problem.axes.at(i);
    axis.x += std::abs(PaddingAhead(axis));
    axis.pad_begin = axis.pad_end = std::min(axis.pad_begin, axis.pad_end);
  }
  const std::int64_t elements = NumElements(DimsOf(inner.problem, kX));
  if (elements < 0 || elements > kMostElements) {
    return std::nullopt;
  }
  const bool channels_last = SizeOf(task.problem.type) == 2 || AreChannelsLast(task.problem);
  OperandForm form = Rearranged(
      inner, "bordered", channels_last ? Layout::kChannelsLast : Layout::kChannelsFirst, 1);
  form.bordered = true;
  Copy(kX, StridesOf(form.inner.problem, kX), &form);
  return form;
}

/// Multiples of channels worth trying; none where tensor cores do not ask for any.
std::vector<std::int64_t> PaddedMultiples(const Problem& problem) {
  const std::int64_t fewest = std::min(problem.x_channels, problem.y_channels);
  const bool is_narrow = SizeOf(problem.type) == 2;
  const std::int64_t wanted = 16 / static_cast<std::int64_t>(SizeOf(problem.type));
  const bool pads =
      problem.group == 1 && (problem.x_channels % wanted != 0 || problem.y_channels % wanted != 0);
  if (!pads) {
    return {};
  }
  // For images there are engines that take four channels.
  return is_narrow && fewest < 4 ? std::vector<std::int64_t>{4, 8}
                                 : std::vector<std::int64_t>{wanted};
}

OperandForm Padded(const Task& task, std::int64_t multiple) {
  return Rearranged(task, "padded" + std::to_string(multiple), Layout::kChannelsLast, multiple);
}

/// The product of the patches of x, which are copied, with channels last.
std::optional<OperandForm> Patches(const Task& task) {
  const std::optional<Problem> product =
      TapsOf(task.problem) > 1 ? PatchProduct(task.problem) : std::nullopt;
  if (!product) {
    return std::nullopt;
  }
  Task inner = task;
  inner.problem = *product;
  const std::vector<std::int64_t> multiples = PaddedMultiples(*product);
  OperandForm form =
      Rearranged(inner, "patches", Layout::kChannelsLast, multiples.empty() ? 1 : multiples.back());
  Copy(kX, form.inner.problem.x_strides, &form);
  form.patches = PlanPatchMatrix(task, *product, form.inner.problem.x_channels);
  return form.patches ? std::optional(std::move(form)) : std::nullopt;
}

/// Of a depthwise task with several filters for each channel of x. Returns nothing where the copy
/// of x would have more elements than engines count.
std::optional<OperandForm> Repeated(const Task& task, std::string name, Layout layout) {
  Task inner = task;
  inner.problem.x_channels = inner.problem.group = task.problem.y_channels;
  inner.accumulate = task.accumulate && task.primitive != Primitive::kBackwardData;
  OperandForm form = Rearranged(inner, std::move(name), layout, 1);
  Problem& problem = form.inner.problem;
  Copy(kX, StridesIn(DimsOf(problem, kX), layout), &form);
  // A filter of one channel lies in both layouts.
  problem.w_strides = ContiguousStrides(DimsOf(problem, kW));
  form.repeats = task.problem.y_channels / task.problem.x_channels;
  return CanBeCounted(problem) ? std::optional(std::move(form)) : std::nullopt;
}

/// The gradient of x of a depthwise task with several filters for each channel: their planes are
/// added up as those of a volume are. Position 0 of x meets tap t of the new axis in y's plane
/// `filters - 1 - t`, so the filter is turned around.
OperandForm Stacked(const Task& task) {
  OperandForm form{.name = "stacked", .inner = task, .is_detour = true, .is_for_own = true};
  Problem& problem = form.inner.problem;
  const std::int64_t filters = task.problem.y_channels / task.problem.x_channels;
  problem.y_channels = problem.x_channels;
  std::ranges::copy_backward(
      task.problem.axes.begin(), task.problem.axes.begin() + problem.spatial_rank,
      problem.axes.begin() + problem.spatial_rank + 1);
  problem.axes[0] = {
      .x = 1, .w = filters, .y = filters, .pad_begin = filters - 1, .pad_end = filters - 1};
  ++problem.spatial_rank;
  form.stacked = filters;
  for (const Operand operand : {kX, kW, kY}) {
    const Strides strides = ContiguousStrides(DimsOf(problem, operand));
    if (operand == kW || MustBeCopied(task, operand) ||
        !LiesIn(task, operand, Layout::kChannelsFirst)) {
      Copy(operand, strides, &form);
    } else {
      StridesOf(problem, operand) = strides;
    }
  }
  return form;
}

/// Whether our own kernels that are the quickest where rows are dense may take a depthwise task.
bool MayGoByDenseRows(const Task& task) {
  return DepthwiseFitsByRows(task) || DepthwiseLinesOf(task) || MayFitDepthwiseBands(task);
}

/// Those of a depthwise task with several filters for each channel of x.
std::vector<OperandForm> DetoursOfSeveralFilters(const Task& task) {
  const bool are_last = AreChannelsLast(task.problem);
  const bool is_data = task.primitive == Primitive::kBackwardData;
  std::vector<OperandForm> forms;
  if (is_data && task.problem.spatial_rank < kMaxSpatialRank) {
    forms.push_back(Stacked(task));
  }
  if (is_data && SizeOf(task.problem.type) == 2) {
    return forms;  // what is rounded before it is added up is rounded twice
  }
  const Layout layout = are_last ? Layout::kChannelsLast : Layout::kChannelsFirst;
  if (std::optional<OperandForm> form = Repeated(task, "repeated", layout)) {
    forms.push_back(std::move(*form));
  }
  std::optional<OperandForm> first =
      are_last ? Repeated(task, "repeated-nchw", Layout::kChannelsFirst) : std::nullopt;
  if (first && MayGoByDenseRows(first->inner)) {
    first->is_for_own = true;
    forms.push_back(std::move(*first));
  }
  return forms;
}

/// Those of a task in which each channel of x is a group.
std::vector<OperandForm> DepthwiseDetours(const Task& task) {
  if (task.problem.y_channels > task.problem.x_channels) {
    return DetoursOfSeveralFilters(task);
  }
  OperandForm first = Rearranged(task, "nchw", Layout::kChannelsFirst, 1);
  first.is_for_own = true;
  if (CopiesAny(first) && AreChannelsLast(task.problem) && MayGoByDenseRows(first.inner)) {
    return {std::move(first)};
  }
  return {};
}

/// Ways about, which cost copies.
std::vector<OperandForm> Detours(const Task& task) {
  const Problem& problem = task.problem;
  if (HasGroupOfEachChannel(problem)) {
    return DepthwiseDetours(task);
  }
  std::vector<OperandForm> forms;
  if (CanBeSubsampled(problem)) {
    forms.push_back(Subsampled(task));
  }
  if (std::optional<OperandForm> bordered =
          HasUnlikeEnds(problem) ? Bordered(task) : std::nullopt) {
    forms.push_back(std::move(*bordered));
  }
  const std::vector<std::int64_t> multiples = PaddedMultiples(problem);
  for (const std::int64_t multiple : multiples) {
    forms.push_back(Padded(task, multiple));
  }
  // Of what takes channels as they are where others ask for more, these alone may be quick.
  OperandForm last = Rearranged(task, "nhwc", Layout::kChannelsLast, 1);
  last.is_for_own = !multiples.empty();
  if (!last.is_for_own || window::MayFit(last.inner) || MayBeFewChannels(last.inner)) {
    forms.push_back(std::move(last));
  }
  if (std::optional<OperandForm> patches = Patches(task)) {
    forms.push_back(std::move(*patches));
  }
  if (SizeOf(problem.type) > 2) {
    forms.push_back(Rearranged(task, "nchw", Layout::kChannelsFirst, 1));
  }
  std::erase_if(forms, [](const OperandForm& form) { return !CopiesAny(form); });
  return forms;
}

/// The detour that is likely to be the quickest way.
std::optional<OperandForm> LikelyDetour(const Task& task) {
  if (PatchesPay(task.problem)) {
    if (std::optional<OperandForm> patches = Patches(task)) {
      return patches;
    }
  }
  const std::vector<std::int64_t> multiples = PaddedMultiples(task.problem);
  if (!multiples.empty()) {
    return PaddingPays(task.problem) ? std::optional(Padded(task, multiples.front()))
                                     : std::nullopt;
  }
  if (CanBeSubsampled(task.problem) && SubsamplingPays(task)) {
    return Subsampled(task);
  }
  if (ChannelsLastPays(task)) {
    return Rearranged(task, "nhwc", Layout::kChannelsLast, 1);
  }
  return std::nullopt;
}

}  // namespace

std::vector<OperandForm> FormsOf(const Task& task) {
  const Task normalized = Normalized(task);
  bool needed = false;
  OperandForm packed = Packed(normalized, &needed);
  std::vector<OperandForm> forms;
  if (std::optional<OperandForm> likely = LikelyDetour(normalized)) {
    forms.push_back(std::move(*likely));
  }
  if (!needed) {
    forms.push_back({.name = "", .inner = normalized});
  }
  if (CopiesAny(packed)) {
    forms.push_back(std::move(packed));
  }
  for (OperandForm& form : Detours(normalized)) {
    const bool is_new = std::none_of(forms.begin(), forms.end(), [&](const OperandForm& other) {
      return other.inner.problem == form.inner.problem;
    });
    if (is_new) {
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

}  // namespace gradsmith::conv
