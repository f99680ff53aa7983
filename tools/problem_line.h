#ifndef GRADSMITH_TOOLS_PROBLEM_LINE_H_
#define GRADSMITH_TOOLS_PROBLEM_LINE_H_

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/attributes.h"
#include "gradsmith/kernel.h"
#include "gradsmith/registry.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::tools {

/// ProblemLine is one line of a list of problems:
///
///     ConvGrad half X=128x64x56x56 W=64x64x3x3 pads=1,1,1,1 layout=NHWC
///
/// an op, the name of one of its rows, the dims of its inputs, and attributes. A tensor without
/// dims is "scalar", and the tensors of a list have commas between: "W=2x3,4 rate=scalar". An input
/// that is the gradient of the forward's output may be left out. The layout is NCHW unless it is
/// said. "outputs=dX,dW" names the outputs that are wanted, all unless it is said.
/// "accumulate=dW,dB" names the gradients that are added to what is there: such calls are problems
/// of their own. Programs write such lines where GRADSMITH_RECORD is set (core/problem_words.h).
struct ProblemLine {
  std::string op;
  std::string row;
  std::map<std::string, std::vector<Dims>> inputs;  ///< of a list those of its tensors, else one
  std::vector<Attribute> attributes;
  bool channels_last = false;
  std::set<std::string> outputs;  ///< empty: all
  std::set<std::string> accumulated;
};

/// ParseProblemLine reads a line; the error names the word that is wrong.
Result<ProblemLine> ParseProblemLine(const Registry& registry, const std::string& text);

/// Shapes are the dims of all of a call's arguments, one for each tensor of a list, in the schema's
/// order. Inputs that are absent have none.
struct Shapes {
  std::vector<std::optional<Dims>> inputs;
  std::vector<std::optional<Dims>> outputs;
  /// How many tensors each list has; 1 where there is none.
  int list_length = 1;
};

/// FindRow returns the row of a line on a backend.
Result<const Row*> FindRow(const Registry& registry, const ProblemLine& line, Backend backend);

/// InferShapes works out what the line leaves out.
Result<Shapes> InferShapes(const Registry& registry, const ProblemLine& given, const Row& row);

/// SpecsOf returns what the schema says of each of a call's tensors, as Shapes has them: of a list
/// as often as it has tensors.
std::vector<const TensorSpec*> SpecsOf(std::span<const TensorSpec> specs, int list_length);

/// SetOutputs makes absent the outputs that the line does not want, and marks those that it says
/// are added to.
void SetOutputs(
    const OpSchema& op,
    const ProblemLine& line,
    int list_length,
    std::span<TensorRef> outputs);

}  // namespace gradsmith::tools

#endif  // GRADSMITH_TOOLS_PROBLEM_LINE_H_
