#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absent/functors.h"
#include "cuda/kernel_images.h"
#include "cuda/op_task.h"
#include "kernels/device/sample_ops.h"
#include "patterns/cuda/map.h"
#include "patterns/cuda/map_policy.h"
#include "patterns/cuda/map_sums.h"
#include "patterns/cuda/rows.h"
#include "patterns/cuda/rows_policy.h"
#include "runtime/cuda/map_call.h"
#include "runtime/cuda/op_call.h"
#include "support/turns.h"

/// Kernels of the patterns `map` and `rows` under other policies than the library's, by which work
/// is cut otherwise, beside plain loops. All are small integers, whose sums are exact in any order.
namespace gradsmith::cuda {
namespace {

using absent::AbsentRows;
using absent::AbsentTotals;

using Values = std::vector<double>;
using PlanOf = Result<std::unique_ptr<internal::Plan>>;

constexpr DataType kFloat = DataType::kFloat;
constexpr DataType kHalf = DataType::kMLFloat16;

/// A policy and what is other in it than in the library's.
template <typename Policy>
struct Named {
  std::string name;
  Policy policy;
};

template <typename Policy>
Named<Policy> Changed(const std::string& name, const std::function<void(Policy&)>& change) {
  Named<Policy> named = {name, {}};
  change(named.policy);
  return named;
}

std::vector<Named<MapPolicy>> MapPolicies() {
  using P = MapPolicy;
  return {
      {"the library's", {}},
      Changed<P>("a warp", [](P& p) { p.threads = p.summing_threads = 32; }),
      Changed<P>("half as many threads", [](P& p) { p.threads = p.summing_threads = 128; }),
      Changed<P>("few threads sum", [](P& p) { p.summing_threads = 64; }),
      Changed<P>("one place of sums", [](P& p) { p.place_lanes = 1; }),
      Changed<P>("eight places of sums", [](P& p) { p.place_lanes = 8; }),
      Changed<P>("short pieces", [](P& p) { p.least_steps = 1; }),
      Changed<P>("no pieces", [](P& p) { p.least_steps = 1 << 20; }),
      Changed<P>("many short pieces", [](P& p) {
        p.summing_threads = 32;
        p.least_steps = 1;
        p.summing_blocks = 96;
      })};
}

std::vector<Named<RowsPolicy>> PoliciesOfParts() {
  using P = RowsPolicy;
  return {
      Changed<P>(
          "many short parts",
          [](P& p) {
            p.vectors_of_part = p.elements_of_part = 1;
            p.most_ragged = 0;
          }),
      Changed<P>(
          "parts of few threads",
          [](P& p) {
            p.most_threads_of_part = 32;
            p.blocks_of_parts = 8;
            p.vectors_of_part = p.elements_of_part = 1;
            p.threads_by_columns = 0;
          }),
      Changed<P>(
          "two parts",
          [](P& p) {
            p.vectors_of_part = p.elements_of_part = 1;
            p.most_parts = 2;
          }),
      Changed<P>("short parts by columns", [](P& p) {
        p.threads_by_columns = p.most_threads_by_columns = 32;
        p.least_columns_of_part = 512;
        p.most_bytes_along = 0;
      })};
}

std::vector<Named<RowsPolicy>> RowsPolicies() {
  using P = RowsPolicy;
  std::vector<Named<RowsPolicy>> policies = {
      {"the library's", {}},
      Changed<P>("small blocks", [](P& p) { p.threads = p.threads_by_columns = 32; }),
      Changed<P>("large blocks", [](P& p) { p.threads = 512; }),
      Changed<P>("not by columns", [](P& p) { p.threads_by_columns = 0; }),
      Changed<P>(
          "a thread for a row",
          [](P& p) {
            p.least_members = p.least_members_of_elements = 1;
            p.most_of_single_thread = 1 << 10;
          }),
      Changed<P>(
          "teams for all rows",
          [](P& p) {
            p.least_members = p.least_members_of_elements = 32;
            p.most_of_single_thread = 0;
          }),
      Changed<P>(
          "little for each thread",
          [](P& p) {
            p.vectors_of_thread = p.vectors_of_summing_thread = 1;
            p.elements_of_thread = p.elements_of_summing_thread = 1;
          }),
      Changed<P>(
          "much for each thread",
          [](P& p) {
            p.vectors_of_thread = p.vectors_of_summing_thread = 16;
            p.elements_of_thread = p.elements_of_summing_thread = 64;
          }),
      Changed<P>("no place for rows", [](P& p) { p.most_shared_bytes = 0; }),
      Changed<P>("little place for rows", [](P& p) { p.most_shared_bytes = 9 << 10; }),
      Changed<P>(
          "few blocks",
          [](P& p) {
            p.resident_threads = p.summing_threads = p.summing_threads_by_columns = 1;
            p.most_columns_bytes = 1;
          }),
      Changed<P>("many blocks", [](P& p) {
        p.resident_threads = p.summing_threads = p.summing_threads_by_columns = 1 << 14;
      })};
  for (const Named<RowsPolicy>& of_parts : PoliciesOfParts()) {
    policies.push_back(of_parts);
  }
  return policies;
}

class CudaOtherPolicies : public CudaTest {
 protected:
  TensorPointer Make(DataType type, const Sizes& dims, Layout layout = Layout::kContiguous) {
    auto tensor = std::make_shared<GpuTensor>(type, dims, layout);
    const bool is_mask = type == DataType::kBool;
    tensor->Fill(
        [&] { return static_cast<double>(random_.Integer(is_mask ? 0 : -3, is_mask ? 1 : 3)); });
    return tensor;
  }

