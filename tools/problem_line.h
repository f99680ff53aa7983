#ifndef GRADSMITH_TOOLS_PROBLEM_LINE_H_
#define GRADSMITH_TOOLS_PROBLEM_LINE_H_

#include <map>
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
/// an op, the name of one of its rows, the dims of its inputs, and attributes. An input that is the
/// gradient of the forward's output may be left out. The layout is NCHW unless it is said.
/// "outputs=dX,dW" names the outputs that are wanted, all unless it is said. "accumulate=dW,dB"
/// names the gradients that are added to what is there: such calls are problems of their own.
/// Programs write such lines where GRADSMITH_RECORD is set (core/problem_words.h).
struct ProblemLine {
  std::string op;
  std::string row;
  std::map<std::string, Dims> inputs;
  std::vector<Attribute> attributes;
  bool channels_last = false;
  std::set<std::string> outputs;  ///< empty: all
  std::set<std::string> accumulated;
};

/// ParseProblemLine reads a line; the error names the word that is wrong.
Result<ProblemLine> ParseProblemLine(const Registry& registry, const std::string& text);

/// Shapes are the dims of all of a call's arguments, in the schema's order.
struct Shapes {
  std::vector<Dims> inputs;
  std::vector<Dims> outputs;
};

/// FindRow returns the row of a line on a backend.
Result<const Row*> FindRow(const Registry& registry, const ProblemLine& line, Backend backend);

/// InferShapes works out what the line leaves out.
Result<Shapes> InferShapes(const Registry& registry, const ProblemLine& given, const Row& row);

/// SetOutputs makes absent the outputs that the line does not want, and marks those that it says
/// are added to.
void SetOutputs(const OpSchema& op, const ProblemLine& line, std::span<TensorRef> outputs);

}  // namespace gradsmith::tools

#endif  // GRADSMITH_TOOLS_PROBLEM_LINE_H_
