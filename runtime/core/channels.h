#ifndef GRADSMITH_CORE_CHANNELS_H_
#define GRADSMITH_CORE_CHANNELS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "core/element.h"
#include "core/grid.h"
#include "core/parallel.h"
#include "core/tiles.h"
#include "gradsmith/tensor.h"

/// Loops over tensors (N, C, D...) channel by channel, for sums over all but the channels and for
/// maps whose parameters are per channel. All is computed in double. How the work is cut depends on
/// the dims and strides alone.
namespace gradsmith::internal {

/// ChannelWalk goes through kCount tensors of the same dims together, in the order in which their
/// memory lies.
template <int kCount>
class ChannelWalk {
 public:
  using PerTensor = std::array<std::int64_t, kCount>;

  /// Stretch is elements of all tensors, `strides` apart: of one channel, or of consecutive
  /// channels.
  struct Stretch {
    std::int64_t channel;
    PerTensor offsets;
    PerTensor strides;
    std::int64_t count;

    [[nodiscard]] bool IsDense() const {
      return std::ranges::all_of(strides, [](std::int64_t stride) { return stride == 1; });
    }
  };

  explicit ChannelWalk(const std::array<ConstTensorRef, kCount>& tensors)
      : channels_(tensors[0].dims[1]) {
    for (int k = 0; k < kCount; ++k) {
      const ConstTensorRef& tensor = tensors[k];
      Grid& grid = samples_[k];
      grid.counts[0] = tensor.dims[0];
      grid.strides[0] = tensor.strides[0];
      for (int i = 2; i < tensor.rank(); ++i) {
        grid.counts[i - 1] = tensor.dims[i];
        grid.strides[i - 1] = tensor.strides[i];
      }
      channel_strides_[k] = tensor.strides[1];
    }
    Collapse(samples_);
    for (int k = 0; k < kCount; ++k) {
      sample_strides_[k] = samples_[k].strides[Grid::kLast];
    }
  }

  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] std::int64_t samples() const { return samples_[0].size(); }
  /// Whether a stretch is of consecutive channels, one sample of each.
  [[nodiscard]] bool along_channels() const {
    return channels_ > 1 && channel_strides_[0] < sample_strides_[0];
  }

  template <typename Visitor>
  void Walk(Range channels, Range samples, const Visitor& visit) const {
    if (along_channels()) {
      WalkStretches(channels.begin, samples, 1, [&](const PerTensor& offsets, std::int64_t) {
        visit(Stretch{channels.begin, offsets, channel_strides_, channels.size()});
      });
      return;
    }
    for (std::int64_t channel = channels.begin; channel < channels.end; ++channel) {
      WalkStretches(
          channel, samples, samples.size(), [&](const PerTensor& offsets, std::int64_t count) {
            visit(Stretch{channel, offsets, sample_strides_, count});
          });
    }
  }

 private:
  /// Calls visit(offsets, count) for stretches of no more than `longest` samples of one channel.
  template <typename Visitor>
  void WalkStretches(
      std::int64_t channel,
      Range samples,
      std::int64_t longest,
      const Visitor& visit) const {
    std::vector<GridCursor> cursors;
    cursors.reserve(kCount);
    for (const Grid& grid : samples_) {
      cursors.emplace_back(grid, samples.begin);
    }
    PerTensor offsets{};
    for (std::int64_t left = samples.size(); left > 0;) {
      const std::int64_t count = std::min({left, longest, cursors[0].run()});
      for (int k = 0; k < kCount; ++k) {
        offsets[k] = cursors[k].offset() + (channel * channel_strides_[k]);
        cursors[k].Advance(count);
      }
      visit(offsets, count);
      left -= count;
    }
  }

  std::int64_t channels_;
  std::array<Grid, kCount> samples_;
  PerTensor channel_strides_{};
  PerTensor sample_strides_{};
};

/// ChannelTasks cuts a walk into tasks: some channels, and some of their samples.
class ChannelTasks {
 public:
  /// `walk` has channels and samples.
  template <int kCount>
  explicit ChannelTasks(const ChannelWalk<kCount>& walk)
      : channels_(walk.channels(), walk.along_channels() ? kChannelsAlong : 1),
        samples_(
            walk.samples(),
            std::max(
                CeilDivide(kMinElements, channels_.largest()),
                CeilDivide(walk.samples(), CeilDivide(kEnoughTasks, channels_.count())))) {}

