// Uses one operator through its typed function, and nothing else of the library.
#include <gradsmith/gradsmith.h>

#include <array>
#include <iostream>

int main() {
  const gradsmith::Context context;
  const std::array<float, 4> x = {1, 2, 3, 4};
  const std::array<float, 4> dy = {5, 6, 7, 8};
  const std::array<float, 1> w = {2};
  std::array<float, 4> dx = {};
  std::array<float, 1> dw = {};
  std::array<float, 1> db = {};
  const gradsmith::Status status = gradsmith::ConvGrad<float>(
      context, {},
      {.dY = {dy.data(), {1, 1, 2, 2}},
       .X = {x.data(), {1, 1, 2, 2}},
       .W = {w.data(), {1, 1, 1, 1}}},
      {.dX = {dx.data(), {1, 1, 2, 2}}, .dW = {dw.data(), {1, 1, 1, 1}}, .dB = {db.data(), {1}}});
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  const bool right = dx == std::array<float, 4>{10, 12, 14, 16} && dw[0] == 70 && db[0] == 26;
  std::cout << (right ? "ConvGrad is right\n" : "ConvGrad is wrong\n");
  return right ? 0 : 1;
}
