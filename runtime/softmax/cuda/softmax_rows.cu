#include "patterns/cuda/rows.cuh"
#include "softmax/functors.h"

using namespace gradsmith::softmax;

GRADSMITH_ROWS_KERNELS(Softmax, SoftmaxRows)
GRADSMITH_ROWS_KERNELS(SoftmaxGrad, SoftmaxGradRows)
GRADSMITH_ROWS_KERNELS(LogSoftmax, LogSoftmaxRows)
GRADSMITH_ROWS_KERNELS(LogSoftmaxGrad, LogSoftmaxGradRows)
