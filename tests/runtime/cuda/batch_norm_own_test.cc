#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batch_norm/cuda/held.h"
#include "batch_norm/cuda/own.h"
#include "batch_norm/kernels.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/batch_norm_data.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::batch_norm {
namespace {

using cuda::Block;

/// The dims in any order, some with gaps after them.
Sizes RandomStrides(const Sizes& dims, Random& random) {
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  random.Shuffle(order);
  Sizes strides(dims.size());
  std::int64_t step = random.Chance(0.8) ? 1 : 2;
  for (const std::size_t axis : order) {
    strides[axis] = step;
    step = (step * dims[axis]) + (random.Chance(0.3) ? random.Integer(1, 8) : 0);
  }
  return strides;
}

/// Which outputs are asked for.
struct Wanted {
  bool dX = true;
  bool dScale = true;
  bool dBias = true;
};

/// Whose gradients are tested: those of own.h, or of held.h where a block's threads hold a
/// channel's samples. A forward has one kind of kernels.
enum class Kernels : unsigned char { kOwn, kHeld };

class BatchNormOwnTest : public cuda::GpuTest,
                         public testing::WithParamInterface<std::tuple<Activation, Kernels>> {
 protected:
  [[nodiscard]] static Activation activation() { return std::get<Activation>(GetParam()); }
  [[nodiscard]] static bool of_held() { return std::get<Kernels>(GetParam()) == Kernels::kHeld; }

  ~BatchNormOwnTest() override {
    EXPECT_TRUE(!of_held() || gradients_ == 0 || held_ > 0) << "no block held its channels";
  }

  /// The references that a call takes point at these.
  struct ForwardRefs {
    explicit ForwardRefs(Data& data, bool on_gpu, bool in_place)
        : X(Ref(data.X, on_gpu)),
          scale(Ref(data.scale, on_gpu)),
          B(Ref(data.B, on_gpu)),
          old_mean(Ref(data.old_mean, on_gpu)),
          old_var(Ref(data.old_var, on_gpu)),
          Y(Ref(data.Y, on_gpu)),
          new_mean(Ref(in_place ? data.old_mean : data.new_mean, on_gpu)),
          new_var(Ref(in_place ? data.old_var : data.new_var, on_gpu)),
          saved_mean(Ref(data.saved_mean, on_gpu)),
          saved_inv_std(Ref(data.saved_inv_std, on_gpu)) {}

    [[nodiscard]] BatchNormalization::Inputs Inputs() const {
      return {
          .X = &X, .scale = &scale, .B = &B, .running_mean = &old_mean, .running_var = &old_var};
    }
    [[nodiscard]] BatchNormalization::Outputs Outputs() const {
      return {
          .Y = &Y,
          .running_mean = &new_mean,
          .running_var = &new_var,
          .saved_mean = &saved_mean,
          .saved_inv_std = &saved_inv_std};
    }

    ConstTensorRef X;
    ConstTensorRef scale;
    ConstTensorRef B;
    ConstTensorRef old_mean;
    ConstTensorRef old_var;
    TensorRef Y;
    TensorRef new_mean;
    TensorRef new_var;
    TensorRef saved_mean;
    TensorRef saved_inv_std;
  };

  static TensorRef Ref(GpuTensor& tensor, bool on_gpu) {
    return on_gpu ? tensor.GpuRef() : tensor.HostRef();
  }

  void RunForward(
      const BatchNormalization::Inputs& inputs,
      const BatchNormalization::Outputs& outputs) {
    const Block workspace(ForwardWorkspace(device(), *inputs.X));
    workspace.Fill(0xFF);
    const Status status =
        Forward(device(), kStream, activation(), attributes_, inputs, outputs, workspace.data());
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void RunBackward(
      const BatchNormalizationReluGrad::Inputs& inputs,
      const BatchNormalizationGrad::Outputs& outputs) {
    ++gradients_;
    Status status(StatusCode::kUnsupported, {});
    const ConstTensorRef dX = *outputs.dX;
    if (of_held() &&
        HeldShapeOf(own::PolicyOf(device()), *inputs.dY, *inputs.X, dX.present ? &dX : nullptr)) {
      ++held_;
      status = HeldBackward(device(), kStream, inputs, outputs);
    } else {
      const Block workspace(BackwardWorkspace(device(), *inputs.X));
      workspace.Fill(0xFF);
      status = Backward(device(), kStream, inputs, outputs, workspace.data());
    }
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void CompareForward(Data& data, bool in_place = false, double roundoffs = 128) {
    if (of_held()) {
      return;
    }
    const ForwardRefs cpu(data, false, in_place);
    ASSERT_TRUE(RunOp(context_, activation(), attributes_, cpu.Inputs(), cpu.Outputs()).ok());
    const ForwardRefs gpu(data, true, in_place);
    RunForward(gpu.Inputs(), gpu.Outputs());
    const DataType T = data.types.T;
    ExpectClose(data.Y, "Y", T, roundoffs);
    ExpectClose(in_place ? data.old_mean : data.new_mean, "running_mean", T, roundoffs);
    ExpectClose(in_place ? data.old_var : data.new_var, "running_var", T, roundoffs);
    ExpectClose(data.saved_mean, "saved_mean", T, roundoffs);
    ExpectClose(data.saved_inv_std, "saved_inv_std", T, roundoffs);
  }

  /// Runs on the host or on the GPU; what is not wanted is absent.
  void Gradients(Data& data, bool on_gpu, const Wanted& wanted, bool accumulate, GpuTensor& dX) {
    if (activation() != Activation::kNone && !on_gpu) {
      data.Coarsen();
    }
    const auto output = [&](GpuTensor& tensor, bool is_wanted) {
      TensorRef ref = is_wanted ? Ref(tensor, on_gpu) : TensorRef();
      ref.accumulate = accumulate && on_gpu;
      return ref;
    };
    const ConstTensorRef dY = Ref(data.dY, on_gpu);
    const ConstTensorRef X = Ref(data.X, on_gpu);
    const ConstTensorRef scale = Ref(data.scale, on_gpu);
    const ConstTensorRef bias = Ref(data.B, on_gpu);
    const ConstTensorRef mean = Ref(data.saved_mean, on_gpu);
    const ConstTensorRef inv_std = Ref(data.saved_inv_std, on_gpu);
    const TensorRef dX_ref = output(dX, wanted.dX);
    const TensorRef dScale = output(data.dScale, wanted.dScale);
    const TensorRef dBias = output(data.dBias, wanted.dBias);
    const BatchNormalizationReluGrad::Inputs inputs = {
        .dY = &dY,
        .X = &X,
        .scale = &scale,
        .B = activation() == Activation::kNone ? nullptr : &bias,
        .saved_mean = &mean,
        .saved_inv_std = &inv_std};
    const BatchNormalizationGrad::Outputs outputs = {
        .dX = &dX_ref, .dScale = &dScale, .dBias = wanted.dBias ? &dBias : nullptr};
    if (on_gpu) {
      RunBackward(inputs, outputs);
    } else {
      ASSERT_TRUE(RunOp(context_, inputs, outputs).ok());
    }
  }

  void CompareBackward(Data& data, const Wanted& wanted = {}, double roundoffs = 512) {
    Gradients(data, false, wanted, false, data.dX);
    Gradients(data, true, wanted, false, data.dX);
    const DataType T = data.types.T;
    const auto sum_roundoffs =
        roundoffs * std::sqrt(static_cast<double>(data.X.HostValues().size()) + 1);
    if (wanted.dX) {
      ExpectClose(data.dX, "dX", T, roundoffs);
    }
    if (wanted.dScale) {
      ExpectClose(data.dScale, "dScale", T, sum_roundoffs / 16);
    }
    if (wanted.dBias) {
      ExpectClose(data.dBias, "dBias", T, sum_roundoffs / 16);
    }
  }

  void Compare(const Types& types, const Sizes& dims, const Layouts& layouts, Random& random) {
    std::ostringstream text;
    text << ToString(types.T) << " " << ToString(types.T1) << " " << ToString(types.T2) << " "
         << support::ToString(dims) << " layouts " << static_cast<int>(layouts.X) << " "
         << static_cast<int>(layouts.dY) << " " << static_cast<int>(layouts.output)
         << " misaligned " << layouts.misaligned;
    SCOPED_TRACE(text.str());
    Data data(types, dims, layouts, random);
    CompareBackward(data);
    CompareForward(data);
  }

  Attributes attributes_;
  Context context_;

 private:
  int gradients_ = 0;
  int held_ = 0;
};

/// What own.h alone does in more ways than one, or with what no block holds.
class BatchNormOwnPathsTest : public BatchNormOwnTest {};

constexpr Layout kWritten[] = {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};

TEST_P(BatchNormOwnTest, AgreesWithCpu) {
  Random random("own batch norm");
  for (int round = 0; round < 40; ++round) {
    Sizes dims = {random.Integer(1, 9), random.Integer(1, 40)};
    for (std::int64_t rank = random.Integer(0, 3); rank > 0; --rank) {
      dims.push_back(random.Integer(1, 9));
    }
    for (const Types& types : kRows) {
      const Layouts layouts = {
          .X = random.Choice(std::vector(std::begin(kWritten), std::end(kWritten))),
          .dY = static_cast<Layout>(random.Integer(0, 3)),
          .output = random.Choice(std::vector(std::begin(kWritten), std::end(kWritten))),
          .misaligned = static_cast<std::size_t>(random.Integer(0, 3))};
      Compare(types, dims, layouts, random);
      if (HasFailure()) {
        return;
      }
    }
  }
}

/// The dims in any order in memory, and zero strides in dY.
TEST_P(BatchNormOwnTest, AnyStrides) {
  Random random("own batch norm strides");
  for (int round = 0; round < 150; ++round) {
    Sizes dims = {random.Integer(1, 6), random.Integer(1, 20)};
    for (std::int64_t rank = random.Integer(0, 3); rank > 0; --rank) {
      dims.push_back(random.Integer(1, 7));
    }
    Sizes dY = RandomStrides(dims, random);
    for (std::int64_t& stride : dY) {
      stride = random.Chance(0.2) ? 0 : stride;
    }
    const Sizes X = RandomStrides(dims, random);
    const Sizes output = random.Chance(0.5) ? X : RandomStrides(dims, random);
    const LargeStrides strides(X, random.Chance(0.3) ? X : dY, output);
    SCOPED_TRACE(
        support::ToString(dims) + " X " + support::ToString(strides.X) + " dY " +
        support::ToString(strides.dY) + " output " + support::ToString(strides.output));
    for (const DataType T : {kF, kD, kH, kB}) {
      Data data({T, T, kF}, dims, strides, static_cast<std::size_t>(random.Integer(0, 2)), random);
      CompareBackward(data);
      CompareBackward(data, {.dX = false, .dScale = false, .dBias = true});
      CompareForward(data);
    }
    if (HasFailure()) {
      return;
    }
  }
}

/// One layout for all tensors: the paths that are meant to be fast, with whole vectors and with
/// what is left of them.
TEST_P(BatchNormOwnTest, DenseLayouts) {
  Random random("own batch norm dense");
  const Sizes shapes[] = {{4, 16, 8, 8},    {3, 24, 7, 7},  {2, 17, 5, 9}, {64, 48}, {70, 3},
                          {2, 64, 3, 4, 5}, {1, 136, 1, 1}, {5, 1, 6, 6},  {1, 300}, {7, 520, 2}};
  for (const Sizes& dims : shapes) {
    for (const Layout layout : kWritten) {
      for (const Types& types : kRows) {
        for (const std::size_t misaligned : {std::size_t{0}, std::size_t{1}}) {
          Compare(
              types, dims, {.X = layout, .dY = layout, .output = layout, .misaligned = misaligned},
              random);
          if (HasFailure()) {
            return;
          }
        }
      }
    }
  }
}

/// Columns: samples together that are whole vectors, rows of some channels together, parts of rows;
/// each in one launch where a block has all samples of its channels, and in slices where not.
TEST_P(BatchNormOwnPathsTest, Columns) {
  Random random("own batch norm columns");
  const Sizes shapes[] = {{5, 33, 5, 7},  {1, 5, 33},      {35, 9, 1},      {40, 264},
                          {40, 24, 7, 7}, {3, 8, 14, 14},  {7, 16, 2, 3},   {2, 3, 28, 28},
                          {2, 2, 64, 66}, {1, 1, 48, 100}, {3, 6, 4, 4, 4}, {5, 67, 3, 3},
                          {64, 33, 9, 9}, {4100, 8}};
  for (const Sizes& dims : shapes) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      for (const DataType T : {kF, kD, kH, kB}) {
        for (const std::size_t misaligned : {std::size_t{0}, std::size_t{1}}) {
          Compare(
              {T, T, kF}, dims,
              {.X = layout, .dY = layout, .output = layout, .misaligned = misaligned}, random);
          if (HasFailure()) {
            return;
          }
        }
      }
    }
  }
}

/// A thread for each channel, where its samples are few and lie at one distance, and a few more
/// samples than that.
TEST_P(BatchNormOwnTest, FewSamples) {
  Random random("own batch norm few samples");
  const Sizes shapes[] = {{8, 2048, 1, 1}, {20, 65}, {1, 64},       {9, 7, 1}, {2, 70, 3, 3},
                          {1, 3, 19},      {32, 65}, {2, 70, 4, 4}, {1, 3, 31}};
  for (const Sizes& dims : shapes) {
    for (const Layout layout : kWritten) {
      for (const Types& types : kRows) {
        for (const Layout of_output : {layout, Layout::kStrided}) {
          Compare(types, dims, {.X = layout, .dY = layout, .output = of_output}, random);
        }
        if (HasFailure()) {
          return;
        }
      }
    }
  }
  Data far({kF, kD, kD}, {20, 33}, {}, random);
  far.FillX(1000, random);
  CompareForward(far);
  CompareBackward(far);
  Data in_place({kF, kF, kF}, {12, 40}, {}, random);
  CompareForward(in_place, true);
  Gradients(in_place, false, {}, false, in_place.dX);
  const std::vector<double> expected = in_place.dX.HostValues();
  Gradients(in_place, true, {}, false, in_place.dY);
  const std::vector<double> actual = in_place.dY.GpuValues();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4) << "element " << i;
  }
}

