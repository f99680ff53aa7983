#ifndef GRADSMITH_TESTS_SUPPORT_CHECKS_H_
#define GRADSMITH_TESTS_SUPPORT_CHECKS_H_

#include <string>
#include <vector>

#include "support/op_tests.h"
#include "support/subject.h"

/// What is checked of every row, on every case. Each check reports instead of asserting, so that it
/// can itself be tested with kernels that lie. `seed` is the test's name: the data depends on
/// nothing else.
namespace gradsmith::support {

/// Small integers, so that every result is exactly representable: zero tolerance against the
/// oracle. Outputs that no order of evaluation gets exactly are compared as CheckRandom does, with
/// a note, if they are among the oracle's InexactOutputs, and fail otherwise.
Report CheckExact(const Subject& subject, const Case& problem, const std::string& seed);

/// Real numbers, rounded to the row's types first: AllowedError against the oracle. So is each
/// subset of the outputs of a row that may add up in another order for it.
Report CheckRandom(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckLayouts compares results as CheckExact does where inputs lie otherwise than outputs: these
/// are contiguous and those have gaps, and the other way round.
Report CheckLayouts(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckAttributes compares results as CheckExact does right after calls on the same arguments that
/// lack one of the case's attributes each: what a row keeps of a call must not be taken for
/// another's.
Report CheckAttributes(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckDefinition compares an operator that has a reference::Definition with it, on CheckRandom's
/// data.
Report CheckDefinition(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckSeams looks at each of the op's seams: where every element of an input is the same number,
/// so are those of the outputs, and as the schema says. A place that the row's types do not hold is
/// noted and passed over.
Report CheckSeams(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckRandom's data with one element of a tensor of several dims infinite or NaN: what it reaches
/// is as the oracle says, and what it does not reach is untouched by it.
Report CheckNotFinite(const Subject& subject, const Case& problem, const std::string& seed);

/// A gradient's outputs that are added to hold what was there plus what CheckExact expects.
Report CheckAccumulate(const Subject& subject, const Case& problem, const std::string& seed);

/// A gradient op against central differences of its forward op in double. Skipped where the forward
/// has no row of doubles on the CPU.
Report CheckGradient(const Subject& subject, const Case& problem, const std::string& seed);

/// Each subset of the optional outputs has the bits of the full run, and what was not asked for is
/// not touched. A row that may add up in another order for other outputs is run on CheckExact's
/// integers, of which no order makes other bits.
Report CheckOutputSubsets(const Subject& subject, const Case& problem, const std::string& seed);

/// Outputs that may be written in place of an input get the same bits there.
Report CheckInPlace(const Subject& subject, const Case& problem, const std::string& seed);

/// What the row says of being repeatable. Twice the same bits in deterministic contexts, also with
/// other numbers of threads and in a new one, and if the row is always repeatable, in one that is
/// not deterministic, too. A row that never is refuses a deterministic context.
Report CheckRepeat(const Subject& subject, const Case& problem, const std::string& seed);

/// CheckShapeOnly runs without the data of the inputs of which only the shape is needed: the
/// results have the same bits.
Report CheckShapeOnly(const Subject& subject, const Case& problem, const std::string& seed);

/// The typed functions give the bits, the dims and the errors of the dynamic door.
Report CheckDoors(const Subject& subject, const Case& problem, const std::string& seed);

/// The dims that the generator, the library and the oracle work out are the same, and with other
/// values of each attribute those of the library and the oracle; what the oracle refuses the
/// library refuses.
Report CheckShapes(const Subject& subject, const Case& problem, const std::string& seed);

/// Every way to get an argument wrong is refused, with the words that say which and why, and
/// nothing is written.
Report CheckBadArguments(const Subject& subject, const Case& problem, const std::string& seed);

/// Every way to get an attribute wrong, likewise.
Report CheckBadAttributes(const Subject& subject, const Case& problem, const std::string& seed);

/// The undeclared combinations next to the row, and the backends that it is not on, are refused
/// with a sentence that names the row and the first difference.
Report CheckNeighbours(const Subject& subject);

/// Kind is a check and when it applies.
struct Kind {
  std::string name;
  Report (*check)(const Subject& subject, const Case& problem, const std::string& seed);
  bool (*applies)(const Row& row, const OpTests& tests, const Case& problem);
};

/// CaseKinds returns the checks that are made of every row on every case.
const std::vector<Kind>& CaseKinds();

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_CHECKS_H_
