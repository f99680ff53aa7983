#ifndef GRADSMITH_BATCH_NORM_PER_CHANNEL_H_
#define GRADSMITH_BATCH_NORM_PER_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

#include "core/element.h"
#include "core/parallel.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"

/// What batch normalization on the CPU keeps for each channel.
namespace gradsmith::batch_norm {

/// Wide is what a channel is computed in where double over- or underflows on the way. Where the
/// platform has nothing wider than double, it is as good as double.
using Wide = long double;

/// One number for each channel.
using PerChannel = std::vector<double>;

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

inline PerChannel Load(const ConstTensorRef& tensor) {
  PerChannel values(tensor.dims[0]);
  internal::VisitFloatingType(tensor.type, [&]<typename T>(std::type_identity<T>) {
    const T* data = static_cast<const T*>(tensor.data);
    for (std::int64_t c = 0; c < tensor.dims[0]; ++c) {
      values[c] = internal::Convert<double>(data[c * tensor.strides[0]]);
    }
  });
  return values;
}

/// Writes one member of each channel to the tensor unless it is absent.
template <typename Channel, typename Member>
void StoreIfPresent(
    const std::vector<Channel>& channels,
    const Member& member,
    const TensorRef* tensor) {
  if (!IsPresent(tensor)) {
    return;
  }
  internal::VisitFloatingType(tensor->type, [&]<typename T>(std::type_identity<T>) {
    T* data = static_cast<T*>(tensor->data);
    for (std::int64_t c = 0; c < tensor->dims[0]; ++c) {
      data[c * tensor->strides[0]] =
          internal::Convert<T>(static_cast<double>(std::invoke(member, channels[c])));
    }
  });
}

/// m: how many values each channel has.
inline double SamplesPerChannel(const Dims& dims) {
  double samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1.0 : static_cast<double>(dims[i]);
  }
  return samples;
}

/// ForEachChannelThat calls visit(c) for the channels c that need it, which are few, on the
/// context's threads.
template <typename Needs, typename Visit>
void ForEachChannelThat(
    const Context& context,
    std::size_t channels,
    const Needs& needs,
    const Visit& visit) {
  std::vector<std::size_t> chosen;
  for (std::size_t c = 0; c < channels; ++c) {
    if (needs(c)) {
      chosen.push_back(c);
    }
  }
  internal::ParallelFor(context, std::ssize(chosen), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      visit(chosen[i]);
    }
  });
}

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_PER_CHANNEL_H_