  [[nodiscard]] std::int64_t count() const { return channels_.count() * samples_.count(); }
  [[nodiscard]] std::int64_t sample_tiles() const { return samples_.count(); }
  [[nodiscard]] Range channels(std::int64_t task) const {
    return channels_[task / samples_.count()];
  }
  [[nodiscard]] std::int64_t sample_tile(std::int64_t task) const {
    return task % samples_.count();
  }
  [[nodiscard]] Range samples(std::int64_t task) const { return samples_[sample_tile(task)]; }
  /// How many tasks are worth a thread.
  [[nodiscard]] std::int64_t grain() const {
    return CeilDivide(kMinElements, channels_.largest() * samples_.largest());
  }

 private:
  static constexpr std::int64_t kChannelsAlong = 64;
  static constexpr std::int64_t kMinElements = 1 << 14;
  static constexpr std::int64_t kEnoughTasks = 32;

  Tiles channels_;
  Tiles samples_;
};

/// Two sums that are made in one pass.
using Sums = std::array<double, 2>;

inline void Add(const Sums& terms, Sums* sums) {
  (*sums)[0] += terms[0];
  (*sums)[1] += terms[1];
}

/// Adds up the terms of a stretch: sums[i] for its i-th channel, or sums[0] for its one channel.
template <bool kDense, typename T, int kCount, typename Term>
void SumStretch(
    const std::array<const T*, kCount>& data,
    const typename ChannelWalk<kCount>::Stretch& stretch,
    bool along_channels,
    const Term& term,
    Sums* sums) {
  const auto load = [&](std::int64_t i) {
    std::array<double, kCount> values{};
    for (int k = 0; k < kCount; ++k) {
      const std::int64_t step = kDense ? i : i * stretch.strides[k];
      values[k] = Convert<double>(data[k][stretch.offsets[k] + step]);
    }
    return values;
  };
  if (along_channels) {
    for (std::int64_t i = 0; i < stretch.count; ++i) {
      Add(term(stretch.channel + i, load(i)), &sums[i]);
    }
    return;
  }
  // Sums that do not wait for each other.
  constexpr int kLanes = 8;
  std::array<Sums, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= stretch.count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      Add(term(stretch.channel, load(i + lane)), &lanes[lane]);
    }
  }
  for (; i < stretch.count; ++i) {
    Add(term(stretch.channel, load(i)), lanes.data());
  }
  for (const Sums& lane : lanes) {
    Add(lane, sums);
  }
}

/// SumChannels returns for each channel the sums of term(channel, values) over all samples;
/// `values` are the elements of the tensors, which have the same dims and type T.
template <typename T, int kCount, typename Term>
std::vector<Sums> SumChannels(
    const Context& context,
    const std::array<ConstTensorRef, kCount>& tensors,
    const Term& term) {
  const ChannelWalk<kCount> walk(tensors);
  if (walk.channels() == 0 || walk.samples() == 0) {
    return std::vector<Sums>(walk.channels());
  }
  std::array<const T*, kCount> data{};
  for (int k = 0; k < kCount; ++k) {
    data[k] = static_cast<const T*>(tensors[k].data);
  }
  const ChannelTasks tasks(walk);
  // One row of channels for each tile of samples, added up in order.
  std::vector<Sums> sums(tasks.sample_tiles() * walk.channels());
  const auto run_task = [&](std::int64_t task) {
    const Range channels = tasks.channels(task);
    Sums* row = sums.data() + (tasks.sample_tile(task) * walk.channels());
    walk.Walk(channels, tasks.samples(task), [&](const auto& stretch) {
      if (stretch.IsDense()) {
        SumStretch<true, T, kCount>(
            data, stretch, walk.along_channels(), term, row + stretch.channel);
      } else {
        SumStretch<false, T, kCount>(
            data, stretch, walk.along_channels(), term, row + stretch.channel);
      }
    });
  };
  ParallelFor(context, tasks.count(), tasks.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      run_task(task);
    }
  });
  for (std::int64_t i = walk.channels(); i < std::ssize(sums); ++i) {
    Add(sums[i], &sums[i % walk.channels()]);
  }
  sums.resize(walk.channels());
  return sums;
}