  static OpTask TaskOf(const OpInfo& op, const std::vector<TensorPointer>& tensors) {
    OpTask task;
    task.op = &op;
    for (const TensorPointer& tensor : tensors) {
      task.tensors.push_back(tensor->GpuRef());
    }
    return task;
  }
  static std::vector<TensorRef> Refs(const OpTask& task) {
    return {task.tensors.begin(), task.tensors.end()};
  }

  /// Runs a plan on tensors, with a workspace of numbers that are none.
  static void Run(const PlanOf& plan, const std::vector<TensorRef>& tensors) {
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const Block workspace((*plan)->workspace());
    workspace.Fill(0xFF);
    std::vector<void*> operands;
    for (const TensorRef& tensor : tensors) {
      operands.push_back(tensor.data);
    }
    const Status status = (*plan)->Run(
        {.stream = kStream, .operands = operands, .workspace = workspace.data(), .scalars = {}});
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(Driver().cuStreamSynchronize(kStream), CUDA_SUCCESS);
  }

  void CheckMapWithSums(
      const MapPolicy& policy,
      DataType type,
      const Sizes& dims,
      const Sizes& of_sums,
      Layout layout) {
    const TensorPointer X = Make(type, dims, layout);
    const TensorPointer A = Make(type, dims, layout);
    const TensorPointer mask = Make(DataType::kBool, dims, layout);
    const TensorPointer Y = Make(type, dims, layout);
    const TensorPointer sums = Make(type, of_sums);
    const OpTask task = TaskOf(kAbsentMap, {X, A, mask, Y, sums});
    Run(MakeMapPlan(policy, kImage_absent_inputs, task, {device()}, &MakeMapSumPlan), Refs(task));
    Values expected;
    Values expected_sums(sums->HostValues().size());
    const Values x = X->HostValues();
    const Values a = A->HostValues();
    const Values negative = mask->HostValues();
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected.push_back(negative[i] != 0 ? -(x[i] + a[i]) : x[i] + a[i]);
      expected_sums[BroadcastPlace(of_sums, dims, i)] += expected[i];
    }
    Expect(*Y, expected);
    Expect(*sums, expected_sums);
  }

