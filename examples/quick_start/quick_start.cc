#include <gradsmith/gradsmith.h>

#include <iostream>
#include <vector>

int main() {
  // A 3x3 image, a 2x2 filter, and the gradient that arrives at their 2x2 convolution.
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> w = {1, 0, 0, -1};
  const std::vector<float> dy = {1, 1, 1, 1};
  std::vector<float> dw(4);

  const gradsmith::Context context;  // on the CPU
  const gradsmith::ConvGradInputs<float> inputs = {
      .dY = {dy.data(), {1, 1, 2, 2}},
      .X = {x.data(), {1, 1, 3, 3}},
      .W = {w.data(), {1, 1, 2, 2}}};
  // dX and dB are left out, so they are not computed.
  const gradsmith::ConvGradOutputs<float> outputs = {.dW = {dw.data(), {1, 1, 2, 2}}};

  gradsmith::Status status = gradsmith::ConvGrad<float>(context, {}, inputs, outputs);
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  std::cout << "dW: " << dw[0] << ' ' << dw[1] << ' ' << dw[2] << ' ' << dw[3] << '\n';

  // With a stride of 2 this dY does not fit, and the error says so.
  status = gradsmith::ConvGrad<float>(context, {.strides = {2, 2}}, inputs, outputs);
  std::cout << status.message() << '\n';
}
