#ifndef GRADSMITH_CUDA_CUDNN_H_
#define GRADSMITH_CUDA_CUDNN_H_

#include <cudnn_cnn.h>
#include <cudnn_graph.h>
#include <cudnn_ops.h>

#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// cuDNN 9, loaded when first asked for.

#define GRADSMITH_CUDNN_FUNCTIONS(X)                          \
  X(cudnnGetVersion)                                          \
  X(cudnnGetErrorString)                                      \
  X(cudnnGetLastErrorString)                                  \
  X(cudnnCreate)                                              \
  X(cudnnDestroy)                                             \
  X(cudnnSetStream)                                           \
  X(cudnnBackendCreateDescriptor)                             \
  X(cudnnBackendDestroyDescriptor)                            \
  X(cudnnBackendFinalize)                                     \
  X(cudnnBackendSetAttribute)                                 \
  X(cudnnBackendGetAttribute)                                 \
  X(cudnnBackendExecute)                                      \
  X(cudnnCreateTensorDescriptor)                              \
  X(cudnnSetTensorNdDescriptor)                               \
  X(cudnnDestroyTensorDescriptor)                             \
  X(cudnnCreateFilterDescriptor)                              \
  X(cudnnSetFilterNdDescriptor)                               \
  X(cudnnDestroyFilterDescriptor)                             \
  X(cudnnCreateConvolutionDescriptor)                         \
  X(cudnnSetConvolutionNdDescriptor)                          \
  X(cudnnSetConvolutionGroupCount)                            \
  X(cudnnSetConvolutionMathType)                              \
  X(cudnnDestroyConvolutionDescriptor)                        \
  X(cudnnGetConvolutionForwardAlgorithm_v7)                   \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)              \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)            \
  X(cudnnGetConvolutionForwardWorkspaceSize)                  \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize)             \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize)           \
  X(cudnnConvolutionForward)                                  \
  X(cudnnConvolutionBackwardData)                             \
  X(cudnnConvolutionBackwardFilter)                           \
  X(cudnnDeriveBNTensorDescriptor)                            \
  X(cudnnBatchNormalizationForwardTraining)                   \
  X(cudnnBatchNormalizationBackward)                          \
  X(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize) \
  X(cudnnGetBatchNormalizationBackwardExWorkspaceSize)        \
  X(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)     \
  X(cudnnBatchNormalizationForwardTrainingEx)                 \
  X(cudnnBatchNormalizationBackwardEx)

namespace gradsmith::cuda {

/// CudnnApi holds cuDNN's functions under their own names.
struct CudnnApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member is declared
#define GRADSMITH_MEMBER(name) decltype(&::name) name = nullptr;
  GRADSMITH_CUDNN_FUNCTIONS(GRADSMITH_MEMBER)
#undef GRADSMITH_MEMBER
};

/// CudnnLibrary is the loaded cuDNN.
struct CudnnLibrary {
  CudnnApi api;
  /// The version as CUDNN_VERSION has it: 91900 for 9.19.0.
  int version = 0;
  std::string path;
};

/// CudnnCandidates lists where cuDNN is sought: the file that the environment variable
/// GRADSMITH_CUDNN_LIBRARY names, otherwise libcudnn.so.9 where the loader or a CUDA Toolkit has
/// it, and last where it was found when the library was built.
std::vector<std::string> CudnnCandidates();

/// LoadCudnn loads the first of CudnnCandidates once. The error says where it was sought.
const Result<CudnnLibrary>& LoadCudnn();

/// Cudnn returns the functions; call only after LoadCudnn has succeeded.
const CudnnApi& Cudnn();

/// CudnnVersionText returns, for example, "cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)".
std::string CudnnVersionText();

/// ToStatus is success, or an error that says what was being done and gives cuDNN's name for the
/// status and its own last message.
Status ToStatus(cudnnStatus_t result, std::string_view doing);

cudnnDataType_t ToCudnn(DataType type);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_CUDNN_H_
