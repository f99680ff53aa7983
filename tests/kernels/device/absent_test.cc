#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absent/functors.h"
#include "cuda/kernel_images.h"
#include "gradsmith/gradsmith.h"
#include "kernels/device/sample_ops.h"
#include "patterns/cuda/rows_shape.h"
#include "patterns/run_functor.h"
#include "patterns/run_map.h"
#include "runtime/cuda/op_call.h"

/// Inputs of elements that are absent, by each way in which the patterns `map` and `rows` read a
/// tensor on CUDA, compared with the CPU. All are small integers, whose sums are exact.
namespace gradsmith::cuda {
namespace {

using absent::AbsentMap;
using absent::AbsentRows;
using absent::AbsentTotals;

constexpr DataType kFloat = DataType::kFloat;
constexpr DataType kHalf = DataType::kMLFloat16;

constexpr std::array<std::string_view, 5> kRowsOperands = {"X", "A", "scale", "Y", "sums"};
constexpr internal::FunctorKernels kRows = {
    .name = "AbsentRows",
    .operands = kRowsOperands,
    .image = &kImage_absent_inputs};
constexpr std::array<std::string_view, 4> kTotalsOperands = {"X", "A", "B", "Y"};
constexpr internal::FunctorKernels kTotals = {
    .name = "AbsentTotals",
    .operands = kTotalsOperands,
    .image = &kImage_absent_inputs};

class CudaAbsent : public CudaTest {
 protected:
  TensorPointer Make(DataType type, const Sizes& dims, Layout layout = Layout::kContiguous) {
    auto tensor = std::make_shared<GpuTensor>(type, dims, layout);
    const bool is_mask = type == DataType::kBool;
    tensor->Fill(
        [&] { return static_cast<double>(random_.Integer(is_mask ? 0 : -3, is_mask ? 1 : 3)); });
    return tensor;
  }

