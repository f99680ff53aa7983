#ifndef GRADSMITH_TESTS_KERNELS_DEVICE_SAMPLE_OPS_H_
#define GRADSMITH_TESTS_KERNELS_DEVICE_SAMPLE_OPS_H_

#include <array>
#include <string_view>

#include "absent/functors.h"
#include "cuda/kernel_images.h"
#include "cuda/op_task.h"

/// Operators of the pattern `map` on kernels of the tests, which are in no schema.
namespace gradsmith::cuda {

inline constexpr std::array<std::string_view, 5> kAbsentMapOperands = {
    "X", "A", "mask", "Y", "sums"};
inline constexpr OpInfo kAbsentMap = {
    .name = "AbsentMap",
    .operands = kAbsentMapOperands,
    .inputs = 3,
    .image = &kImage_absent_inputs,
    .masks = absent::AbsentMap::kMasks,
    .optional = absent::AbsentMap::kOptional};

/// Y = X / C by QuotientByCount.
inline constexpr std::array<std::string_view, 3> kQuotientOperands = {"X", "C", "Y"};
inline constexpr OpInfo kQuotient = {
    .name = "Quotient",
    .operands = kQuotientOperands,
    .inputs = 2,
    .image = &kImage_quotients};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_KERNELS_DEVICE_SAMPLE_OPS_H_
