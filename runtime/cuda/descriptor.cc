#include "cuda/descriptor.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cudnn.h"

namespace gradsmith::cuda {

Descriptor::~Descriptor() {
  if (raw_ != nullptr) {
    Cudnn().cudnnBackendDestroyDescriptor(raw_);
  }
}

Result<Descriptor> Descriptor::Empty(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  if (Status status =
          ToStatus(Cudnn().cudnnBackendCreateDescriptor(type, &raw), "creating a cuDNN descriptor");
      !status.ok()) {
    return status;
  }
  return Descriptor(raw);
}

Result<std::int64_t> Descriptor::Count(
    cudnnBackendAttributeName_t attribute,
    cudnnBackendAttributeType_t type) const {
  std::int64_t count = 0;
  if (Status status = ToStatus(
          Cudnn().cudnnBackendGetAttribute(raw_, attribute, type, 0, &count, nullptr),
          "counting a cuDNN attribute");
      !status.ok()) {
    return status;
  }
  return count;
}

Result<std::vector<std::int64_t>> Descriptor::Integers(
    cudnnBackendAttributeName_t attribute,
    cudnnBackendAttributeType_t type) const {
  const Result<std::int64_t> count = Count(attribute, type);
  if (!count.ok()) {
    return count.status();
  }
  // Notes and knob types are enums of the size of int.
  std::vector<std::int32_t> narrow(*count);
  std::vector<std::int64_t> wide(*count);
  const bool is_wide = type == CUDNN_TYPE_INT64;
  void* place = is_wide ? static_cast<void*>(wide.data()) : static_cast<void*>(narrow.data());
  std::int64_t got = 0;
  if (Status status = ToStatus(
          Cudnn().cudnnBackendGetAttribute(raw_, attribute, type, *count, &got, place),
          "reading a cuDNN attribute");
      !status.ok()) {
    return status;
  }
  if (!is_wide) {
    wide.assign(narrow.begin(), narrow.end());
  }
  wide.resize(got);
  return wide;
}

Result<std::int64_t> Descriptor::Integer(cudnnBackendAttributeName_t attribute) const {
  std::int64_t value = 0;
  std::int64_t got = 0;
  if (Status status = ToStatus(
          Cudnn().cudnnBackendGetAttribute(raw_, attribute, CUDNN_TYPE_INT64, 1, &got, &value),
          "reading a cuDNN attribute");
      !status.ok()) {
    return status;
  }
  return value;
}

Result<std::string> Descriptor::Text(cudnnBackendAttributeName_t attribute) const {
  const Result<std::int64_t> count = Count(attribute, CUDNN_TYPE_CHAR);
  if (!count.ok()) {
    return count.status();
  }
  std::string text(*count, '\0');
  std::int64_t got = 0;
  if (Status status = ToStatus(
          Cudnn().cudnnBackendGetAttribute(
              raw_, attribute, CUDNN_TYPE_CHAR, *count, &got, text.data()),
          "reading a cuDNN attribute");
      !status.ok()) {
    return status;
  }
  text.resize(text.find('\0') == std::string::npos ? got : text.find('\0'));
  return text;
}

Result<Descriptor> Descriptor::Child(
    cudnnBackendAttributeName_t attribute,
    cudnnBackendDescriptorType_t type) const {
  Result<Descriptor> child = Empty(type);
  if (!child.ok()) {
    return child;
  }
  std::int64_t got = 0;
  if (Status status = ToStatus(
          Cudnn().cudnnBackendGetAttribute(
              raw_, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &child->raw_),
          "reading a cuDNN descriptor");
      !status.ok()) {
    return status;
  }
  return child;
}

Result<std::vector<Descriptor>> Descriptor::Children(
    cudnnBackendAttributeName_t attribute,
    cudnnBackendDescriptorType_t type) const {
  // Of an engine's knobs cuDNN does not tell the number beforehand: there are at most so many.
  const Result<std::int64_t> count = attribute == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES
                                         ? Result<std::int64_t>(CUDNN_KNOB_TYPE_COUNTS)
                                         : Count(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (!count.ok()) {
    return count.status();
  }
  std::vector<Descriptor> children;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < *count; ++i) {
    Result<Descriptor> child = Empty(type);
    if (!child.ok()) {
      return child.status();
    }
    raw.push_back(child->raw());
    children.push_back(std::move(*child));
  }
  std::int64_t got = 0;
  if (*count > 0) {
    if (Status status = ToStatus(
            Cudnn().cudnnBackendGetAttribute(
                raw_, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, *count, &got, raw.data()),
            "reading cuDNN descriptors");
        !status.ok()) {
      return status;
    }
  }
  // cuDNN may fill in fewer than it counted.
  children.resize(got);
  return children;
}

DescriptorBuilder::DescriptorBuilder(cudnnBackendDescriptorType_t type, std::string what)
    : what_(std::move(what)) {
  Result<Descriptor> descriptor = Descriptor::Empty(type);
  status_ = descriptor.status();
  if (descriptor.ok()) {
    descriptor_ = std::move(*descriptor);
  }
}

DescriptorBuilder& DescriptorBuilder::SetRaw(
    cudnnBackendAttributeName_t attribute,
    cudnnBackendAttributeType_t type,
    std::int64_t count,
    const void* values) {
  if (status_.ok()) {
    const cudnnStatus_t result =
        Cudnn().cudnnBackendSetAttribute(descriptor_.raw(), attribute, type, count, values);
    // The words are put together for errors alone: this is on the path of every call.
    if (result != CUDNN_STATUS_SUCCESS) {
      status_ = ToStatus(
          result,
          "setting attribute " + std::to_string(static_cast<int>(attribute)) + " of " + what_);
    }
  }
  return *this;
}

DescriptorBuilder& DescriptorBuilder::Set(
    cudnnBackendAttributeName_t attribute,
    const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(values.size());
  for (const Descriptor& value : values) {
    raw.push_back(value.raw());
  }
  return SetRaw(
      attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

Result<Descriptor> DescriptorBuilder::Finalize() {
  if (!status_.ok()) {
    return status_;
  }
  const cudnnStatus_t result = Cudnn().cudnnBackendFinalize(descriptor_.raw());
  if (result != CUDNN_STATUS_SUCCESS) {
    return ToStatus(result, "finalizing " + what_);
  }
  return std::move(descriptor_);
}

}  // namespace gradsmith::cuda
