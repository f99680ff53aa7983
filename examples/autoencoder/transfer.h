#ifndef AUTOENCODER_TRANSFER_H_
#define AUTOENCODER_TRANSFER_H_

#include <gradsmith/gradsmith.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "tensor.h"

/// DeviceMemory keeps buffers of a context's device for the calls to come.
class DeviceMemory {
 public:
  explicit DeviceMemory(gradsmith::Context context) : context_(std::move(context)) {}

  [[nodiscard]] const gradsmith::Context& context() const { return context_; }

  gradsmith::DeviceBuffer Take(std::size_t size) {
    if (const auto found = free_.find(size); found != free_.end()) {
      gradsmith::DeviceBuffer buffer = std::move(found->second);
      free_.erase(found);
      return buffer;
    }
    gradsmith::Result<gradsmith::DeviceBuffer> buffer =
        gradsmith::DeviceBuffer::Allocate(context_.device(), size);
    Check(buffer.status());
    return std::move(*buffer);
  }

  void GiveBack(gradsmith::DeviceBuffer buffer) {
    const std::size_t size = buffer.size();
    free_.emplace(size, std::move(buffer));
  }

 private:
  gradsmith::Context context_;
  std::multimap<std::size_t, gradsmith::DeviceBuffer> free_;
};

/// Transfer brings the tensors of one call to the context's device and the results back. On the CPU
/// they stay where they are.
class Transfer {
 public:
  explicit Transfer(DeviceMemory& memory) : memory_(memory) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    for (Lent& lent : lent_) {
      memory_.GiveBack(std::move(lent.buffer));
    }
  }

  gradsmith::TensorView<const float> In(const Tensor& tensor) {
    if (IsOnHost()) {
      return tensor;
    }
    return Lend(tensor, nullptr);
  }

  gradsmith::TensorView<float> Out(Tensor& tensor) {
    if (IsOnHost()) {
      return tensor;
    }
    return Lend(tensor, &tensor);
  }

  /// Finish waits for the call and brings back what it wrote.
  void Finish() {
    for (const Lent& lent : lent_) {
      if (lent.result != nullptr) {
        Check(lent.buffer.CopyToHost(
            memory_.context(), lent.result->values.data(), lent.buffer.size()));
      }
    }
  }

 private:
  struct Lent {
    gradsmith::DeviceBuffer buffer;
    Tensor* result;
  };

  [[nodiscard]] bool IsOnHost() const {
    return memory_.context().backend() == gradsmith::Backend::kCpu;
  }

  gradsmith::TensorView<float> Lend(const Tensor& tensor, Tensor* result) {
    Lent& lent = lent_.emplace_back(memory_.Take(tensor.values.size() * sizeof(float)), result);
    if (result == nullptr) {
      Check(lent.buffer.CopyFromHost(memory_.context(), tensor.values.data(), lent.buffer.size()));
    }
    return {static_cast<float*>(lent.buffer.data()), tensor.dims, memory_.context().device()};
  }

  DeviceMemory& memory_;
  std::vector<Lent> lent_;
};

#endif  // AUTOENCODER_TRANSFER_H_
