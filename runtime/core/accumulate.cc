#include "core/accumulate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/cpu_candidates.h"
#include "core/element.h"
#include "core/tensor_memory.h"

namespace gradsmith::internal {

namespace {

/// What is added to an output, dense, and where to.
struct Addend {
  TensorRef output;
  std::vector<std::byte> bytes;
};

template <typename T>
void Add(const Addend& addend) {
  const T* from = reinterpret_cast<const T*>(addend.bytes.data());
  T* to = static_cast<T*>(addend.output.data);
  const Dims& dims = addend.output.dims;
  const Strides& strides = addend.output.strides;
  Dims index = Dims::Filled(dims.size(), 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < NumElements(dims); ++i) {
    to[offset] = Convert<T>(Convert<Accumulator<T>>(to[offset]) + Convert<Accumulator<T>>(from[i]));
    for (int axis = dims.size() - 1; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) {
        break;
      }
      offset -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

bool Accumulates(const TensorRef& output) {
  return output.present && output.accumulate;
}

/// Kernels of the CPU know nothing of preparing: a run into memory apart leaves what they choose.
Status Prepare(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  std::vector<TensorRef> apart(outputs.begin(), outputs.end());
  std::vector<std::unique_ptr<std::byte[]>> memory;
  for (TensorRef& output : apart) {
    if (output.present) {
      memory.push_back(std::make_unique_for_overwrite<std::byte[]>(SpanBytes(output)));
      output.data = memory.back().get();
    }
    // As RunOnCpu does with those that are added to.
    if (Accumulates(output)) {
      output.strides = ContiguousStrides(output.dims);
    }
  }
  return row.run(context, attributes, inputs, apart);
}

}  // namespace

Status RunOnCpu(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (context.preparing()) {
    return CpuHasCandidates() ? Prepare(row, context, attributes, inputs, outputs) : Status();
  }
  if (std::none_of(outputs.begin(), outputs.end(), Accumulates)) {
    return row.run(context, attributes, inputs, outputs);
  }
  std::vector<TensorRef> apart(outputs.begin(), outputs.end());
  std::vector<Addend> addends;
  addends.reserve(outputs.size());
  for (TensorRef& output : apart) {
    if (Accumulates(output)) {
      const auto count = static_cast<std::size_t>(NumElements(output.dims));
      addends.push_back({output, std::vector<std::byte>(count * SizeOf(output.type))});
      output = TensorRef(output.type, addends.back().bytes.data(), output.dims, output.device);
    }
  }
  if (Status status = row.run(context, attributes, inputs, apart); !status.ok()) {
    return status;
  }
  for (const Addend& addend : addends) {
    VisitFloatingType(
        addend.output.type, [&]<typename T>(std::type_identity<T>) { Add<T>(addend); });
  }
  return {};
}

}  // namespace gradsmith::internal
