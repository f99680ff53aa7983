#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_ODD_PROBLEM_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_ODD_PROBLEM_H_

#include "conv/problem.h"

namespace gradsmith::conv {

/// OddProblem is a convolution of two axes whose numbers all differ from each other, so that none
/// can stand for another. Strides are left empty.
inline Problem OddProblem(DataType type) {
  Problem problem;
  problem.type = type;
  problem.batch = 5;
  problem.x_channels = 14;
  problem.y_channels = 22;
  problem.group = 2;
  problem.spatial_rank = 2;
  problem.axes[0] = {
      .x = 31, .w = 4, .y = 17, .stride = 6, .dilation = 8, .pad_begin = 9, .pad_end = 10};
  problem.axes[1] = {
      .x = 32, .w = 3, .y = 18, .stride = 7, .dilation = 11, .pad_begin = 12, .pad_end = 13};
  return problem;
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_ODD_PROBLEM_H_
