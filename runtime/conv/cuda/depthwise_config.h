#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIG_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIG_H_

/// What depthwise kernels that compute tiles of results are made for. Kernels compile this file,
/// too: plain C++17.
namespace gradsmith::conv::depthwise {

/// What a kernel goes by: `side` x `side` filters, by steps of `step`, from the small tensor (y) to
/// the large one (x) where `spreads`; otherwise from x to y.
struct KernelConfig {
  int side;
  int step;
  bool spreads;
};

/// The tap that joins the first elements of tiles. What is padded by as much on both sides, filters
/// of even sides by as much less as their step is, begins there with an aligned element.
constexpr int CenterOf(int side) {
  return (side - 1) / 2;
}

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIG_H_