/// MapChannels writes function(channel, values) to every element of `output`, where `values` are
/// the elements of the inputs. All have the same dims and type T.
template <typename T, int kCount, typename Function>
void MapChannels(
    const Context& context,
    const std::array<ConstTensorRef, kCount>& inputs,
    const TensorRef& output,
    const Function& function) {
  std::array<ConstTensorRef, kCount + 1> tensors;
  std::copy(inputs.begin(), inputs.end(), tensors.begin());
  tensors[kCount] = output;
  const ChannelWalk<kCount + 1> walk(tensors);
  if (walk.channels() == 0 || walk.samples() == 0) {
    return;
  }
  const std::int64_t channel_step = walk.along_channels() ? 1 : 0;
  const auto map_stretch = [&](const auto& stretch) {
    T* to = static_cast<T*>(output.data) + stretch.offsets[kCount];
    for (std::int64_t i = 0; i < stretch.count; ++i) {
      std::array<double, kCount> values{};
      for (int k = 0; k < kCount; ++k) {
        const T* from = static_cast<const T*>(inputs[k].data) + stretch.offsets[k];
        values[k] = Convert<double>(from[i * stretch.strides[k]]);
      }
      to[i * stretch.strides[kCount]] =
          Convert<T>(function(stretch.channel + (i * channel_step), values));
    }
  };
  const ChannelTasks tasks(walk);
  ParallelFor(context, tasks.count(), tasks.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      walk.Walk(tasks.channels(task), tasks.samples(task), map_stretch);
    }
  });
}

/// ChannelReader reads single channels, each in one order whatever the layout: for what few
/// channels need.
template <typename T, int kCount>
class ChannelReader {
 public:
  using Values = std::array<double, kCount>;

  /// The tensors have the same dims and type T, and samples.
  explicit ChannelReader(const std::array<ConstTensorRef, kCount>& tensors)
      : tensors_(tensors), walk_(tensors) {}

  /// Calls visit(values) with the tensors' elements of every sample.
  template <typename Visitor>
  void ForEach(std::int64_t channel, const Visitor& visit) const {
    walk_.Walk({channel, channel + 1}, {0, walk_.samples()}, [&](const auto& stretch) {
      for (std::int64_t i = 0; i < stretch.count; ++i) {
        visit(At(stretch, i));
      }
    });
  }

  /// The elements at a place of a stretch of a walk through the same tensors.
  [[nodiscard]] Values At(const typename ChannelWalk<kCount>::Stretch& stretch, std::int64_t i)
      const {
    Values values{};
    for (int k = 0; k < kCount; ++k) {
      values[k] = Load(k, stretch.offsets[k] + (i * stretch.strides[k]));
    }
    return values;
  }

  [[nodiscard]] Values First(std::int64_t channel) const {
    Values values{};
    for (int k = 0; k < kCount; ++k) {
      values[k] = Load(k, channel * tensors_[k].strides[1]);
    }
    return values;
  }

 private:
  [[nodiscard]] double Load(int tensor, std::int64_t offset) const {
    return Convert<double>(static_cast<const T*>(tensors_[tensor].data)[offset]);
  }

  std::array<ConstTensorRef, kCount> tensors_;
  ChannelWalk<kCount> walk_;
};

/// ConstantChannels returns which of the channels that may be constant are: those for which
/// value(channel, values) is finite and the same for every sample. It reads memory in its order,
/// and no more of a channel once a difference is found. The tensors are as those of SumChannels.
template <typename T, int kCount, typename Value>
std::vector<char> ConstantChannels(
    const Context& context,
    const std::array<ConstTensorRef, kCount>& tensors,
    const std::vector<char>& may_be,
    const Value& value) {
  const ChannelWalk<kCount> walk(tensors);
  std::vector<std::atomic<bool>> left(may_be.size());
  const auto is_left = [&](std::int64_t c) { return left[c].load(std::memory_order_relaxed); };
  std::vector<double> first(may_be.size());
  const ChannelReader<T, kCount> reader(tensors);
  for (std::int64_t c = 0; c < walk.channels() && walk.samples() > 0; ++c) {
    first[c] = may_be[c] != 0 ? value(c, reader.First(c)) : std::numeric_limits<double>::infinity();
    left[c] = std::isfinite(first[c]);
  }
  const std::int64_t channel_step = walk.along_channels() ? 1 : 0;
  const auto compare = [&](const auto& stretch) {
    for (std::int64_t i = 0; i < stretch.count; ++i) {
      const std::int64_t c = stretch.channel + (i * channel_step);
      if (is_left(c) && value(c, reader.At(stretch, i)) != first[c]) {
        left[c].store(false, std::memory_order_relaxed);
      }
    }
  };
  if (std::ranges::any_of(left, std::identity())) {
    const ChannelTasks tasks(walk);
    ParallelFor(context, tasks.count(), tasks.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const Range channels = tasks.channels(task);
        if (std::any_of(
                left.begin() + channels.begin, left.begin() + channels.end, std::identity())) {
          walk.Walk(channels, tasks.samples(task), compare);
        }
      }
    });
  }
  return {left.begin(), left.end()};
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CHANNELS_H_
