#ifndef GRADSMITH_TESTS_KERNELS_REFERENCE_CHANNELS_H_
#define GRADSMITH_TESTS_KERNELS_REFERENCE_CHANNELS_H_

#include "reference/oracle.h"

/// Oracles of the kernels in tests/kernels/channels/kernels.h.
namespace gradsmith::reference::channels {

const Oracle& ChannelNorm();
const Oracle& ChannelNormGrad();
const Oracle& ChannelTotals();

}  // namespace gradsmith::reference::channels

#endif  // GRADSMITH_TESTS_KERNELS_REFERENCE_CHANNELS_H_