  /// Two dims of X by a count for each column, a power of two, so that quotients are exact.
  void CheckMap(const MapPolicy& policy, const Sizes& dims, Layout layout) {
    const TensorPointer X = Make(kFloat, dims, layout);
    const TensorPointer C = Make(kFloat, {dims.back()});
    C->Fill([&, power = 1]() mutable { return power = power == 64 ? 1 : power * 2; });
    const TensorPointer Y = Make(kFloat, dims, layout);
    OpTask task = TaskOf(kQuotient, {X, C, Y});
    task.tensors[1].dims = task.tensors[0].dims;
    task.tensors[1].strides = {0, 1};
    Run(MakeMapPlan(policy, kImage_quotients, task, {device()}, nullptr), Refs(task));
    Values expected = X->HostValues();
    const Values counts = C->HostValues();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] /= counts[i % counts.size()];
    }
    Expect(*Y, expected);
  }

  /// Rows with something for each column: Y = (X + A) * scale + sum(X + 2 A), sums of X + A.
  void CheckColumns(const RowsPolicy& policy, DataType type, const Sizes& dims) {
    const TensorPointer X = Make(type, dims);
    const TensorPointer A = Make(type, dims);
    const TensorPointer scale = Make(type, {dims[1]});
    const TensorPointer Y = Make(type, dims);
    const TensorPointer sums = Make(type, {dims[1]});
    const std::vector<TensorRef> tensors = {
        X->GpuRef(), A->GpuRef(), scale->GpuRef(), Y->GpuRef(), sums->GpuRef()};
    Run(MakeRowsPlan(
            {.device = device(), .policy = policy}, kImage_absent_inputs,
            RowsKernelsOf<AbsentRows>("AbsentRows"), tensors, internal::AlongAxis(1)),
        tensors);
    Values expected = X->HostValues();
    const Values a = A->HostValues();
    const Values by = scale->HostValues();
    Values of_columns(by.size());
    for (std::size_t begin = 0; begin < expected.size(); begin += by.size()) {
      double total = 0;
      for (std::size_t i = 0; i < by.size(); ++i) {
        total += expected[begin + i] + 2 * a[begin + i];
        of_columns[i] += expected[begin + i] + a[begin + i];
      }
      for (std::size_t i = 0; i < by.size(); ++i) {
        expected[begin + i] = (expected[begin + i] + a[begin + i]) * by[i] + total;
      }
    }
    Expect(*Y, expected);
    Expect(*sums, of_columns);
  }

  /// Rows along an axis of two: Y = X + A - B + sum(X + 2 A + 3 B).
  void CheckTotals(const RowsPolicy& policy, DataType type, const Sizes& dims, int axis) {
    const TensorPointer X = Make(type, dims);
    const TensorPointer A = Make(type, dims);
    const TensorPointer B = Make(type, dims);
    const TensorPointer Y = Make(type, dims);
    const std::vector<TensorRef> tensors = {X->GpuRef(), A->GpuRef(), B->GpuRef(), Y->GpuRef()};
    Run(MakeRowsPlan(
            {.device = device(), .policy = policy}, kImage_absent_inputs,
            RowsKernelsOf<AbsentTotals>("AbsentTotals"), tensors, internal::AlongAxis(axis)),
        tensors);
    Values expected = X->HostValues();
    const Values a = A->HostValues();
    const Values b = B->HostValues();
    const auto columns = static_cast<std::size_t>(dims[1]);
    Values totals(static_cast<std::size_t>(dims[static_cast<std::size_t>(1 - axis)]));
    const auto row_of = [&](std::size_t i) { return axis == 1 ? i / columns : i % columns; };
    for (std::size_t i = 0; i < expected.size(); ++i) {
      totals[row_of(i)] += expected[i] + 2 * a[i] + 3 * b[i];
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] += a[i] - b[i] + totals[row_of(i)];
    }
    Expect(*Y, expected);
  }

 private:
  static void Expect(const GpuTensor& actual, const Values& expected) {
    EXPECT_EQ(actual.GpuValues(), expected);
    EXPECT_TRUE(actual.SurroundingsIntact());
  }

  reference::Random random_{"other policies"};
};

