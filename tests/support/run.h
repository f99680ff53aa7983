#ifndef GRADSMITH_TESTS_SUPPORT_RUN_H_
#define GRADSMITH_TESTS_SUPPORT_RUN_H_

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/subject.h"

/// Steps that checks share.
namespace gradsmith::support {

/// The bytes of each output's elements.
using OutputBytes = std::vector<std::vector<std::byte>>;

/// MakeKernel creates the row's kernel, or fails.
std::optional<Kernel>
MakeKernel(const Subject& subject, const std::vector<Attribute>& attributes, Report& report);

/// AllPresent returns that every tensor is there.
Present AllPresent(std::span<const TensorSpec> tensors);

/// Trimmed returns the arguments without the absent ones at the end.
template <typename Ref>
std::vector<Ref> Trimmed(std::vector<Ref> arguments) {
  while (!arguments.empty() && !arguments.back().present) {
    arguments.pop_back();
  }
  return arguments;
}

/// IsBound returns whether a bound of an attribute's numbers leaves some out.
inline bool IsBound(double bound) {
  return std::abs(bound) < std::numeric_limits<double>::max();
}

/// ListLength returns how many values a list attribute has on this case, or nothing where the
/// schema does not say.
std::optional<int>
ListLength(const Subject& subject, const Case& problem, const AttributeSpec& spec);

/// OutputSubsets returns every choice of outputs that a call may ask for: one at least.
std::vector<Present> OutputSubsets(const Subject& subject);

/// HasOneOrder returns whether a row adds up in the same order whichever outputs are asked for. On
/// a GPU a row that is repeatable by policy may not, as docs/cuda.md says: dB of a convolution
/// comes from the copy of dY that another gradient makes, where there is one.
bool HasOneOrder(const Row& row);

/// MakeExactArguments returns the case's arguments with integers, of which no order of evaluation
/// makes other bits where sums alone are made of them.
Arguments MakeExactArguments(
    const Subject& subject,
    const Case& problem,
    const Present& inputs,
    const std::string& seed);

/// MakeRandomArguments returns the case's arguments with the oracle's random data; for a row that
/// is never repeatable, MakeExactArguments.
Arguments MakeRandomArguments(
    const Subject& subject,
    const Case& problem,
    const Present& inputs,
    const std::string& seed);

/// RunPoisoned poisons the outputs, runs, and checks the run's status and what lies around the
/// arguments.
bool RunPoisoned(
    const Subject& subject,
    const Kernel& kernel,
    const Context& context,
    Arguments& arguments,
    const Present& present,
    const std::string& doing,
    Report& report);

/// BytesOf returns the outputs' elements.
OutputBytes BytesOf(const Subject& subject, const Arguments& arguments);

/// CompareBytes fails where an output that is present has other bits.
void CompareBytes(
    const Subject& subject,
    const OutputBytes& actual,
    const OutputBytes& expected,
    const Present& present,
    const std::string& doing,
    Report& report);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_RUN_H_
