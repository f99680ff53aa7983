#ifndef GRADSMITH_TESTS_SUPPORT_FAKE_OP_H_
#define GRADSMITH_TESTS_SUPPORT_FAKE_OP_H_

#include <span>

#include "gradsmith/registry.h"
#include "gradsmith/schema.h"
#include "support/op_tests.h"

/// A small op and its gradient, written by hand, on which the harness itself is tested:
///
///     Scale:      Y[n, c, d] = X[n, c, d] * W[c] * factor + B[c];   total[c] = total[c] + sum of
///     X[:, c, :] ScaleGrad:  dX = dY * W * factor;   dW[c] = factor * sum of dY * X;   dB[c] = sum
///     of dY
///
/// B and all outputs but Y are optional, total may be written in place. Attributes: factor (1 to
/// 4), weight (0 to 1, unused), steps (a list as long as D, unused), mode (KEEP or NEGATE, unused).
namespace gradsmith::support::fake {

/// Index of each row in Rows().
enum RowIndex { kScaleFloat, kScaleDouble, kScaleGradFloat, kScaleGradDouble };

std::span<const Row> Rows();

/// FakeRegistry returns a registry of these rows.
const Registry& FakeRegistry();

/// TestsOf returns the tables that a generated shard would have for the row's op, typed functions
/// that call the row among them.
const OpTests& TestsOf(RowIndex row);

/// Run is the honest kernel of the row's op.
Status Run(
    RowIndex row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::support::fake

#endif  // GRADSMITH_TESTS_SUPPORT_FAKE_OP_H_
