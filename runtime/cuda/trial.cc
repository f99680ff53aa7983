#include "cuda/trial.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/stopwatch.h"
#include "core/tensor_memory.h"
#include "cuda/driver.h"

namespace gradsmith::cuda {

namespace {

using internal::SpanBytes;

/// Every floating-point type reads it as NaN.
constexpr unsigned char kPoison = 0xFF;
constexpr std::size_t kAlignment = 256;
/// A few rows of a small image: what is wrong by an index or a tile writes here.
constexpr std::size_t kGuard = 4096;

CUdeviceptr Address(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

}  // namespace

Result<std::unique_ptr<Trial>> Trial::Create(
    const DeviceInfo& device,
    CUstream callers_stream,
    const std::vector<TrialOperand>& operands) {
  std::unique_ptr<Trial> trial(new Trial(device));
  if (Status status = trial->Open(callers_stream); !status.ok()) {
    return status;
  }
  Status status = trial->AllocateAll(operands, true);
  if (status.code() == StatusCode::kOutOfMemory) {
    status = trial->AllocateAll(operands, false);
  }
  if (status.ok()) {
    status = trial->Fill();
  }
  if (!status.ok()) {
    return status.WithPrefix("trying kernels: ");
  }
  return trial;
}

Trial::~Trial() {
  if (stream_ != nullptr) {
    Driver().cuStreamSynchronize(stream_);
    buffers_.clear();
    before_.clear();
    for (Buffer* buffer : {&workspace_, &difference_, &flush_}) {
      *buffer = Buffer();
    }
    // The driver's pool gives memory back to the device when it is waited for.
    Driver().cuStreamSynchronize(stream_);
    for (CUevent event : {begin_, end_}) {
      if (event != nullptr) {
        Driver().cuEventDestroy(event);
      }
    }
    Driver().cuStreamDestroy(stream_);
  }
}

Status Trial::Open(CUstream callers_stream) {
  const DriverApi& driver = Driver();
  Status status = ToStatus(driver.cuStreamSynchronize(callers_stream), "waiting for the stream");
  if (status.ok()) {
    status = ToStatus(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  }
  for (CUevent* event : {&begin_, &end_}) {
    if (status.ok()) {
      status = ToStatus(driver.cuEventCreate(event, CU_EVENT_DEFAULT), "making an event");
    }
  }
  if (!status.ok()) {
    return status;
  }
  Result<Buffer> difference = Buffer::Allocate(kDifferences * sizeof(Difference), stream_);
  if (!difference.ok()) {
    return difference.status();
  }
  difference_ = std::move(*difference);
  // All are read together, also those that no kernel writes.
  return ToStatus(
      driver.cuMemsetD8Async(Address(difference_.data()), 0, difference_.size(), stream_),
      "clearing the differences");
}

Status Trial::AllocateAll(const std::vector<TrialOperand>& operands, bool copy_inputs) {
  specs_ = operands;
  has_copies_ = copy_inputs;
  buffers_.clear();
  before_.clear();
  addresses_.clear();
  for (TrialOperand& spec : specs_) {
    ConstTensorRef& tensor = spec.tensor;
    buffers_.emplace_back();
    before_.emplace_back();
    addresses_.push_back(nullptr);
    if (!tensor.present) {
      continue;
    }
    if (!spec.is_output && !copy_inputs) {
      addresses_.back() = const_cast<void*>(tensor.data);
      continue;
    }
    const std::size_t offset = Address(tensor.data) % kAlignment;
    const std::size_t guard = spec.is_output && SpanBytes(tensor) > 0 ? kGuard : 0;
    for (Buffer* buffer : {&buffers_.back(), &before_.back()}) {
      if (buffer == &before_.back() && !tensor.accumulate) {
        continue;
      }
      Result<Buffer> allocated =
          Buffer::Allocate(SpanBytes(tensor) + offset + (2 * guard), stream_);
      if (!allocated.ok()) {
        return allocated.status();
      }
      *buffer = std::move(*allocated);
    }
    addresses_.back() = static_cast<std::byte*>(buffers_.back().data()) + guard + offset;
  }
  return {};
}

/// A timed run, before which nothing is poisoned, adds to what is there as well.
Status Trial::Fill() {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const ConstTensorRef& tensor = specs_[i].tensor;
    const bool is_before = specs_[i].is_output && tensor.accumulate;
    if (!tensor.present || buffers_[i].size() == 0 || (specs_[i].is_output && !is_before)) {
      continue;
    }
    const auto count = static_cast<std::int64_t>(SpanBytes(tensor) / SizeOf(tensor.type));
    for (void* place : {addresses_[i], const_cast<void*>(Before(i))}) {
      if (place == nullptr) {
        continue;
      }
      if (Status status =
              FillRandom(device_, stream_, tensor.type, place, count, i + 1, specs_[i].values);
          !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

Status Trial::Refill(std::span<const UniformRange> values) {
  bool is_other = false;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    is_other = is_other || specs_[i].values != values[i];
    specs_[i].values = values[i];
  }
  return is_other ? Fill() : Status();
}

const void* Trial::Before(std::size_t operand) const {
  if (before_[operand].size() == 0) {
    return nullptr;
  }
  return static_cast<const std::byte*>(before_[operand].data()) +
         (Address(specs_[operand].tensor.data) % kAlignment);
}

Status Trial::CopyBefore(std::size_t operand, void* to) {
  const void* before = Before(operand);
  return before == nullptr
             ? Status()
             : ToStatus(
                   Driver().cuMemcpyAsync(
                       Address(to), Address(before), SpanBytes(specs_[operand].tensor), stream_),
                   "copying what an output is added to");
}

TensorRef Trial::Ref(std::size_t operand) const {
  const ConstTensorRef& tensor = specs_[operand].tensor;
  if (!tensor.present) {
    return {};
  }
  TensorRef ref(tensor.type, addresses_[operand], tensor.dims, tensor.strides, tensor.device);
  ref.accumulate = tensor.accumulate;
  return ref;
}

Status Trial::ReserveWorkspace(const internal::Plan& plan) {
  workspace_of_run_ = plan.workspace();
  const std::size_t size = workspace_of_run_ + kGuard;
  if (workspace_of_run_ == 0 || size <= workspace_.size()) {
    return {};
  }
  workspace_ = Buffer();
  Result<Buffer> workspace = Buffer::Allocate(size, stream_);
  if (!workspace.ok()) {
    return workspace.status();
  }
  workspace_ = std::move(*workspace);
  return {};
}

Status Trial::Poison(const internal::Plan& plan) {
  const DriverApi& driver = Driver();
  if (Status status = ReserveWorkspace(plan); !status.ok()) {
    return status;
  }
  if (workspace_.size() > 0) {
    driver.cuMemsetD8Async(Address(workspace_.data()), kPoison, workspace_.size(), stream_);
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const std::size_t bytes = specs_[i].tensor.present ? SpanBytes(specs_[i].tensor) : 0;
    if (!specs_[i].is_output || bytes == 0) {
      continue;
    }
    const Buffer& buffer = buffers_[i];
    Status status = ToStatus(
        driver.cuMemsetD8Async(Address(buffer.data()), kPoison, buffer.size(), stream_),
        "poisoning an output");
    if (status.ok()) {
      status = CopyBefore(i, addresses_[i]);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

Status Trial::Wait() {
  return ToStatus(Driver().cuStreamSynchronize(stream_), "waiting for a trial run");
}

Status Trial::Run(internal::Plan& plan, std::span<const double> scalars) {
  if (Status status = Poison(plan); !status.ok()) {
    return status;
  }
  if (Status status = plan.Run({stream_, addresses_, workspace_.data(), scalars}); !status.ok()) {
    return status;
  }
  return Wait();
}

Status Trial::CheckGuard(const std::byte* guard, const std::string& where) {
  std::array<unsigned char, kGuard> found{};
  Status status = ToStatus(
      Driver().cuMemcpyAsync(Address(found.data()), Address(guard), kGuard, stream_),
      "reading what lies around an output");
  if (status.ok()) {
    status = Wait();
  }
  if (!status.ok()) {
    return status;
  }
  const auto written = kGuard - std::ranges::count(found, kPoison);
  return written == 0 ? Status() : Internal("wrote " + std::to_string(written) + " bytes " + where);
}

Status Trial::CheckGuards(std::size_t output) {
  const auto* first = static_cast<const std::byte*>(addresses_[output]);
  Status status = CheckGuard(first - kGuard, "before an output");
  return status.ok() ? CheckGuard(first + SpanBytes(specs_[output].tensor), "behind an output")
                     : status;
}

Result<std::int64_t> Trial::CountNotFinite(std::size_t output) {
  const TensorRef tensor = Ref(output);
  if (Status status = CompareTensors(device_, stream_, tensor, tensor, difference());
      !status.ok()) {
    return status;
  }
  const Result<Difference> found = Read();
  return found.ok() ? Result<std::int64_t>(static_cast<std::int64_t>(found->not_finite))
                    : found.status();
}

Status Trial::CheckElements(std::size_t output) {
  const Result<std::int64_t> not_finite = CountNotFinite(output);
  if (not_finite.ok() && *not_finite > 0) {
    return Internal(
        "left " + std::to_string(*not_finite) + " of " +
        std::to_string(NumElements(Ref(output).dims)) + " elements unwritten or not finite");
  }
  return not_finite.status();
}

Status Trial::Plant(std::size_t operand, std::int64_t offset) {
  if (buffers_[operand].size() == 0) {
    return OutOfMemory("there is no memory for inputs of which elements are not finite");
  }
  const std::size_t size = SizeOf(specs_[operand].tensor.type);
  planted_ =
      static_cast<std::byte*>(addresses_[operand]) + (offset * static_cast<std::int64_t>(size));
  unplanted_.resize(size);
  const DriverApi& driver = Driver();
  CUresult result =
      driver.cuMemcpyAsync(Address(unplanted_.data()), Address(planted_), size, stream_);
  if (result == CUDA_SUCCESS) {
    result = driver.cuMemsetD8Async(Address(planted_), kPoison, size, stream_);
  }
  return result == CUDA_SUCCESS ? Wait() : ToStatus(result, "planting an element");
}

Status Trial::Unplant() {
  const CUresult result = Driver().cuMemcpyAsync(
      Address(planted_), Address(unplanted_.data()), unplanted_.size(), stream_);
  return result == CUDA_SUCCESS ? Wait() : ToStatus(result, "restoring an element");
}

Status Trial::CheckWritten() {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (!specs_[i].is_output || buffers_[i].size() == 0) {
      continue;
    }
    if (Status status = CheckElements(i); !status.ok()) {
      return status;
    }
  }
  return CheckGuards();
}

Status Trial::CheckGuards() {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (!specs_[i].is_output || buffers_[i].size() == 0) {
      continue;
    }
    if (Status status = CheckGuards(i); !status.ok()) {
      return status;
    }
  }
  return workspace_of_run_ == 0
             ? Status()
             : CheckGuard(
                   static_cast<const std::byte*>(workspace_.data()) + workspace_of_run_,
                   "behind its workspace");
}

Result<Difference> Trial::Read() {
  const Result<std::array<Difference, kDifferences>> all = ReadAll();
  if (!all.ok()) {
    return all.status();
  }
  return all->front();
}

Result<std::array<Difference, Trial::kDifferences>> Trial::ReadAll() {
  std::array<Difference, kDifferences> differences{};
  if (Status status = ToStatus(
          Driver().cuMemcpyAsync(
              Address(differences.data()), Address(difference_.data()), sizeof(differences),
              stream_),
          "reading a difference");
      !status.ok()) {
    return status;
  }
  if (Status status = Wait(); !status.ok()) {
    return status;
  }
  return differences;
}

Result<double> Trial::Time(internal::Plan& plan, std::span<const double> scalars) {
  const DriverApi& driver = Driver();
  if (flush_.size() == 0) {
    Result<Buffer> flush = Buffer::Allocate(2 * device_.l2_bytes(), stream_);
    if (!flush.ok()) {
      return flush.status();
    }
    flush_ = std::move(*flush);
  }
  if (Status status = ReserveWorkspace(plan); !status.ok()) {
    return status;
  }
  driver.cuMemsetD8Async(Address(flush_.data()), 0, flush_.size(), stream_);
  driver.cuEventRecord(begin_, stream_);
  const internal::Stopwatch watch;
  if (Status status = plan.Run({stream_, addresses_, workspace_.data(), scalars}); !status.ok()) {
    return status;
  }
  const double enqueuing = watch.Seconds() * 1e3;
  driver.cuEventRecord(end_, stream_);
  if (Status status = Wait(); !status.ok()) {
    return status;
  }
  float milliseconds = 0;
  if (Status status = ToStatus(
          driver.cuEventElapsedTime(&milliseconds, begin_, end_), "reading the time of a run");
      !status.ok()) {
    return status;
  }
  return std::max<double>(milliseconds, enqueuing);
}

}  // namespace gradsmith::cuda
