#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/cuda/graph_capture.h"
#include "runtime/cuda/op_call.h"

/// A number that may lie on the host or on the device, as CUDA sees it: Descend's learning rate.
namespace gradsmith::cuda {
namespace {

class CudaDescend : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    ten_ = Filled(10);
    one_ = Filled(1);
    zero_ = Filled(0);
    first_ = Filled(-1);
    second_ = Filled(-1);
  }
  static TensorPointer Filled(double value) {
    auto tensor = std::make_shared<GpuTensor>(DataType::kFloat, Sizes{2}, Layout::kContiguous);
    tensor->Fill([value] { return value; });
    return tensor;
  }

  /// A step of two parameters that are 10 with gradients of 1 and velocities of 0: each becomes
  /// 10 - rate.
  Status Step(const Context& context, const ConstTensorRef& rate) const {
    const Result<Kernel> kernel = Kernel::Create(
        AllOps(), "Descend", {DataType::kFloat, DataType::kFloat}, Backend::kCuda, {});
    if (!kernel.ok()) {
      return kernel.status();
    }
    const ConstTensorRef W = ten_->GpuRef();
    const ConstTensorRef dW = one_->GpuRef();
    const ConstTensorRef V = zero_->GpuRef();
    const ConstTensorRef none;
    return kernel->Run(
        context, {W, W, dW, dW, V, V, rate, none, none},
        {first_->GpuRef(), second_->GpuRef(), TensorRef(), TensorRef()});
  }
  void ExpectRate(double rate) const {
    EXPECT_EQ(first_->GpuValues(), std::vector<double>(2, 10 - rate));
    EXPECT_EQ(second_->GpuValues(), std::vector<double>(2, 10 - rate));
  }

 private:
  TensorPointer ten_;
  TensorPointer one_;
  TensorPointer zero_;
  TensorPointer first_;
  TensorPointer second_;
};

TensorPointer NumberOnDevice(double value) {
  auto number = std::make_shared<GpuTensor>(DataType::kFloat, Sizes{}, Sizes{});
  number->Fill([value] { return value; });
  return number;
}

TEST_F(CudaDescend, TheRateLiesOnTheHostOrOnTheDevice) {
  const Context context(OnGpu());
  float on_host = 2;
  Status status = Step(context, ConstTensorRef(DataType::kFloat, &on_host, Dims{}));
  // What is on the host is read when the call is made.
  on_host = 3;
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  ExpectRate(2);
  const TensorPointer on_device = NumberOnDevice(4);
  status = Step(context, on_device->GpuRef());
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  ExpectRate(4);
}

/// Calls that differ in nothing else are recorded as graphs, each of its own rate.
TEST_F(CudaDescend, EachCallHasItsOwnRateOfTheHost) {
  const Context context(OnGpu());
  for (const float rate : {2.0F, 2.0F, 2.0F, 5.0F, 5.0F, 5.0F, 2.0F}) {
    const Status status = Step(context, ConstTensorRef(DataType::kFloat, &rate, Dims{}));
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    ExpectRate(rate);
  }
}

/// A graph keeps a number of the host, and reads that of the device anew with each launch.
TEST_F(CudaDescend, AGraphReadsTheRateOfTheDeviceAnew) {
  const support::DeviceStream stream(device());
  ContextOptions options = OnGpu();
  options.stream = stream.get();
  const Context context(options);
  float on_host = 2;
  const TensorPointer on_device = NumberOnDevice(4);
  const ConstTensorRef host(DataType::kFloat, &on_host, Dims{});
  for (const bool is_on_host : {true, false}) {
    const ConstTensorRef rate = is_on_host ? host : ConstTensorRef(on_device->GpuRef());
    ASSERT_TRUE(Step(context.ForPreparing(), rate).ok());
    CudaGraph graph(stream.get());
    graph.Begin();
    const Status status = Step(context, rate);
    ASSERT_TRUE(graph.End().ok());
    ASSERT_TRUE(status.ok()) << status.message();
    for (const double next : {5.0, 6.0}) {
      on_host = static_cast<float>(next);
      on_device->Fill([next] { return next; });
      ASSERT_TRUE(graph.Launch().ok());
      ASSERT_TRUE(Synchronize(context).ok());
      ExpectRate(is_on_host ? 2 : next);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