TEST_F(CudaOtherPolicies, CutMapsOtherwise) {
  for (const auto& [name, policy] : MapPolicies()) {
    SCOPED_TRACE(name);
    // Dense but for the counts in whole vectors, rows with gaps, rows of odd lengths, one element.
    CheckMap(policy, {30, 64}, Layout::kContiguous);
    CheckMap(policy, {30, 64}, Layout::kStrided);
    CheckMap(policy, {31, 37}, Layout::kContiguous);
    CheckMap(policy, {31, 37}, Layout::kStrided);
    CheckMap(policy, {1, 1}, Layout::kContiguous);
  }
}

TEST_F(CudaOtherPolicies, CutSumsOfMapsOtherwise) {
  for (const auto& [name, policy] : MapPolicies()) {
    for (const DataType type : {kFloat, kHalf}) {
      SCOPED_TRACE(name + ", " + std::string(ToString(type)));
      // No sums; sums along memory, in vectors and one by one.
      CheckMapWithSums(policy, type, {16, 64}, {16, 64}, Layout::kContiguous);
      CheckMapWithSums(policy, type, {9, 200}, {9, 1}, Layout::kContiguous);
      CheckMapWithSums(policy, type, {9, 201}, {9, 1}, Layout::kStrided);
      // Across memory: whole vectors, several rows for one, and single elements.
      CheckMapWithSums(policy, type, {300, 24}, {24}, Layout::kContiguous);
      CheckMapWithSums(policy, type, {257, 6}, {6}, Layout::kContiguous);
      CheckMapWithSums(policy, type, {130, 23}, {23}, Layout::kStrided);
      // Into one element, of which the last are no vector.
      CheckMapWithSums(policy, type, {3, 999}, {1}, Layout::kContiguous);
    }
  }
}

/// Sums of as many pieces as blocks are worth need workspace, those of one piece none.
TEST_F(CudaOtherPolicies, DecideOnPiecesOfSums) {
  const TensorPointer X = Make(kFloat, {9, 2000});
  const TensorPointer mask = Make(DataType::kBool, {9, 2000});
  const TensorPointer sums = Make(kFloat, {9, 1});
  const OpTask task = TaskOf(kAbsentMap, {X, X, mask, X, sums});
  for (const std::int64_t least_steps : {1, 1 << 20}) {
    const MapPolicy policy = {.summing_threads = 32, .least_steps = least_steps};
    const PlanOf plan =
        MakeMapPlan(policy, kImage_absent_inputs, task, {device()}, &MakeMapSumPlan);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ((*plan)->workspace() > 0, least_steps == 1);
  }
}

/// Along memory and across it, rows that begin between vectors, and rows that are cut into parts.
TEST_F(CudaOtherPolicies, CutRowsOtherwise) {
  for (const auto& [name, policy] : RowsPolicies()) {
    SCOPED_TRACE(name);
    for (const DataType type : {kFloat, kHalf}) {
      CheckTotals(policy, type, {9, 256}, 1);
      CheckTotals(policy, type, {9, 257}, 1);
      CheckTotals(policy, type, {300, 5}, 1);
      CheckTotals(policy, type, {40, 16}, 0);
      CheckTotals(policy, type, {3, 129}, 0);
    }
    CheckTotals(policy, kFloat, {20, 4096}, 0);
    CheckTotals(policy, kFloat, {2, 20000}, 1);
    CheckTotals(policy, kFloat, {2, 20001}, 1);
    CheckTotals(policy, kFloat, {5000, 3}, 0);
  }
}

TEST_F(CudaOtherPolicies, CutRowsWithColumnsOtherwise) {
  const std::int64_t many = std::int64_t{20} * device().multiprocessors() + 3;
  const std::vector<std::pair<DataType, Sizes>> all = {
      {kFloat, {7, 64}},
      {kFloat, {7, 63}},
      {kFloat, {many, 16}},
      {DataType::kDouble, {many, 15}},
      {kFloat, {2, 20000}},
      {kFloat, {5, 20001}},
      {DataType::kDouble, {many, 700}}};
  support::Turns turns(3);
  for (const auto& [name, policy] : RowsPolicies()) {
    SCOPED_TRACE(name);
    for (const auto& [type, dims] : all) {
      if (turns.Next()) {
        CheckColumns(policy, type, dims);
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
