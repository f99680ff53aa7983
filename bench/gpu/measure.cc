#include "gpu/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <type_traits>

#include "cuda/driver.h"

namespace gradsmith::bench {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRandomElements = std::size_t{1} << 21U;
constexpr std::size_t kFillerBytes = std::size_t{1} << 29U;
constexpr int kWarmUps = 3;
constexpr double kMostBusy = 50;  // milliseconds

const cuda::DriverApi& Driver() {
  return cuda::Driver();
}

void RequireCuda(CUresult result, std::string_view doing) {
  Require(cuda::ToStatus(result, doing));
}

CUdeviceptr Address(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

const cuda::DeviceInfo& OpenFirst() {
  return *Take(cuda::DeviceInfo::Open(0));
}

/// Uniform in [-1, 1): splitmix64 of the index.
double RandomNumber(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return (static_cast<double>(z >> 11U) * 0x1.0p-52) - 1;
}

template <typename T>
std::vector<T> RandomNumbers() {
  std::vector<T> numbers(kRandomElements);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      numbers[i] = static_cast<T>(RandomNumber(i));
    } else {
      numbers[i] = T(static_cast<float>(RandomNumber(i)));
    }
  }
  return numbers;
}

template <typename T>
DeviceBuffer RandomBlock(const Context& context) {
  const std::vector<T> numbers = RandomNumbers<T>();
  const std::size_t bytes = numbers.size() * sizeof(T);
  DeviceBuffer block = Take(DeviceBuffer::Allocate(context.device(), bytes));
  Require(block.CopyFromHost(context, numbers.data(), bytes));
  return block;
}

DeviceBuffer RandomBlock(const Context& context, DataType type) {
  switch (type) {
    case DataType::kDouble:
      return RandomBlock<double>(context);
    case DataType::kMLFloat16:
      return RandomBlock<MLFloat16>(context);
    case DataType::kBFloat16:
      return RandomBlock<BFloat16>(context);
    default:
      break;
  }
  return RandomBlock<float>(context);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
    }
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + "\"";
}

}  // namespace

JsonObject& JsonObject::Add(std::string_view name, std::string_view text) {
  AddRaw(name, Quoted(text));
  return *this;
}

JsonObject& JsonObject::Add(std::string_view name, double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number);
  AddRaw(name, std::isfinite(number) ? text.data() : "null");
  return *this;
}

JsonObject& JsonObject::Add(std::string_view name, const JsonObject& object) {
  AddRaw(name, object.Text());
  return *this;
}

JsonObject& JsonObject::AddNull(std::string_view name) {
  AddRaw(name, "null");
  return *this;
}

void JsonObject::AddRaw(std::string_view name, std::string_view value) {
  if (!fields_.empty()) {
    fields_ += ", ";
  }
  fields_ += Quoted(name);
  fields_ += ": ";
  fields_ += value;
}

double Median(std::vector<double>* values) {
  std::sort(values->begin(), values->end());
  const std::size_t half = values->size() / 2;
  return values->size() % 2 == 1 ? (*values)[half] : ((*values)[half - 1] + (*values)[half]) / 2;
}

Gpu::Gpu() : info_(OpenFirst()), current_(info_) {
  RequireCuda(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
}

Gpu::~Gpu() {
  Driver().cuStreamSynchronize(stream_);
  for (CUevent event : events_) {
    Driver().cuEventDestroy(event);
  }
  Driver().cuStreamDestroy(stream_);
}

void Gpu::Wait() const {
  RequireCuda(Driver().cuStreamSynchronize(stream_), "waiting for the stream");
}

void Gpu::FillRandom(DataType type, void* data, std::size_t bytes) {
  if (!random_.contains(type)) {
    random_[type] = RandomBlock(Context(Options()), type);
  }
  const DeviceBuffer& block = random_[type];
  // A prime number of vectors further each time.
  next_random_ = (next_random_ + 4099) % (kRandomElements / kAlignment);
  std::size_t start = next_random_ * kAlignment * SizeOf(type);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, block.size() - start);
    RequireCuda(
        Driver().cuMemcpyAsync(Address(data) + done, Address(block.data()) + start, part, stream_),
        "copying random numbers");
    done += part;
    start = 0;
  }
}

