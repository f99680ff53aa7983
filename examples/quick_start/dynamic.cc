#include <gradsmith/gradsmith.h>

#include <iostream>
#include <vector>

int main() {
  using gradsmith::Backend, gradsmith::DataType;
  gradsmith::Registry registry;
  if (const gradsmith::Status status = gradsmith::RegisterAll(registry); !status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }

  // A kernel is created once, by op, types and backend, and then run many times, on any thread.
  const gradsmith::Result<gradsmith::Kernel> kernel =
      gradsmith::Kernel::Create(registry, "Conv", {DataType::kFloat}, Backend::kCpu);
  if (!kernel.ok()) {
    std::cerr << kernel.status().message() << '\n';
    return 1;
  }
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> w = {1, 0, 0, -1};
  std::vector<float> y(4);
  const gradsmith::Context context;
  const gradsmith::Status status = kernel->Run(
      context,
      {{DataType::kFloat, x.data(), {1, 1, 3, 3}}, {DataType::kFloat, w.data(), {1, 1, 2, 2}}},
      {{DataType::kFloat, y.data(), {1, 1, 2, 2}}});
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  std::cout << "Y: " << y[0] << ' ' << y[1] << ' ' << y[2] << ' ' << y[3] << '\n';

  // Is it there for GPUs too? Not in a build without CUDA, and the answer says so.
  std::cout << registry.Explain("Conv", {DataType::kFloat}, Backend::kCuda) << '\n';
}
