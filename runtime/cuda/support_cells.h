#ifndef GRADSMITH_CUDA_SUPPORT_CELLS_H_
#define GRADSMITH_CUDA_SUPPORT_CELLS_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/graph.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// What a family that runs on cuDNN has gradsmith-support ask, which finds it in the family's
/// folder `support` and is the only program with that code. The folder's page.yaml says how
/// docs/support/README.md shows the answers.
namespace gradsmith::cuda {

/// SupportForm is an operation graph that may compute a cell.
struct SupportForm {
  /// internal::KernelName::form; empty for the problem as it is.
  std::string name;
  std::function<Result<OperationGraph>(const GraphTarget& target)> make_graph;
};

/// SupportCell is a problem and what may serve it beside our own kernels.
struct SupportCell {
  std::string primitive;
  /// The element types as the table writes them.
  std::string types;
  /// The type of the graph's tensors.
  DataType type = DataType::kFloat;
  bool channels_last = false;
  /// How many spatial axes there are.
  int axes = 0;
  /// What is special about the problem.
  std::string feature;
  /// The most promising first.
  std::vector<SupportForm> forms = {};
};

/// SupportQuestions are all cells of a family.
struct SupportQuestions {
  std::vector<SupportCell> cells;
  /// Whether cuDNN compiles all of the family's engines at run time, so that without a driver
  /// nothing can be said.
  bool needs_driver = false;
};

/// TypesOnCuda returns the types of an operator's rows on CUDA, one for each of its type
/// parameters.
using TypesOnCuda = std::vector<std::span<const DataType>> (*)(std::string_view op);

// A family has, in its own namespace:
//     cuda::SupportQuestions AskedOfCudnn(cuda::TypesOnCuda types_of);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_SUPPORT_CELLS_H_
