#ifndef GRADSMITH_CONV_CUDA_PREFERENCE_H_
#define GRADSMITH_CONV_CUDA_PREFERENCE_H_

#include "conv/cuda/few_channels.h"
#include "conv/cuda/planes.h"
#include "conv/cuda/warpgroups.h"
#include "conv/cuda/wide_layers.h"
#include "conv/task.h"
#include "core/candidate_name.h"

/// What is likely to be the quickest where nothing is timed: read off the benchmarks of
/// docs/lab/first-choices.md (cuDNN 9.19 on an H200). It settles which candidates come first, and
/// never what is right.
namespace gradsmith::conv {

/// Whether the channels of x and y are next to each other.
bool AreChannelsLast(const Problem& problem);

/// Whether runs are so long that time is worth some: by the products that a plain kernel
/// multiplies.
bool IsLongRunning(const Task& task);

/// Whether a kernel is cuDNN's plain one, which takes up to 40 times as long as others,
/// but where groups are many (9.19 on an H200): cuDNN's heuristic names engine 0 of a gradient
/// early.
bool IsNaive(const Task& task, const internal::KernelName& kernel);

/// Whether a kernel multiplies so much that a choice without a search leaves it for the last: the
/// naive one, in half and bf16, where others have tensor cores, soon; and there engine 1 and the
/// legacy API's without tensor cores.
bool IsSlow(const Task& task, const internal::KernelName& kernel);

/// Whether the direct kernel takes some milliseconds or more since a thread adds up all terms of an
/// element, at 0.05 to 0.15 us each.
bool IsDirectSlow(const Task& task);

/// Whether a run of it may take seconds, in which no budget is asked. So does, but in double, what
/// is naive; and in half and bf16 algorithm 0 of the legacy API, which does without tensor cores
/// (15 s for 4e12 products that others take 12 ms for); and for dX, where steps are large, its
/// algorithm 1 and engine 1, which multiply each step's zeros (patches of 14x14: 12 s, others 7
/// ms).
bool IsEndless(const Task& task, const internal::KernelName& kernel);

/// Whether the direct kernel is likely to be quicker than cuDNN's engines: for gradients in double
/// of layers that take or make images, at up to three times their speed.
bool DirectPays(const Task& task);

/// Whether cuDNN has depthwise engines of its own that are quicker than ours, to which its
/// heuristic leads: for filters of 3 by 3. For others it leads to what takes up to 15 times as long
/// as ours.
bool CudnnHasDepthwise(const Task& task);

/// Whether own/window, where it fits a depthwise task, is likely to be quicker than our kernels of
/// one channel each.
bool WindowsPayForDepthwise(const Task& task);

/// Whether a depthwise task whose tensors are channels last is likely to be quicker by our own
/// kernels of dense rows, with the copies to channels first and back: the others read what they
/// meet at each of many taps anew.
bool DenseRowsPay(const Task& task);

/// Whether own/depthwise-bands, where it takes a task, is likely to be quicker than all else: along
/// one axis, and for images by many taps, where it does not take copies to get at dense rows.
bool BandsPay(const Task& task);

/// Whether own/depthwise-lines is likely to be quicker for a depthwise task whose rows are dense
/// than own/depthwise: by single steps, and in 3-D.
bool LinesPay(const Task& task);

/// Whether own/few-channels is likely to be quicker for a task than all others: not where most of
/// its room for channels is empty, and where channels fill chunks the filter's gradient alone, or
/// that of x where channels are fewest. That of x of large volumes: where channels fill chunks, and
/// half of the room.
bool FewChannelsPay(const Task& task, const FewChannels& few);

/// Whether own/warpgroups is likely to be quicker for a task than all others: not where much of its
/// room for channels and pixels is empty.
bool WarpgroupsPay(const Task& task, const Warpgroups& plan);

/// Whether it is likely to be quicker than own/tensor-cores: not where most of that room is empty,
/// as for images.
bool WarpgroupsBeatTensorCores(const Warpgroups& plan);

/// Whether own/wide-layers is likely to be quicker for a task than all others: not where much of
/// its room for channels, taps and pixels is empty.
bool WideLayersPay(const Task& task, const WideLayers& plan);

/// Whether it is worth comparing at all: not where most of that room is empty, for which workspace
/// is taken as well.
bool WideLayersMayPay(const WideLayers& plan);

/// Whether own/first-layers is likely to be quicker for a filter's gradient that it takes than all
/// else: where dY is large, and its rows fill four fifths of their tiles.
bool FirstLayersPay(const Task& task);

/// Whether own/planes is likely to be quicker for a task than all else: of images, where channels
/// of y fill half of a block and rows are copied four elements at a time. The filter's gradient in
/// TF32 needs that the least.
bool PlanesPay(const Task& task, const Planes& plan);

/// Whether our own kernels on tensor cores come before cuDNN's engines. `has_window`: own/window is
/// among them.
bool OursComeFirst(const Task& task, bool in_tf32, bool has_window);

/// Whether a task whose tensors are channels first is likely to be quicker in channels last, with
/// the copies: not so what multiplies little for each element.
bool ChannelsLastPays(const Task& task);

/// Whether a product of patches, copied to a matrix, is likely to be quicker than what takes x as
/// it is: those of many taps, which engines for overlapping windows take for rare cases.
bool PatchesPay(const Problem& problem);

/// Whether copying no more than the positions that a strided filter of one tap reads
/// is likely to pay.
bool SubsamplingPays(const Task& task);

/// Whether tensor cores are so much worse off without more channels that these pay. Small tensors
/// need many channels, beside which the copies' launches weigh little; large ones the layout of
/// tensor cores, or images.
bool PaddingPays(const Problem& problem);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_PREFERENCE_H_
