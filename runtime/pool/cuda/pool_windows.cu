#include "patterns/cuda/whole_channels.cuh"
#include "patterns/cuda/whole_picks.cuh"
#include "patterns/cuda/whole_spreads.cuh"
#include "patterns/cuda/whole_windows.cuh"
#include "patterns/cuda/windows.cuh"
#include "pool/functors.h"

using namespace gradsmith::pool;

GRADSMITH_REDUCE_WINDOWS_KERNELS(MaxPool, MaxPoolWindow)
GRADSMITH_REDUCE_WINDOWS_KERNELS(AveragePool, AveragePoolWindow)
GRADSMITH_GATHER_WINDOWS_KERNELS(MaxPoolGrad, MaxPoolGradWindows)
GRADSMITH_GATHER_WINDOWS_KERNELS(MaxPoolXYGrad, MaxPoolXYGradWindows)
GRADSMITH_GATHER_WINDOWS_KERNELS(AveragePoolGrad, AveragePoolGradWindows)

GRADSMITH_REDUCED_TILES_KERNELS(MaxPool, MaxPoolWindow)
GRADSMITH_REDUCED_TILES_KERNELS(AveragePool, AveragePoolWindow)
GRADSMITH_VOLUME_KERNELS(MaxPoolGrad, MaxPoolGradWindows)
GRADSMITH_VOLUME_KERNELS(MaxPoolXYGrad, MaxPoolXYGradWindows)

GRADSMITH_WHOLE_WINDOWS_KERNELS(MaxPool, ReduceWhole, MaxPoolWindow)
GRADSMITH_WHOLE_WINDOWS_KERNELS(AveragePool, ReduceWhole, AveragePoolWindow)
GRADSMITH_WHOLE_WINDOWS_KERNELS(MaxPoolXYGrad, PickWhole, MaxPoolXYGradWindows)
GRADSMITH_WHOLE_WINDOWS_KERNELS(AveragePoolGrad, SpreadWhole, AveragePoolGradWindows)

GRADSMITH_WHOLE_CHANNELS_KERNELS(MaxPool, ReduceChannels, MaxPoolWindow)
GRADSMITH_WHOLE_CHANNELS_KERNELS(AveragePool, ReduceChannels, AveragePoolWindow)
GRADSMITH_WHOLE_CHANNELS_KERNELS(MaxPoolXYGrad, PickChannels, MaxPoolXYGradWindows)
GRADSMITH_WHOLE_CHANNELS_KERNELS(AveragePoolGrad, SpreadChannels, AveragePoolGradWindows)
