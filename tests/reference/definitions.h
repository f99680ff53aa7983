#ifndef GRADSMITH_TESTS_REFERENCE_DEFINITIONS_H_
#define GRADSMITH_TESTS_REFERENCE_DEFINITIONS_H_

#include <string_view>

#include "reference/oracle.h"

/// Operators with formulas that are the gradient of no other: no differences say what they should
/// give, and the formulas would be the only measure of themselves.
namespace gradsmith::reference {

/// Definition computes an operator's outputs of floating types in plain loops. Absent inputs are
/// missing from `inputs`.
using Definition = Tensors (*)(const Tensors& inputs, const Attributes& attributes);

/// DefinitionOf returns that of an operator, or null where it needs none. Copies of an operator
/// whose names go on, as those of tests/build/test_wrong_signs.py, have its.
Definition DefinitionOf(std::string_view op);

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_DEFINITIONS_H_