  /// Calls run(context, inputs, outputs) on both, and compares the outputs.
  template <typename RunIt>
  static void Compare(
      const std::vector<TensorPointer>& inputs,
      const std::vector<TensorPointer>& outputs,
      const RunIt& run) {
    const auto refs = [](const std::vector<TensorPointer>& tensors, bool on_gpu) {
      std::vector<TensorRef> found;
      for (const TensorPointer& tensor : tensors) {
        found.push_back(
            tensor == nullptr ? TensorRef()
            : on_gpu          ? tensor->GpuRef()
                              : tensor->HostRef());
      }
      return found;
    };
    const Context gpu(OnGpu());
    const Context cpu(ContextOptions{.device = {Backend::kCpu, 0}});
    for (const Context* context : {&cpu, &gpu}) {
      const Status status =
          run(*context, refs(inputs, context == &gpu), refs(outputs, context == &gpu));
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(Synchronize(gpu).ok());
    for (const TensorPointer& output : outputs) {
      EXPECT_EQ(output->GpuValues(), output->HostValues());
      EXPECT_TRUE(output->SurroundingsIntact());
    }
  }

  /// A map of these dims with every choice of what is absent.
  void CheckMap(DataType type, const Sizes& dims, const Sizes& of_sums, Layout layout) {
    for (int absent = 0; absent < 4; ++absent) {
      SCOPED_TRACE(absent);
      const std::vector<TensorPointer> inputs = {
          Make(type, dims, layout), (absent & 1) != 0 ? nullptr : Make(type, dims, layout),
          (absent & 2) != 0 ? nullptr : Make(DataType::kBool, dims, layout)};
      const std::vector<TensorPointer> outputs = {
          Make(type, dims, layout), Make(type, of_sums, layout)};
      Compare(
          inputs, outputs,
          [&](const Context& context, const std::vector<TensorRef>& in,
              const std::vector<TensorRef>& out) {
            const std::vector<ConstTensorRef> given(in.begin(), in.end());
            return context.backend() == Backend::kCpu
                       ? internal::RunMapOnCpu<AbsentMap>(
                             context, std::array<double, 0>{}, given, out)
                       : internal::RunMapWithSumsOnCuda(context, kAbsentMap, {}, given, out);
          });
    }
  }

  void CheckRows(DataType type, const Sizes& dims, bool is_by_columns) {
    for (const bool is_absent : {false, true}) {
      SCOPED_TRACE(is_absent);
      const std::vector<TensorPointer> inputs = {
          Make(type, dims), is_absent ? nullptr : Make(type, dims), Make(type, {dims[1]})};
      const std::vector<TensorPointer> outputs = {Make(type, dims), Make(type, {dims[1]})};
      Compare(
          inputs, outputs,
          [&](const Context& context, const std::vector<TensorRef>& in,
              const std::vector<TensorRef>& out) {
            if (context.backend() == Backend::kCuda) {
              const std::vector<TensorRef> all = {in[0], in[1], in[2], out[0], out[1]};
              const RowsInfo& info = kRowsInfo<AbsentRows>;
              const internal::RowsTask task =
                  internal::RowsTaskOf(all, info.counts, internal::AlongAxis(1), {});
              EXPECT_EQ(AccessOf({device()}, task, all, info).is_by_columns, is_by_columns);
            }
            const ConstTensorRef x = in[0];
            const ConstTensorRef a = in[1];
            const ConstTensorRef scale = in[2];
            return internal::RowsOnBackend<AbsentRows>(
                context, kRows, internal::AlongAxis(1), {}, &x, &a, &scale, &out[0], &out[1]);
          });
    }
  }

  void CheckTotals(DataType type, const Sizes& dims, std::int64_t axis) {
    for (const bool is_absent : {false, true}) {
      SCOPED_TRACE(is_absent);
      const std::vector<TensorPointer> inputs = {
          Make(type, dims), is_absent ? nullptr : Make(type, dims), Make(type, dims)};
      Compare(
          inputs, {Make(type, dims)},
          [&](const Context& context, const std::vector<TensorRef>& in,
              const std::vector<TensorRef>& out) {
            const std::array<ConstTensorRef, 3> given = {in[0], in[1], in[2]};
            return internal::RowsOnBackend<AbsentTotals>(
                context, kTotals, internal::AlongAxis(axis), {}, given.data(), &given[1], &given[2],
                out.data());
          });
    }
  }

  reference::Random random_{"absent inputs"};
};

/// Dense maps, vectors with a gap behind them, single elements, and sums of either.
TEST_F(CudaAbsent, OfMaps) {
  for (const DataType type : {kFloat, kHalf}) {
    CheckMap(type, {16, 64}, {16, 64}, Layout::kContiguous);
    CheckMap(type, {5, 7}, {5, 7}, Layout::kStrided);
    CheckMap(type, {12, 64}, {64}, Layout::kContiguous);
    CheckMap(type, {12, 7}, {12, 1}, Layout::kContiguous);
  }
}

/// Rows with columns along memory, and by columns in vectors and in single elements.
TEST_F(CudaAbsent, OfRowsWithColumns) {
  const std::int64_t many = std::int64_t{160} * device().multiprocessors();
  CheckRows(kFloat, {7, 64}, false);
  CheckRows(kFloat, {7, 63}, false);
  CheckRows(kFloat, {many, 16}, true);
  CheckRows(kFloat, {many, 15}, true);
  CheckRows(DataType::kDouble, {many, 16}, true);
}

/// Rows along memory and across it, those that begin between vectors, those that no block holds,
/// and those that are cut into parts.
TEST_F(CudaAbsent, OfRows) {
  for (const DataType type : {kFloat, kHalf}) {
    CheckTotals(type, {9, 256}, 1);
    CheckTotals(type, {9, 257}, 1);
    CheckTotals(type, {40, 16}, 0);
    CheckTotals(type, {3, 5}, 0);
  }
  CheckTotals(kFloat, {2, 70000}, 1);
  CheckTotals(kFloat, {300, 20000}, 1);
}

}  // namespace
}  // namespace gradsmith::cuda
