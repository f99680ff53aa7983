#ifndef GRADSMITH_TESTS_EMULATED_GPU_BLOCK_H_
#define GRADSMITH_TESTS_EMULATED_GPU_BLOCK_H_

#include <vector_types.h>

#include <cstddef>
#include <cstring>
#include <functional>

/// Kernels on the CPU: the threads of a block take turns on one thread of the host, and change
/// where they wait for each other. In which order they come is chosen, so that what relies on an
/// order that no barrier makes gives different results.
namespace emulated_gpu {

/// The order of blocks, of a block's threads between barriers, and of a graph's branches. With it
/// changes when copies to shared memory happen: when they are waited for, at once, or either.
enum class Order { kForward, kBackward, kShuffled };

/// By the environment variable EMULATED_GPU_ORDER: forward (the default), backward or shuffled.
Order OrderOfEnvironment();

/// SeedOfEnvironment returns the number in EMULATED_GPU_SEED, or 1: shuffled orders differ from
/// process to process only where it does.
unsigned SeedOfEnvironment();

/// Says what is wrong with a kernel or a call, and ends the process.
[[noreturn]] void Fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

inline constexpr unsigned kMostThreads = 1024;
inline constexpr unsigned kWarp = 32;

struct Launch {
  const char* name = "";
  const void* kernel = nullptr;
  dim3 grid;
  dim3 block;
  unsigned shared_bytes = 0;
  /// What each thread does: the kernel with its arguments.
  std::function<void()> thread;
  /// Whether its blocks may wait for each other.
  bool cooperative = false;
};

/// The threads that there can be of blocks that may wait for each other.
inline constexpr unsigned kMostTogether = 1U << 14U;

/// Runs all blocks of a launch to their ends. Launches of several threads of the host take turns.
void Run(const Launch& launch, Order order);

// What follows is for kernels, in the thread that runs.

struct Indices {
  uint3 thread;
  uint3 block;
  dim3 block_size;
  dim3 grid_size;
};
extern Indices indices;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void SyncThreads();

void SyncSome(unsigned barrier, unsigned threads);
/// Waits for all threads of a cooperative launch. What static shared memory had before is gone: no
/// kernel of ours counts on it.
void SyncGrid();

/// What the lanes of a warp give to each other: 16 bytes for each, or a product that they share.
struct Exchanged {
  static constexpr std::size_t kBytesOfLane = 16;

  alignas(64) std::byte bytes[2560];
};

/// BeginExchange returns where the lanes of a mask put what they give. EndExchange then waits for
/// all of them; the last one calls `combine`, unless it is null. What was given is good until the
/// thread's next exchange.
Exchanged* BeginExchange(unsigned lanes, void (*combine)(Exchanged*) = nullptr);
void EndExchange();

/// Waits for the lanes of a mask, and returns what they gave.
template <typename T>
const Exchanged& Exchange(unsigned lanes, const T& mine) {
  static_assert(sizeof(T) <= Exchanged::kBytesOfLane);
  Exchanged* const exchanged = BeginExchange(lanes);
  std::memcpy(
      exchanged->bytes + (indices.thread.x % kWarp * Exchanged::kBytesOfLane), &mine, sizeof(T));
  EndExchange();
  return *exchanged;
}

/// What a lane gave to an exchange.
template <typename T>
T Given(const Exchanged& all, unsigned lane) {
  T value;
  std::memcpy(&value, all.bytes + (lane * Exchanged::kBytesOfLane), sizeof(T));
  return value;
}

/// The dynamic shared memory of the block that runs.
struct DynamicShared {
  std::byte* begin = nullptr;
  unsigned bytes = 0;
};
extern DynamicShared dynamic_shared;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

[[noreturn]] void FailAtShared(unsigned address, std::size_t size);

/// Where something is within it, in bytes, and back; both fail outside of it.
unsigned SharedAddressOf(const void* shared);
template <std::size_t kSize>
std::byte* SharedAt(unsigned address) {
  if (address % kSize != 0 || address + kSize > dynamic_shared.bytes) {
    FailAtShared(address, kSize);
  }
  return dynamic_shared.begin + address;
}

/// Copies to shared memory, in groups that can be waited for.
/// Copies `read` bytes to shared memory; the rest of `bytes` becomes 0.
void BeginCopy(unsigned to, const void* from, int bytes, int read);
void EndOfCopies();
void WaitForCopies(int pending);

/// A barrier in shared memory, whose phases end once so many threads have arrived and what they
/// said would be copied has been.
void InitBarrier(unsigned barrier, int arrivals);
void Arrive(unsigned barrier, int bytes);
/// Waits until the phase of that parity has ended.
void WaitForPhase(unsigned barrier, int parity);
/// Copies so many bytes to shared memory, which the barrier counts.
void BeginBulkCopy(unsigned to, const void* from, int bytes, unsigned barrier);

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_BLOCK_H_
