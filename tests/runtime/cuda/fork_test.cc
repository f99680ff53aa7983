#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "runtime/cuda/op_problems.h"

/// A child of a process that has used CUDA.
namespace gradsmith::cuda {
namespace {

class CudaFork : public CudaTest {};

/// Whether a Status is the sentence that says where CUDA is.
bool SaysWhy(const Status& status) {
  return status.code() == StatusCode::kUnsupported &&
         status.message().find("which used it before fork()") != std::string::npos;
}

TEST_F(CudaFork, AChildIsToldThatCudaIsItsParents) {
  Random random("cuda fork");
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  std::optional<Context> context = Context(OnGpu());
  ASSERT_TRUE(call.Run(*context).ok());
  ASSERT_TRUE(Synchronize(*context).ok());
  std::optional<DeviceBuffer> buffer = DeviceBuffer::Allocate({Backend::kCuda, 0}, 256).value();
  const pid_t child = fork();
  if (child == 0) {
    bool told = SaysWhy(call.Run(*context)) && SaysWhy(Synchronize(*context)) &&
                SaysWhy(CheckDevice({Backend::kCuda, 0})) &&
                SaysWhy(DeviceBuffer::Allocate({Backend::kCuda, 0}, 256).status()) &&
                SaysWhy(call.Run(Context(OnGpu())));
    buffer.reset();
    context.reset();
    _exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(call.Run(*context).ok());
  EXPECT_TRUE(Synchronize(*context).ok());
}

}  // namespace
}  // namespace gradsmith::cuda
