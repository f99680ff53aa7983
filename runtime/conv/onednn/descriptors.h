#ifndef GRADSMITH_CONV_ONEDNN_DESCRIPTORS_H_
#define GRADSMITH_CONV_ONEDNN_DESCRIPTORS_H_

#include <dnnl.hpp>
#include <functional>

#include "conv/task.h"

/// A task in oneDNN's terms. All of it may throw dnnl::error. What differs between oneDNN 2 and 3
/// is here alone.
namespace gradsmith::conv {

/// ArgumentOf returns by what number oneDNN's primitive knows an operand (kBias among them).
int ArgumentOf(Primitive primitive, int operand);

/// GivenDesc returns an operand of the task as the caller lays it out.
dnnl::memory::desc GivenDesc(const Task& task, int operand);

/// Attributes are those of every primitive: workspace is passed in, and float stays float.
dnnl::primitive_attr Attributes();

/// ForEachImplementation calls `visit` with oneDNN's implementations of the task, in its order,
/// until that returns false. Where `any_layout`, x and y may have whichever layout suits the
/// implementation, otherwise that of the caller; the filter always may.
void ForEachImplementation(
    const Task& task,
    bool any_layout,
    const std::function<bool(const dnnl::primitive_desc&)>& visit);

/// BiasAdder returns the primitive that adds a bias to each of x's channels, in place: oneDNN's
/// backward-data takes none.
dnnl::primitive_desc BiasAdder(const dnnl::memory::desc& x, const dnnl::memory::desc& bias);

/// ShapedBias returns the task's bias as something that is broadcast to x.
dnnl::memory::desc ShapedBias(const Task& task);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_ONEDNN_DESCRIPTORS_H_
