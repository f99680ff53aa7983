#ifndef GRADSMITH_BENCH_GPU_MEASURE_H_
#define GRADSMITH_BENCH_GPU_MEASURE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stopwatch.h"
#include "cuda/device.h"
#include "gradsmith/gradsmith.h"

/// How the GPU benchmark measures: memory, random data, CUDA events, and what is written down.
namespace gradsmith::bench {

/// Throws what went wrong; a case that throws is reported with the sentence and the next one
/// begins.
inline void Require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}
template <typename T>
T Take(Result<T> result) {
  Require(result.status());
  return std::move(*result);
}

using internal::Stopwatch;

/// JsonObject is written field by field, in order.
class JsonObject {
 public:
  JsonObject& Add(std::string_view name, std::string_view text);
  JsonObject& Add(std::string_view name, double number);
  JsonObject& Add(std::string_view name, const JsonObject& object);
  JsonObject& AddNull(std::string_view name);
  [[nodiscard]] std::string Text() const { return "{" + fields_ + "}"; }

 private:
  void AddRaw(std::string_view name, std::string_view value);

  std::string fields_;
};

/// Timing is what a call takes on the GPU, in milliseconds.
struct Timing {
  double median = 0;
  double minimum = 0;
  int samples = 0;

  [[nodiscard]] JsonObject Json() const {
    return JsonObject().Add("median", median).Add("minimum", minimum).Add("samples", samples);
  }
};

/// Median sorts and returns the middle, or the mean of the middle two.
double Median(std::vector<double>* values);

/// Gpu is the first GPU with a stream of its own, current on this thread.
class Gpu {
 public:
  /// Throws where something is missing.
  Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  [[nodiscard]] const cuda::DeviceInfo& info() const { return info_; }
  [[nodiscard]] CUstream stream() const { return stream_; }
  void Wait() const;

  /// Options of a context on this GPU and stream.
  [[nodiscard]] ContextOptions Options() const {
    return {.device = {Backend::kCuda, 0}, .stream = stream_};
  }

  /// FillRandom writes numbers uniform in [-1, 1) with full mantissas. Each call starts elsewhere
  /// in a block of 2^21 such numbers.
  void FillRandom(DataType type, void* data, std::size_t bytes);

  /// A call works on the set of arguments whose number it is given.
  using Call = std::function<Status(int set)>;

  /// Time runs the call on one set of arguments after another, a few times unmeasured and then
  /// `samples` times between events. The stream is kept busy beforehand for as long as the host
  /// takes to enqueue all of that, so that the GPU waits for the host at no time.
  Timing Time(int sets, int samples, const Call& call);

 private:
  void Occupy(double milliseconds);
  CUevent Event(std::size_t i);

  const cuda::DeviceInfo& info_;
  cuda::CurrentDevice current_;
  CUstream stream_ = nullptr;
  std::vector<CUevent> events_;
  std::map<DataType, DeviceBuffer> random_;
  std::size_t next_random_ = 0;
  DeviceBuffer filler_;
  double filler_milliseconds_ = 0;
  int next_set_ = 0;
};

/// ArgumentSets holds copies of a call's tensors, so many that together they are more than twice
/// the L2 cache: rotating among them, a call finds nothing of its last run there.
class ArgumentSets {
 public:
  struct Tensor {
    DataType type;
    std::int64_t elements;
  };

  ArgumentSets(Gpu* gpu, std::vector<Tensor> tensors);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] std::size_t set_bytes() const { return set_bytes_; }
  [[nodiscard]] void* At(int set, int tensor) const {
    return static_cast<std::byte*>(memory_.data()) + (set_bytes_ * static_cast<std::size_t>(set)) +
           offsets_[static_cast<std::size_t>(tensor)];
  }
  /// Save writes a tensor of the first set to a file, as it lies in memory.
  void Save(const Gpu& gpu, int tensor, const std::string& path) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> offsets_;
  std::size_t set_bytes_ = 0;
  int count_ = 0;
  DeviceBuffer memory_;
};

/// Strides of a layout.
Strides StridesOf(const Dims& dims, bool channels_last);

/// DataTypeOf reads "f16", "bf16", "f32", "tf32" or "f64".
DataType DataTypeOf(std::string_view text);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_MEASURE_H_
