#ifndef GRADSMITH_PATTERNS_RUN_FUNCTOR_H_
#define GRADSMITH_PATTERNS_RUN_FUNCTOR_H_

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/arguments.h"
#include "cuda/kernel_image.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/rows.h"
#include "patterns/rows_info.h"
#include "patterns/windows.h"

/// How a kernel that is a functor on a pattern runs on whichever backend the context has. It has
/// one function for all of them, Run:
///
///     constexpr FunctorKernels kSoftmax = {
///         .name = "Softmax",
///         .operands = operands::Softmax::kNames,  // generated of softmax/kernels.h
///         .image = &cuda::kImage_mylib_softmax_rows};
///
///     Status Softmax::Run(
///         const Context& context, const Attributes& attributes,
///         const Inputs& inputs, const Outputs& outputs) {
///       return RowsOnBackend<SoftmaxRows>(
///           context, kSoftmax, AlongAxis(attributes.axis), {}, inputs.X, outputs.Y);
///     }
///
/// where softmax_rows.cu has GRADSMITH_ROWS_KERNELS(Softmax, SoftmaxRows). Dims and types are
/// compared with what the pattern takes.
namespace gradsmith::internal {

/// FunctorKernels are those that nvcc made of an operator's functor.
struct FunctorKernels {
  /// The name that the .cu file calls them by.
  std::string_view name;
  /// The names of the operands in the pattern's order, for messages.
  std::span<const std::string_view> operands;
  const cuda::KernelImage* image = nullptr;
};

/// FunctorCall is a call of an operator as its kernels see it.
struct FunctorCall {
  const FunctorKernels& kernels;
  int inputs = 0;
  std::span<const TensorRef> tensors;
};

/// RunFunctorOfRows computes rows on CUDA. It returns an error in a build without CUDA, or without
/// nvcc.
Status RunFunctorOfRows(
    const Context& context,
    const FunctorCall& call,
    const cuda::RowsKernels& kernels,
    const RowsAxes& axes,
    std::span<const double> scalars);

/// RunFunctorOfWindows computes a reduction of windows on CUDA, or where `gathers` is true a
/// gather. It returns an error in a build without CUDA, or without nvcc.
Status RunFunctorOfWindows(
    const Context& context,
    const FunctorCall& call,
    const WindowsGeometry& windows,
    bool gathers);

/// RowsOnBackend computes rows of a functor's operands.
template <typename Functor, typename... Refs>
Status RowsOnBackend(
    const Context& context,
    const FunctorKernels& kernels,
    const RowsAxes& axes,
    std::initializer_list<double> scalars,
    const Refs*... operands) {
  if (context.backend() == Backend::kCpu) {
    return RowsOnCpu<Functor>(context, axes, scalars, operands...);
  }
  static_assert(sizeof...(operands) == RowsPlaces<Functor>::kEnd);
  const std::array<TensorRef, sizeof...(operands)> tensors = {OperandOrAbsent(operands)...};
  return RunFunctorOfRows(
      context, {kernels, CountsOf<Functor>().all_inputs(), tensors},
      cuda::RowsKernelsOf<Functor>(kernels.name), axes, {scalars.begin(), scalars.size()});
}

/// ReduceWindowsOnBackend computes a reduction. `windows` may be the error of what says where they
/// lie, which is returned. So it is below.
template <typename Functor, typename... Refs>
Status ReduceWindowsOnBackend(
    const Context& context,
    const FunctorKernels& kernels,
    const Result<WindowsGeometry>& windows,
    const Refs*... operands) {
  static_assert(sizeof...(operands) == (Functor::kPlaces ? 3 : 2));
  if (!windows.ok()) {
    return windows.status();
  }
  const std::array<TensorRef, sizeof...(operands)> tensors = {OperandOrAbsent(operands)...};
  constexpr WindowsOperands kOperands = {.over_input = 1U, .indices = Functor::kPlaces ? 4U : 0U};
  if (Status status = CheckWindows(tensors, *windows, kOperands, kernels.operands); !status.ok()) {
    return status;
  }
  if (context.backend() == Backend::kCpu) {
    ReduceWindowsOnCpu<Functor>(context, tensors[0].type, MakeWindowsTask(*windows, tensors));
    return {};
  }
  return RunFunctorOfWindows(context, {kernels, 1, tensors}, *windows, /*gathers=*/false);
}

/// GatherWindowsOnBackend computes a gather. Its kernels on CUDA are those of
/// GRADSMITH_GATHER_WINDOWS_KERNELS_BY_ELEMENTS, in which the functor's Take is what it is here.
template <typename Functor, typename... Refs>
Status GatherWindowsOnBackend(
    const Context& context,
    const FunctorKernels& kernels,
    const Result<WindowsGeometry>& windows,
    const Refs*... operands) {
  static_assert(sizeof...(operands) == Functor::kOutput + 1);
  if (!windows.ok()) {
    return windows.status();
  }
  const std::array<TensorRef, sizeof...(operands)> tensors = {OperandOrAbsent(operands)...};
  constexpr bool kHasIndices =
      Functor::kKey >= 0 && std::is_same_v<typename Functor::template Key<float>, std::int64_t>;
  constexpr WindowsOperands kOperands = {
      .over_input = 1U << Functor::kOutput | (Functor::kReadsInput ? 2U : 0U),
      .indices = kHasIndices ? 1U << Functor::kKey : 0U};
  if (Status status = CheckWindows(tensors, *windows, kOperands, kernels.operands); !status.ok()) {
    return status;
  }
  if (context.backend() == Backend::kCpu) {
    GatherWindowsOnCpu<Functor>(context, tensors[0].type, MakeWindowsTask(*windows, tensors));
    return {};
  }
  return RunFunctorOfWindows(
      context, {kernels, Functor::kOutput, tensors}, *windows, /*gathers=*/true);
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_RUN_FUNCTOR_H_
