// What finding a row and calling through it costs, beside the bare indirect call. 64 ops x 4
// combinations with kernels that do nothing; every iteration picks an op and a combination
// pseudo-randomly, in all benchmarks alike.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"

namespace gradsmith {
namespace {

constexpr int kOps = 64;
constexpr std::array<DataType, 4> kTypes = {
    DataType::kFloat,
    DataType::kDouble,
    DataType::kMLFloat16,
    DataType::kBFloat16,
};
constexpr std::size_t kRows = kOps * kTypes.size();

Status DoNothing(
    const Context& /*context*/,
    const void* attributes,
    std::span<const ConstTensorRef> /*inputs*/,
    std::span<const TensorRef> /*outputs*/) {
  benchmark::DoNotOptimize(attributes);
  return {};
}

/// A dispatch table as large as a training framework's, with names as long as real ones.
struct SyntheticTable {
  std::vector<std::string> names;
  std::vector<OpSchema> schemas;
  std::vector<Row> rows;
  std::int32_t entry_line = 1;
  Registry registry;

  SyntheticTable() {
    for (int op = 0; op < kOps; ++op) {
      names.push_back("SyntheticNormalization" + std::to_string(op) + "Grad");
    }
    schemas.resize(kOps);
    for (int op = 0; op < kOps; ++op) {
      schemas[op].name = names[op];
      for (const DataType& type : kTypes) {
        rows.push_back(
            {.op = &schemas[op],
             .name = ToString(type),
             .types = std::span(&type, 1),
             .run = &DoNothing,
             .entry_line = &entry_line});
      }
    }
    const std::array<std::span<const Row>, 1> table = {std::span<const Row>(rows)};
    if (const Status status = registry.Add(table); !status.ok()) {
      std::cerr << status.message() << "\n";
      std::abort();
    }
  }
};

const SyntheticTable& Table() {
  static const SyntheticTable table;
  return table;
}

/// The next row to call: a linear congruential generator, the same cost in every benchmark.
std::size_t NextRow(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return (state >> 16U) % kRows;
}

void BareIndirectCall(benchmark::State& state) {
  const SyntheticTable& table = Table();
  const Context context({.threads = 1});
  std::uint32_t random = 1;
  for (auto iteration : state) {
    const Row& row = table.rows[NextRow(random)];
    benchmark::DoNotOptimize(row.run(context, nullptr, {}, {}).ok());
  }
}
BENCHMARK(BareIndirectCall);

void FindAndCall(benchmark::State& state) {
  const SyntheticTable& table = Table();
  const Context context({.threads = 1});
  std::uint32_t random = 1;
  for (auto iteration : state) {
    const std::size_t i = NextRow(random);
    const Row* row = table.registry.Find(
        table.names[i / kTypes.size()], {kTypes[i % kTypes.size()]}, Backend::kCpu);
    benchmark::DoNotOptimize(row->run(context, nullptr, {}, {}).ok());
  }
}
BENCHMARK(FindAndCall);

/// Everything a call costs beside the kernel's work: ConvGrad on an empty batch, arguments
/// validated.
void ValidatedCall(benchmark::State& state) {
  const Context context({.threads = 1});
  const ConvGradInputs<float> inputs = {
      .dY = {nullptr, {0, 4, 5, 5}},
      .X = {nullptr, {0, 3, 5, 5}},
      .W = {nullptr, {4, 3, 1, 1}},
  };
  std::array<float, 12> filter{};
  ConvGradInputs<float> with_filter = inputs;
  with_filter.W = {filter.data(), {4, 3, 1, 1}};
  const ConvGradOutputs<float> outputs = {.dX = {nullptr, {0, 3, 5, 5}}};
  for (auto iteration : state) {
    const Status status = ConvGrad<float>(context, {}, with_filter, outputs);
    if (!status.ok()) {
      state.SkipWithError(status.message().c_str());
      break;
    }
  }
}
BENCHMARK(ValidatedCall);

}  // namespace
}  // namespace gradsmith

BENCHMARK_MAIN();
