#ifndef GRADSMITH_CUDA_DESCRIPTOR_H_
#define GRADSMITH_CUDA_DESCRIPTOR_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cudnn.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::cuda {

/// Descriptor owns a descriptor of cuDNN's backend (graph) API.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  /// Empty returns a descriptor that cuDNN fills in, as an element of a list that is asked for.
  static Result<Descriptor> Empty(cudnnBackendDescriptorType_t type);

  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_; }

  /// Integers returns an attribute that is a list of integers.
  [[nodiscard]] Result<std::vector<std::int64_t>> Integers(
      cudnnBackendAttributeName_t attribute,
      cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64) const;
  /// Integer returns an attribute that is one integer.
  [[nodiscard]] Result<std::int64_t> Integer(cudnnBackendAttributeName_t attribute) const;
  /// Text returns an attribute that is a string.
  [[nodiscard]] Result<std::string> Text(cudnnBackendAttributeName_t attribute) const;
  /// Child returns an attribute that is one descriptor.
  [[nodiscard]] Result<Descriptor> Child(
      cudnnBackendAttributeName_t attribute,
      cudnnBackendDescriptorType_t type) const;
  /// Children returns an attribute that is a list of descriptors.
  [[nodiscard]] Result<std::vector<Descriptor>> Children(
      cudnnBackendAttributeName_t attribute,
      cudnnBackendDescriptorType_t type) const;

 private:
  friend class DescriptorBuilder;
  explicit Descriptor(cudnnBackendDescriptor_t raw) : raw_(raw) {}

  [[nodiscard]] Result<std::int64_t> Count(
      cudnnBackendAttributeName_t attribute,
      cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// DescriptorBuilder makes a descriptor. The first error is kept and Finalize returns it:
///
///     Result<Descriptor> plan =
///         DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "the execution plan")
///             .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
///             .Finalize();
class DescriptorBuilder {
 public:
  /// `what` is for messages.
  DescriptorBuilder(cudnnBackendDescriptorType_t type, std::string what);

  DescriptorBuilder& SetRaw(
      cudnnBackendAttributeName_t attribute,
      cudnnBackendAttributeType_t type,
      std::int64_t count,
      const void* values);

  DescriptorBuilder& Set(cudnnBackendAttributeName_t attribute, std::int64_t value) {
    return SetRaw(attribute, CUDNN_TYPE_INT64, 1, &value);
  }
  DescriptorBuilder& Set(cudnnBackendAttributeName_t attribute, const IntList& values) {
    return SetRaw(attribute, CUDNN_TYPE_INT64, values.size(), values.begin());
  }
  DescriptorBuilder& Set(cudnnBackendAttributeName_t attribute, bool value) {
    return SetRaw(attribute, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  DescriptorBuilder& Set(cudnnBackendAttributeName_t attribute, cudnnDataType_t value) {
    return SetRaw(attribute, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  DescriptorBuilder& Set(cudnnBackendAttributeName_t attribute, const Descriptor& value) {
    const cudnnBackendDescriptor_t raw = value.raw();
    return SetRaw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  DescriptorBuilder& Set(
      cudnnBackendAttributeName_t attribute,
      const std::vector<Descriptor>& values);

  Result<Descriptor> Finalize();

 private:
  Descriptor descriptor_;
  Status status_;
  std::string what_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_DESCRIPTOR_H_
