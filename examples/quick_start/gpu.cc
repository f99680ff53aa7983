#include <gradsmith/gradsmith.h>

#include <iostream>
#include <vector>

/// The gradient of a filter on the GPU, of images in NHWC. Where there is none, it says why.
int main() {
  using gradsmith::DeviceBuffer, gradsmith::Dims, gradsmith::Status, gradsmith::Strides;
  const gradsmith::Device gpu = {gradsmith::Backend::kCuda, 0};
  if (const Status missing = gradsmith::CheckDevice(gpu); !missing.ok()) {
    std::cout << "no GPU: " << missing.message() << '\n';
    return 0;
  }
  // Logical dims are (N, C, H, W) in every layout; the strides, in elements, say where things lie.
  const Dims x_dims = {1, 2, 3, 3};
  const Strides nhwc = {18, 1, 6, 2};
  const Dims w_dims = {1, 2, 2, 2};
  const Dims y_dims = {1, 1, 2, 2};
  const std::vector<float> x(18, 1.0F);
  const std::vector<float> dy(4, 1.0F);
  std::vector<float> dw(8);

  // Any device memory will do, cudaMalloc's too; a DeviceBuffer is for those without the toolkit.
  const auto allocate = [&](std::size_t elements) {
    return DeviceBuffer::Allocate(gpu, elements * sizeof(float));
  };
  auto x_memory = allocate(x.size());
  auto dy_memory = allocate(dy.size());
  auto w_memory = allocate(dw.size());
  auto dw_memory = allocate(dw.size());
  for (const auto* memory : {&x_memory, &dy_memory, &w_memory, &dw_memory}) {
    if (!memory->ok()) {
      std::cerr << memory->status().message() << '\n';
      return 1;
    }
  }
  const auto floats = [](const DeviceBuffer& memory) { return static_cast<float*>(memory.data()); };

  const gradsmith::Context context({.device = gpu});  // on the default stream
  Status status = x_memory->CopyFromHost(context, x.data(), x_memory->size());
  if (status.ok()) {
    status = dy_memory->CopyFromHost(context, dy.data(), dy_memory->size());
  }
  if (status.ok()) {
    // A view says which device its memory is on. W's values do not matter for its own gradient.
    status = gradsmith::ConvGrad<float>(
        context, {},
        {.dY = {floats(*dy_memory), y_dims, gpu},
         .X = {floats(*x_memory), x_dims, nhwc, gpu},
         .W = {floats(*w_memory), w_dims, gpu}},
        {.dW = {floats(*dw_memory), w_dims, gpu}});
  }
  if (status.ok()) {
    status = dw_memory->CopyToHost(context, dw.data(), dw_memory->size());  // waits for the stream
  }
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  std::cout << "dW on the GPU: " << dw[0] << ' ' << dw[7] << '\n';
}