/// An output whose rows lie apart, where those of X and dY are one: the same sums, other steps.
TEST_P(BatchNormOwnPathsTest, OutputInRows) {
  Random random("own batch norm rows of the output");
  const Sizes dims = {4, 8, 3, 5};
  const LargeStrides last({120, 1, 40, 8}, {120, 1, 40, 8}, {160, 1, 48, 8});
  const LargeStrides first({480, 16, 8, 1}, {480, 16, 8, 1}, {512, 64, 16, 1});
  for (const DataType T : {kF, kD, kH, kB}) {
    Data channels_last({T, T, kF}, dims, last, 0, random);
    CompareBackward(channels_last);
    CompareForward(channels_last);
    Data channels_first({T, T, kF}, {4, 8, 2, 8}, first, 0, random);
    CompareBackward(channels_first);
    CompareForward(channels_first);
  }
}

/// Channels of many slices, rows of several pieces, and blocks of several tiles.
TEST_P(BatchNormOwnPathsTest, ManyBlocks) {
  Random random("own batch norm large");
  const Sizes shapes[] = {{3, 2, 101, 97},  {1, 3, 20011},  {16, 67, 15, 16}, {300, 160, 2, 2},
                          {64, 33, 15, 17}, {128, 8, 7, 7}, {9, 5, 56, 56}};
  for (const Sizes& dims : shapes) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      for (const DataType T : {kF, kD, kH, kB}) {
        Compare({T, T, T}, dims, {.X = layout, .dY = layout, .output = layout}, random);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

/// Rows that begin anywhere: whole vectors where all tensors have them at the same places, elements
/// where not; edges alone; rows of several pieces; few rows of a block and many.
TEST_P(BatchNormOwnPathsTest, OddRows) {
  Random random("own batch norm odd rows");
  const Sizes shapes[] = {{3, 5, 35, 35}, {40, 3, 17, 17}, {2, 7, 55, 57}, {1, 3, 63, 67},
                          {70, 3, 3, 3},  {90, 7, 1, 5},   {3, 5, 4097},   {2, 3, 5, 7, 11}};
  const auto with_gaps = [](const Sizes& dims, std::int64_t gap) {
    Sizes strides = support::StridesFor(Layout::kContiguous, dims);
    strides[1] += gap;
    strides[0] = strides[1] * dims[1];
    return strides;
  };
  for (const Sizes& dims : shapes) {
    for (const std::int64_t gap_of_X : {0, 16, 3}) {
      for (const std::int64_t gap_of_dY : {0, 16, 5}) {
        const LargeStrides strides(
            with_gaps(dims, gap_of_X), with_gaps(dims, gap_of_dY),
            with_gaps(dims, gap_of_dY == 5 ? gap_of_X + 1 : gap_of_X));
        SCOPED_TRACE(
            support::ToString(dims) + " gaps " + std::to_string(gap_of_X) + " " +
            std::to_string(gap_of_dY));
        for (const DataType T : {kF, kD, kH, kB}) {
          Data data(
              {T, T, kF}, dims, strides, static_cast<std::size_t>(random.Integer(0, 1)), random);
          CompareBackward(data);
          CompareBackward(data, {.dX = false, .dScale = false, .dBias = true});
          CompareForward(data);
        }
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

/// More blocks than the emulated GPU can have wait for each other: they are launched in steps.
TEST_P(BatchNormOwnPathsTest, BlocksOfAWholeGpu) {
  Random random("own batch norm of a whole GPU");
  const Layout last = Layout::kChannelsLast;
  Compare({kF, kF, kF}, {9, 256, 16, 16}, {.X = last, .dY = last, .output = last}, random);
}

/// A mean that is large beside the deviation does not take the digits of the variance, or of Y.
TEST_P(BatchNormOwnPathsTest, LargeMean) {
  Random random("own batch norm mean");
  for (const Layout layout : kWritten) {
    for (const DataType T : {kF, kD}) {
      Data data(
          {T, kD, kD}, {13, 5, 30, 31}, {.X = layout, .dY = layout, .output = layout}, random);
      data.FillX(1000, random);
      // A mean that is stored in double is itself off by 1000 of the roundoffs that are allowed, on
      // either side.
      const double larger = T == kD ? 1000 : 1;
      CompareForward(data, false, 64 * larger);
      const std::vector<double> inv_std = data.saved_inv_std.GpuValues();
      const std::vector<double> expected = data.saved_inv_std.HostValues();
      for (std::size_t c = 0; c < inv_std.size(); ++c) {
        EXPECT_NEAR(inv_std[c], expected[c], (T == kF ? 1e-6 : 1e-12) * expected[c]);
      }
      // The gradient has the statistics of the data, which the forward left.
      CompareBackward(data, {}, 512 * larger);
    }
  }
}

/// Nor does a border that lies far from all else.
TEST_P(BatchNormOwnPathsTest, LargeMeanBesideZeros) {
  Random random("own batch norm border");
  const std::int64_t row = 60;
  Data data({kF, kD, kD}, {4, 3, row, row}, {}, random);
  std::int64_t i = 0;
  data.X.Fill([&] {
    const bool border = i % row == 0;
    ++i;
    return border ? 0. : random.Real(999, 1001);
  });
  CompareForward(data, false, 2000);
}

TEST_P(BatchNormOwnPathsTest, EmptyAndSingle) {
  Random random("own batch norm empty");
  const Sizes shapes[] = {{0, 3, 4, 4}, {2, 0, 4, 4}, {2, 3, 0}, {0, 0}, {1, 3}, {1, 1, 1, 1}};
  for (const Sizes& dims : shapes) {
    for (const DataType T : {kF, kD, kH, kB}) {
      Compare({T, T, kF}, dims, {}, random);
    }
  }
}

/// 1 / sqrt(0 + 0) is infinite: where there is nothing, the sums are zero nevertheless.
TEST_P(BatchNormOwnTest, InfiniteStatistics) {
  Random random("own batch norm infinite");
  for (const Sizes& dims : {Sizes{0, 3, 4}, Sizes{1, 3}, Sizes{4, 3, 2}}) {
    Data data({kF, kF, kF}, dims, {}, random);
    data.saved_inv_std.Fill([] { return std::numeric_limits<double>::infinity(); });
    Gradients(data, false, {}, false, data.dX);
    Gradients(data, true, {}, false, data.dX);
    ExpectClose(data.dScale, "dScale", kF, 64);
    ExpectClose(data.dBias, "dBias", kF, 64);
  }
  attributes_.epsilon = 0;
  Data data({kF, kF, kF}, {5, 2}, {}, random);
  data.X.Fill([] { return 3; });
  CompareForward(data);
}

TEST_P(BatchNormOwnTest, RunsInPlace) {
  Random random("own batch norm in place");
  for (const Layout layout : kWritten) {
    Data data({kH, kH, kF}, {6, 20, 5, 5}, {.X = layout, .dY = layout, .output = layout}, random);
    CompareForward(data, true);
    // dX in dY's memory.
    Gradients(data, false, {}, false, data.dX);
    const std::vector<double> expected = data.dX.HostValues();
    Gradients(data, true, {}, false, data.dY);
    const std::vector<double> actual = data.dY.GpuValues();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 1e-2) << "element " << i;
    }
  }
}

/// What is not asked for changes nothing in the rest.
TEST_P(BatchNormOwnTest, AbsentOutputs) {
  Random random("own batch norm subsets");
  for (const auto& [layout, size] :
       {std::pair(Layout::kContiguous, 5), std::pair(Layout::kChannelsLast, 5),
        std::pair(Layout::kStrided, 5), std::pair(Layout::kChannelsLast, 2)}) {
    Data data(
        {kB, kB, kF}, {6, 24, size, size}, {.X = layout, .dY = layout, .output = layout}, random);
    for (int subset = 0; subset < 8; ++subset) {
      const Wanted wanted = {
          .dX = (subset & 1) != 0, .dScale = (subset & 2) != 0, .dBias = (subset & 4) != 0};
      for (GpuTensor* tensor : {&data.dX, &data.dScale, &data.dBias}) {
        tensor->Fill([] { return 77; });
      }
      CompareBackward(data, wanted);
      for (const auto& [tensor, is_wanted] :
           {std::pair(&data.dX, wanted.dX), std::pair(&data.dScale, wanted.dScale),
            std::pair(&data.dBias, wanted.dBias)}) {
        if (!is_wanted) {
          EXPECT_EQ(tensor->GpuValues(), tensor->HostValues());
        }
      }
    }
    const ForwardRefs gpu(data, true, false);
    RunForward(gpu.Inputs(), {.Y = &gpu.Y});
    const std::vector<std::byte> alone = data.Y.GpuBytes();
    EXPECT_EQ(data.new_mean.GpuBytes(), data.new_var.GpuBytes());
    RunForward(gpu.Inputs(), gpu.Outputs());
    EXPECT_EQ(data.Y.GpuBytes(), alone);
  }
}

/// Nor do its last bits depend on it.
TEST_P(BatchNormOwnTest, AbsentOutputsKeepTheBits) {
  Random random("own batch norm subset bits");
  for (const Sizes& dims : {Sizes{6, 24, 4, 4}, Sizes{50, 16, 9, 9}, Sizes{8, 40, 1, 1}}) {
    for (const Layout layout : kWritten) {
      Data data({kF, kF, kF}, dims, {.X = layout, .dY = layout, .output = layout}, random);
      Gradients(data, true, {}, false, data.dX);
      const std::vector<double> dScale = data.dScale.GpuValues();
      Gradients(data, true, {.dX = false, .dBias = false}, false, data.dX);
      EXPECT_EQ(data.dScale.GpuValues(), dScale);
      const ForwardRefs gpu(data, true, false);
      RunForward(gpu.Inputs(), gpu.Outputs());
      const std::vector<double> inv_std = data.saved_inv_std.GpuValues();
      RunForward(gpu.Inputs(), {.saved_inv_std = &gpu.saved_inv_std});
      EXPECT_EQ(data.saved_inv_std.GpuValues(), inv_std);
    }
  }
}

TEST_P(BatchNormOwnTest, Accumulates) {
  Random random("own batch norm accumulate");
  for (const Sizes& dims :
       {Sizes{6, 21, 5, 5}, Sizes{6, 24, 4, 4}, Sizes{40, 16, 9, 8}, Sizes{8, 40, 1, 1}}) {
    for (const Layout layout : kWritten) {
      Data data({kF, kF, kF}, dims, {.X = layout, .dY = layout, .output = layout}, random);
      Gradients(data, false, {}, false, data.dX);
      Gradients(data, true, {}, false, data.dX);
      Gradients(data, true, {}, true, data.dX);
      for (GpuTensor* tensor : {&data.dX, &data.dScale, &data.dBias}) {
        const std::vector<double> expected = tensor->HostValues();
        const std::vector<double> actual = tensor->GpuValues();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(actual[i], 2 * expected[i], 1e-4 * (1 + std::abs(expected[i])));
        }
        EXPECT_TRUE(tensor->SurroundingsIntact());
      }
    }
  }
}

/// The same bits again, and from data that are not aligned.
TEST_P(BatchNormOwnTest, RepeatsBitForBit) {
  // The last: rows of more vectors than two for each thread.
  for (const Sizes& dims :
       {Sizes{11, 40, 9, 10}, Sizes{7, 33, 9, 9}, Sizes{8, 32, 7, 7}, Sizes{8, 3, 59, 61}}) {
    for (const Layout layout : kWritten) {
      for (const DataType T : {kF, kD, kH, kB}) {
        std::vector<std::vector<double>> results;
        for (const std::size_t misaligned : {0, 0, 1}) {
          Random random("own batch norm repeat");
          Data data(
              {T, kD, kD}, dims,
              {.X = layout, .dY = layout, .output = layout, .misaligned = misaligned}, random);
          const ForwardRefs gpu(data, true, false);
          Gradients(data, true, {}, false, data.dX);
          RunForward(gpu.Inputs(), gpu.Outputs());
          results.emplace_back();
          for (const GpuTensor* tensor :
               {&data.Y, &data.dX, &data.dScale, &data.dBias, &data.saved_inv_std,
                &data.new_mean}) {
            const std::vector<double> values = tensor->GpuValues();
            results.back().insert(results.back().end(), values.begin(), values.end());
          }
        }
        EXPECT_EQ(results[0], results[1]);
        EXPECT_EQ(results[0], results[2]);
      }
    }
  }
}

std::string NameOfKernels(const testing::TestParamInfo<std::tuple<Activation, Kernels>>& info) {
  const std::string name = std::get<Activation>(info.param) == Activation::kRelu ? "Relu" : "";
  return name + (std::get<Kernels>(info.param) == Kernels::kHeld ? "Held" : "Own");
}

const auto kActivations = testing::Values(Activation::kNone, Activation::kRelu);

INSTANTIATE_TEST_SUITE_P(
    Kernels,
    BatchNormOwnTest,
    testing::Combine(kActivations, testing::Values(Kernels::kOwn, Kernels::kHeld)),
    NameOfKernels);
INSTANTIATE_TEST_SUITE_P(
    Kernels,
    BatchNormOwnPathsTest,
    testing::Combine(kActivations, testing::Values(Kernels::kOwn)),
    NameOfKernels);

}  // namespace
}  // namespace gradsmith::batch_norm
