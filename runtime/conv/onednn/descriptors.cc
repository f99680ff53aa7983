#include "conv/onednn/descriptors.h"

#include <array>
#include <cstdint>

#include "conv/onednn/convolution.h"
#include "onednn/library.h"

namespace gradsmith::conv {

namespace {

using dnnl::memory;
using MemoryDims = memory::dims;
using Visit = std::function<bool(const dnnl::primitive_desc&)>;

constexpr auto kFloat32 = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

/// What oneDNN says of the axes.
struct Window {
  explicit Window(const Problem& problem) {
    for (int i = 0; i < problem.spatial_rank; ++i) {
      const Axis& axis = problem.axes[i];
      strides.push_back(axis.stride);
      dilates.push_back(axis.dilation - 1);
      begins.push_back(axis.pad_begin);
      ends.push_back(axis.pad_end);
    }
  }

  MemoryDims strides;
  MemoryDims dilates;
  MemoryDims begins;
  MemoryDims ends;
};

/// An operand's dims: a filter's begin with its groups where there are several.
MemoryDims SizesOf(const Task& task, int operand) {
  const Problem& problem = task.problem;
  if (operand == kBias) {
    return {task.primitive == Primitive::kForward ? problem.y_channels : problem.x_channels};
  }
  const Dims dims = DimsOf(problem, static_cast<Operand>(operand));
  MemoryDims sizes(dims.begin(), dims.end());
  if (operand == kW && problem.group > 1) {
    sizes[0] /= problem.group;
    sizes.insert(sizes.begin(), problem.group);
  }
  return sizes;
}

struct Operands {
  Operands(const Task& task, bool any_layout)
      : x(any_layout ? AnyDesc(task, kX) : GivenDesc(task, kX)),
        w(AnyDesc(task, kW)),
        y(any_layout ? AnyDesc(task, kY) : GivenDesc(task, kY)),
        bias(task.bias ? GivenDesc(task, kBias) : memory::desc()) {}

  static memory::desc AnyDesc(const Task& task, int operand) {
    return {SizesOf(task, operand), kFloat32, memory::format_tag::any};
  }

  memory::desc x;
  memory::desc w;
  memory::desc y;
  memory::desc bias;
};

/// A forward's descriptor, and what oneDNN 2 goes on reading while it iterates over
/// implementations: the operation's.
struct ForwardDescriptor {
#if DNNL_VERSION_MAJOR < 3
  using Operation = dnnl::convolution_forward::desc;
  ForwardDescriptor(const Operands& operands, const Window& window, bool bias)
      : operation(
            bias ? Operation(
                       kTraining,
                       kDirect,
                       operands.x,
                       operands.w,
                       operands.bias,
                       operands.y,
                       window.strides,
                       window.dilates,
                       window.begins,
                       window.ends)
                 : Operation(
                       kTraining,
                       kDirect,
                       operands.x,
                       operands.w,
                       operands.y,
                       window.strides,
                       window.dilates,
                       window.begins,
                       window.ends)),
        primitive(operation, Attributes(), onednn::Engine()) {}

  Operation operation;
#else
  using Primitive = dnnl::convolution_forward::primitive_desc;
  ForwardDescriptor(const Operands& operands, const Window& window, bool bias)
      : primitive(
            bias ? Primitive(
                       onednn::Engine(),
                       kTraining,
                       kDirect,
                       operands.x,
                       operands.w,
                       operands.bias,
                       operands.y,
                       window.strides,
                       window.dilates,
                       window.begins,
                       window.ends,
                       Attributes())
                 : Primitive(
                       onednn::Engine(),
                       kTraining,
                       kDirect,
                       operands.x,
                       operands.w,
                       operands.y,
                       window.strides,
                       window.dilates,
                       window.begins,
                       window.ends,
                       Attributes())) {}
#endif
  dnnl::convolution_forward::primitive_desc primitive;
};

/// A gradient's, likewise: the forward's too, which is a hint for it.
template <typename Kind>
struct BackwardDescriptor {
#if DNNL_VERSION_MAJOR < 3
  BackwardDescriptor(const Operands& operands, const Window& window)
      : forward(operands, window, false),
        operation(
            kDirect,
            operands.x,
            operands.w,
            operands.y,
            window.strides,
            window.dilates,
            window.begins,
            window.ends),
        primitive(operation, Attributes(), onednn::Engine(), forward.primitive) {}

  ForwardDescriptor forward;
  typename Kind::desc operation;
#else
  BackwardDescriptor(const Operands& operands, const Window& window)
      : forward(operands, window, false),
        primitive(
            onednn::Engine(),
            kDirect,
            operands.x,
            operands.w,
            operands.y,
            window.strides,
            window.dilates,
            window.begins,
            window.ends,
            forward.primitive,
            Attributes()) {}

  ForwardDescriptor forward;
#endif
  typename Kind::primitive_desc primitive;
};

template <typename PrimitiveDescriptor>
void VisitAll(PrimitiveDescriptor* descriptor, const Visit& visit) {
  while (visit(*descriptor) && descriptor->next_impl()) {
  }
}

template <typename Kind>
void VisitBackward(const Operands& operands, const Window& window, const Visit& visit) {
  BackwardDescriptor<Kind> descriptor(operands, window);
  VisitAll(&descriptor.primitive, visit);
}

}  // namespace

int ArgumentOf(Primitive primitive, int operand) {
  static constexpr std::array<std::array<int, kCpuOperands>, 3> kArguments = {
      {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
       {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_BIAS},
       {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_BIAS}}};
  return kArguments.at(static_cast<std::size_t>(primitive)).at(static_cast<std::size_t>(operand));
}

memory::desc GivenDesc(const Task& task, int operand) {
  if (operand == kBias) {
    return {SizesOf(task, kBias), kFloat32, MemoryDims{1}};
  }
  const Strides& strides = StridesOf(task.problem, static_cast<Operand>(operand));
  const MemoryDims sizes = SizesOf(task, operand);
  MemoryDims steps(strides.begin(), strides.end());
  if (sizes.size() > steps.size()) {
    steps.insert(steps.begin(), steps[0] * sizes[1]);
  }
  return {sizes, kFloat32, steps};
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

void ForEachImplementation(const Task& task, bool any_layout, const Visit& visit) {
  const Operands operands(task, any_layout);
  const Window window(task.problem);
  if (task.primitive == Primitive::kForward) {
    ForwardDescriptor descriptor(operands, window, task.bias);
    VisitAll(&descriptor.primitive, visit);
  } else if (task.primitive == Primitive::kBackwardData) {
    VisitBackward<dnnl::convolution_backward_data>(operands, window, visit);
  } else {
    VisitBackward<dnnl::convolution_backward_weights>(operands, window, visit);
  }
}

memory::desc ShapedBias(const Task& task) {
  MemoryDims sizes(2 + static_cast<std::size_t>(task.problem.spatial_rank), 1);
  sizes[1] = SizesOf(task, kBias)[0];
  const MemoryDims steps(sizes.size(), 1);
  return {sizes, kFloat32, steps};
}

dnnl::primitive_desc BiasAdder(const memory::desc& x, const memory::desc& bias) {
  const auto add = dnnl::algorithm::binary_add;
#if DNNL_VERSION_MAJOR < 3
  return dnnl::binary::primitive_desc(
      dnnl::binary::desc(add, x, bias, x), Attributes(), onednn::Engine());
#else
  return dnnl::binary::primitive_desc(onednn::Engine(), add, x, bias, x, Attributes());
#endif
}

}  // namespace gradsmith::conv
