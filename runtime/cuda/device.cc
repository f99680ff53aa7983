#include "cuda/device.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cuda/driver.h"

namespace gradsmith::cuda {

namespace {

/// cuLibraryEnumerateKernels came with it.
constexpr int kOldestDriver = 12040;
/// The kernels are compiled for it and later.
constexpr int kOldestCapability = 75;

Result<int> Attribute(CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  if (Status status = ToStatus(
          Driver().cuDeviceGetAttribute(&value, attribute, device),
          "asking for a device attribute");
      !status.ok()) {
    return status;
  }
  return value;
}

Result<int> CheckedDriverVersion() {
  int version = 0;
  if (Status status = ToStatus(Driver().cuDriverGetVersion(&version), "asking for the version");
      !status.ok()) {
    return status;
  }
  if (version < kOldestDriver) {
    return Unsupported(
        "the NVIDIA driver serves CUDA " + std::to_string(version / 1000) + "." +
        std::to_string(version % 1000 / 10) + "; expected 12.4 or later");
  }
  return version;
}

Status CheckOrdinal(int ordinal) {
  int count = 0;
  if (Status status = ToStatus(Driver().cuDeviceGetCount(&count), "counting the GPUs");
      !status.ok()) {
    return status;
  }
  if (ordinal < 0 || ordinal >= count) {
    return Unsupported(
        "there is no CUDA device " + std::to_string(ordinal) + ": this process sees " +
        std::to_string(count));
  }
  return {};
}

/// OpenedDevices are those of this process, by their ordinals. One that is open is found without a
/// lock, as each call needs it.
class OpenedDevices {
 public:
  /// Null where the device is not open, or has an ordinal that few machines have.
  [[nodiscard]] const DeviceInfo* Find(int ordinal) const {
    return ordinal >= 0 && ordinal < kFew ? few_.at(ordinal).load(std::memory_order_acquire)
                                          : nullptr;
  }

  Result<const DeviceInfo*> Open(int ordinal, Result<const DeviceInfo*> (*open_new)(int)) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = all_.find(ordinal); found != all_.end()) {
      return found->second;
    }
    Result<const DeviceInfo*> device = open_new(ordinal);
    if (device.ok()) {
      all_.emplace(ordinal, *device);
      if (ordinal < kFew) {
        few_.at(ordinal).store(*device, std::memory_order_release);
      }
    }
    return device;
  }

 private:
  static constexpr int kFew = 64;

  std::mutex mutex_;
  std::map<int, const DeviceInfo*> all_;
  std::array<std::atomic<const DeviceInfo*>, kFew> few_{};
};

}  // namespace

std::string DescriptionOf(const DeviceTraits& traits) {
  return traits.name + ", compute capability " + std::to_string(traits.major) + "." +
         std::to_string(traits.minor) + ", " + std::to_string(traits.multiprocessors) +
         " multiprocessors, " + std::to_string(traits.memory_bytes >> 20U) + " MiB";
}

std::int64_t FingerprintOf(const DeviceTraits& traits) {
  std::uint64_t sum = 14695981039346656037U;  // FNV-1a
  for (const char character : DescriptionOf(traits) + ", driver " + std::to_string(traits.driver)) {
    sum = (sum ^ static_cast<unsigned char>(character)) * 1099511628211U;
  }
  return static_cast<std::int64_t>(sum);
}

Result<const DeviceInfo*> DeviceInfo::OpenNew(int ordinal) {
  const Result<int> version = CheckedDriverVersion();
  if (!version.ok()) {
    return version.status();
  }
  if (Status status = CheckOrdinal(ordinal); !status.ok()) {
    return status;
  }
  const DriverApi& driver = Driver();
  CUdevice device = 0;
  if (Status status = ToStatus(driver.cuDeviceGet(&device, ordinal), "opening the GPU");
      !status.ok()) {
    return status;
  }
  const Result<int> major = Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  const Result<int> minor = Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  const Result<int> processors = Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  const Result<int> l2 = Attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  const Result<int> shared =
      Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
  const Result<int> reserved =
      Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device);
  for (const Result<int>& value : {major, minor, processors, l2, shared, reserved}) {
    if (!value.ok()) {
      return value.status();
    }
  }
  auto info = DeviceInfo();
  info.ordinal_ = ordinal;
  info.multiprocessors_ = *processors;
  info.l2_bytes_ = static_cast<std::size_t>(*l2);
  info.shared_bytes_ = *shared;
  info.reserved_shared_bytes_ = *reserved;
  info.compute_capability_ = (10 * *major) + *minor;
  if (info.compute_capability_ < kOldestCapability) {
    return Unsupported(
        "CUDA device " + std::to_string(ordinal) + " has compute capability " +
        std::to_string(*major) + "." + std::to_string(*minor) + "; expected 7.5 or later");
  }
  std::array<char, 256> name{};
  driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device);
  std::size_t memory = 0;
  driver.cuDeviceTotalMem(&memory, device);
  const DeviceTraits traits = {
      .name = name.data(),
      .major = *major,
      .minor = *minor,
      .multiprocessors = *processors,
      .memory_bytes = memory,
      .driver = *version};
  info.description_ = DescriptionOf(traits);
  info.fingerprint_ = FingerprintOf(traits);
  if (Status status =
          ToStatus(driver.cuDevicePrimaryCtxRetain(&info.context_, device), "opening the GPU");
      !status.ok()) {
    return status;
  }
  return new DeviceInfo(std::move(info));
}

Result<const DeviceInfo*> DeviceInfo::Open(int ordinal) {
  if (Status status = CheckDriver(); !status.ok()) {
    return status;
  }
  static auto& opened = *new OpenedDevices;
  const DeviceInfo* known = opened.Find(ordinal);
  return known != nullptr ? Result<const DeviceInfo*>(known) : opened.Open(ordinal, &OpenNew);
}

CurrentDevice::CurrentDevice(const DeviceInfo& device) {
  Driver().cuCtxGetCurrent(&before_);
  if (before_ != device.context()) {
    changed_ = true;
    Driver().cuCtxSetCurrent(device.context());
  }
}

CurrentDevice::~CurrentDevice() {
  if (changed_) {
    Driver().cuCtxSetCurrent(before_);
  }
}

}  // namespace gradsmith::cuda