CUevent Gpu::Event(std::size_t i) {
  while (events_.size() <= i) {
    CUevent event = nullptr;
    RequireCuda(Driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "making an event");
    events_.push_back(event);
  }
  return events_[i];
}

void Gpu::Occupy(double milliseconds) {
  const auto fill = [this] {
    RequireCuda(
        Driver().cuMemsetD8Async(Address(filler_.data()), 0x3C, filler_.size(), stream_),
        "keeping the GPU busy");
  };
  if (filler_.size() == 0) {
    filler_ = Take(DeviceBuffer::Allocate({Backend::kCuda, 0}, kFillerBytes));
    fill();
    RequireCuda(Driver().cuEventRecord(Event(0), stream_), "recording an event");
    fill();
    RequireCuda(Driver().cuEventRecord(Event(1), stream_), "recording an event");
    Wait();
    float elapsed = 0;
    RequireCuda(Driver().cuEventElapsedTime(&elapsed, Event(0), Event(1)), "reading a time");
    filler_milliseconds_ = std::max(static_cast<double>(elapsed), 0.01);
  }
  for (double filled = 0; filled <= milliseconds; filled += filler_milliseconds_) {
    fill();
  }
}

Timing Gpu::Time(int sets, int samples, const Call& call) {
  const auto next = [&] {
    next_set_ = (next_set_ + 1) % sets;
    Require(call(next_set_));
  };
  // A call that comes back with the same addresses is recorded the second time.
  for (int i = 1; i < std::max(kWarmUps, 2 * sets); ++i) {
    next();
  }
  Wait();
  const Stopwatch host;
  next();
  Occupy(std::min(0.5 + (1.5e3 * host.Seconds() * samples), kMostBusy));
  for (int i = 0; i < samples; ++i) {
    const auto event = 2 * static_cast<std::size_t>(i);
    RequireCuda(Driver().cuEventRecord(Event(event), stream_), "recording an event");
    next();
    RequireCuda(Driver().cuEventRecord(Event(event + 1), stream_), "recording an event");
  }
  Wait();
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const auto event = 2 * static_cast<std::size_t>(i);
    float elapsed = 0;
    RequireCuda(
        Driver().cuEventElapsedTime(&elapsed, Event(event), Event(event + 1)), "reading a time");
    times.push_back(elapsed);
  }
  const double median = Median(&times);
  return {.median = median, .minimum = times.front(), .samples = samples};
}

ArgumentSets::ArgumentSets(Gpu* gpu, std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  constexpr int kMost = 4096;
  for (const Tensor& tensor : tensors_) {
    offsets_.push_back(set_bytes_);
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements) * SizeOf(tensor.type);
    set_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  const std::size_t wanted = (2 * gpu->info().l2_bytes() / set_bytes_) + 2;
  count_ = static_cast<int>(std::min<std::size_t>(wanted, kMost));
  memory_ = Take(
      DeviceBuffer::Allocate({Backend::kCuda, 0}, set_bytes_ * static_cast<std::size_t>(count_)));
  for (int set = 0; set < count_; ++set) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      gpu->FillRandom(
          tensors_[i].type, At(set, static_cast<int>(i)),
          static_cast<std::size_t>(tensors_[i].elements) * SizeOf(tensors_[i].type));
    }
  }
  gpu->Wait();
}

void ArgumentSets::Save(const Gpu& gpu, int tensor, const std::string& path) const {
  const Tensor& what = tensors_[static_cast<std::size_t>(tensor)];
  std::vector<char> bytes(static_cast<std::size_t>(what.elements) * SizeOf(what.type));
  RequireCuda(
      Driver().cuMemcpyAsync(
          Address(bytes.data()), Address(At(0, tensor)), bytes.size(), gpu.stream()),
      "reading a tensor");
  gpu.Wait();
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Strides StridesOf(const Dims& dims, bool channels_last) {
  return channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
}

DataType DataTypeOf(std::string_view text) {
  if (text == "f16") {
    return DataType::kMLFloat16;
  }
  if (text == "bf16") {
    return DataType::kBFloat16;
  }
  if (text == "f64") {
    return DataType::kDouble;
  }
  if (text == "f32" || text == "tf32") {
    return DataType::kFloat;
  }
  throw std::runtime_error("unknown type " + std::string(text));
}

}  // namespace gradsmith::bench
