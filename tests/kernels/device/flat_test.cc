#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/kernel_images.h"
#include "flat/functors.h"
#include "gradsmith/gradsmith.h"
#include "patterns/cuda/rows_flat.h"
#include "patterns/run_functor.h"
#include "runtime/cuda/op_call.h"

/// Flat rows on CUDA, by each way in which their kernels read elements, compared with the CPU. All
/// are small integers, whose sums are exact.
namespace gradsmith::cuda {
namespace {

using flat::GateRows;

constexpr DataType kFloat = DataType::kFloat;
constexpr DataType kHalf = DataType::kMLFloat16;
constexpr DataType kDouble = DataType::kDouble;

constexpr std::array<std::string_view, 8> kOperands = {"X",    "V", "S",     "strength",
                                                       "gate", "Y", "twice", "is_open"};
constexpr int kY = 5;
constexpr int kTwice = 6;
constexpr internal::FunctorKernels kGate = {
    .name = "Gate",
    .operands = kOperands,
    .image = &kImage_flat_rows};

/// A row, and how its operands lie in memory.
struct FlatRow {
  Sizes dims;
  FlatAccess access = FlatAccess::kDense;
  /// Empty where operands are contiguous; of S.
  Sizes strides = {};
  Sizes strides_of_s = {};
  std::size_t misaligned = 0;
  DataType type = kFloat;
  DataType type_of_v = kFloat;
};

/// The operands in their order; null ones are absent.
using Operands = std::array<TensorPointer, kOperands.size()>;

class CudaFlatRows : public CudaTest {
 protected:
  [[nodiscard]] TensorPointer
  Make(DataType type, const Sizes& dims, const Sizes& strides, std::size_t misaligned = 0) {
    const Sizes own = strides.empty() ? support::StridesFor(Layout::kContiguous, dims) : strides;
    auto tensor = std::make_shared<GpuTensor>(type, dims, own, misaligned);
    tensor->Fill([&] { return static_cast<double>(random_.Integer(-3, 3)); });
    return tensor;
  }

  Operands Make(const FlatRow& row, bool is_open) {
    const auto elements = [&](DataType type, const Sizes& strides) {
      return Make(type, row.dims, strides, row.misaligned);
    };
    Operands operands = {
        elements(row.type, row.strides),
        elements(row.type_of_v, row.strides),
        elements(row.type, row.strides_of_s.empty() ? row.strides : row.strides_of_s),
        Make(kHalf, {}, {}),
        Make(DataType::kBool, {}, {}),
        elements(row.type, row.strides),
        Make(kDouble, {}, {}),
        Make(DataType::kBool, {}, {})};
    operands[4]->Fill([&] { return is_open ? 1.0 : 0.0; });
    return operands;
  }

  static std::array<TensorRef, kOperands.size()>
  RefsOf(const Operands& operands, bool on_gpu, bool accumulate = false) {
    std::array<TensorRef, kOperands.size()> refs;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      if (operands[i] != nullptr) {
        refs[i] = on_gpu ? operands[i]->GpuRef() : operands[i]->HostRef();
        refs[i].accumulate = accumulate && (i == kY || i == kTwice);
      }
    }
    return refs;
  }

  static Status Run(
      const Context& context,
      const std::array<TensorRef, kOperands.size()>& refs,
      const internal::RowsAxes& axes) {
    const std::array<ConstTensorRef, 5> in = {refs[0], refs[1], refs[2], refs[3], refs[4]};
    return internal::RowsOnBackend<GateRows>(
        context, kGate, axes, {}, in.data(), &in[1], &in[2], &in[3], &in[4], &refs[5], &refs[6],
        &refs[7]);
  }

  /// Runs a call on both, and compares the outputs. What a GPU adds to is added here on the host.
  static void Compare(const Operands& operands, bool accumulate = false) {
    const Context gpu(OnGpu());
    const Context cpu(ContextOptions{.device = {Backend::kCpu, 0}});
    const internal::RowsAxes axes = internal::AxesFrom(0, operands[0]->GpuRef().dims.size());
    std::array<std::vector<double>, kOperands.size()> before;
    for (std::size_t i = kY; i < operands.size(); ++i) {
      before[i] = operands[i] == nullptr ? std::vector<double>() : operands[i]->HostValues();
    }
    Status status = Run(cpu, RefsOf(operands, false), axes);
    ASSERT_TRUE(status.ok()) << status.message();
    status = Run(gpu, RefsOf(operands, true, accumulate), axes);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(gpu).ok());
    for (std::size_t i = kY; i < operands.size(); ++i) {
      if (operands[i] == nullptr) {
        continue;
      }
      std::vector<double> expected = operands[i]->HostValues();
      for (std::size_t e = 0; e < expected.size() && accumulate && i != kTwice + 1; ++e) {
        expected[e] += before[i][e];
      }
      EXPECT_EQ(operands[i]->GpuValues(), expected) << kOperands[i];
      EXPECT_TRUE(operands[i]->SurroundingsIntact()) << kOperands[i];
    }
  }

  /// A row with every choice of what is absent, and added to.
  void Check(const FlatRow& row) {
    SCOPED_TRACE(testing::PrintToString(row.dims) + testing::PrintToString(row.strides));
    ExpectAccess(row);
    for (const bool is_open : {false, true}) {
      Compare(Make(row, is_open));
      Compare(Make(row, is_open), /*accumulate=*/true);
      for (const std::size_t absent : {1, 3, 4, 5, 6, 7}) {
        SCOPED_TRACE(kOperands[absent]);
        Operands operands = Make(row, is_open);
        operands[absent] = nullptr;
        Compare(operands);
      }
      for (const std::size_t wanted : {5, 6, 7}) {
        SCOPED_TRACE(kOperands[wanted]);
        Operands operands = Make(row, is_open);
        for (std::size_t i = kY; i < operands.size(); ++i) {
          operands[i] = i == wanted ? operands[i] : nullptr;
        }
        Compare(operands);
      }
    }
  }

  void ExpectAccess(const FlatRow& row) {
    const auto refs = RefsOf(Make(row, true), true);
    const internal::RowsCounts& counts = kRowsInfo<GateRows>.counts;
    const internal::RowsTask task = internal::RowsTaskOf(
        refs, counts, internal::AxesFrom(0, static_cast<int>(row.dims.size())), {});
    EXPECT_EQ(FlatAccessOf(task, refs, counts), row.access);
  }

  reference::Random random_{"flat rows"};
};

/// With elements behind the last whole vector, and more vectors than a block has threads.
TEST_F(CudaFlatRows, OfDenseElements) {
  for (const Sizes& dims : std::vector<Sizes>{{}, {0, 3}, {1}, {4, 16}, {3, 5, 7}, {41, 103}}) {
    Check({.dims = dims});
    Check({.dims = dims, .type = kDouble, .type_of_v = kDouble});
    Check({.dims = dims, .type = kFloat, .type_of_v = kHalf});
    Check({.dims = dims, .type = kHalf, .type_of_v = kFloat});
  }
  // The same order in memory, not that of their indices.
  Check({.dims = {3, 16, 5}, .strides = {80, 1, 16}});
}

TEST_F(CudaFlatRows, OfVectorsWithGapsBetweenRows) {
  constexpr FlatAccess kVectors = FlatAccess::kVectors;
  Check({.dims = {5, 16}, .access = kVectors, .strides = {24, 1}});
  Check({.dims = {0, 16}, .access = kVectors, .strides = {24, 1}});
  Check({.dims = {7, 3, 40}, .access = kVectors, .strides = {160, 48, 1}, .type_of_v = kHalf});
  Check({.dims = {61, 72}, .access = kVectors, .strides = {80, 1}, .type = kHalf});
}

/// What is broadcast is the same along some dims.
TEST_F(CudaFlatRows, OfAnInputThatIsSpread) {
  constexpr FlatAccess kVectors = FlatAccess::kVectors;
  Check({.dims = {6, 64}, .access = kVectors, .strides_of_s = {1, 0}});
  Check({.dims = {6, 64}, .access = kVectors, .strides_of_s = {0, 1}});
  Check({.dims = {6, 63}, .access = FlatAccess::kElements, .strides_of_s = {0, 1}});
  Check({.dims = {6, 64}, .access = FlatAccess::kElements, .strides_of_s = {0, 2}});
  // One number for all, whose place need not be a vector's.
  Check({.dims = {6, 64}, .access = kVectors, .strides_of_s = {0, 0}});
}

TEST_F(CudaFlatRows, OfSingleElements) {
  constexpr FlatAccess kElements = FlatAccess::kElements;
  Check({.dims = {5, 16}, .access = kElements, .strides = {17, 1}});
  Check({.dims = {5, 15}, .access = kElements, .strides = {16, 1}});
  Check({.dims = {4, 16}, .access = kElements, .misaligned = 1});
  Check(
      {.dims = {301}, .access = kElements, .strides = {3}, .type = kDouble, .type_of_v = kDouble});
  Check({.dims = {2, 3, 4, 5}, .access = kElements, .strides = {200, 61, 13, 2}});
}

/// All elements read the strength, in blocks of which the first could have written over it.
TEST_F(CudaFlatRows, InPlace) {
  for (const Sizes& dims : std::vector<Sizes>{{3, 5, 7}, {64, 257}}) {
    Operands operands = Make({.dims = dims}, true);
    operands[kY] = operands[0];
    operands[3] = Make(kFloat, {}, {});
    operands[3]->Fill([] { return 2.0; });
    operands[kTwice] = operands[3];
    Compare(operands);
    EXPECT_EQ(operands[kTwice]->GpuValues(), std::vector<double>{4});
    // An integer input likewise.
    operands = Make({.dims = dims}, false);
    operands[7] = operands[4];
    Compare(operands);
  }
}

TEST_F(CudaFlatRows, RefusesSeveralRows) {
  const Operands operands = Make({.dims = {2, 3}}, true);
  auto refs = RefsOf(operands, true);
  for (const std::size_t once : {3, 4, 6, 7}) {
    refs[once] = {};
  }
  const Status status = Run(Context(OnGpu()), refs, internal::AlongAxis(1));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(
      status.message().find("Gate has one row of all dims; expected 1 row, got 2"),
      std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace gradsmith::cuda
