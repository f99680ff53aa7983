#ifndef GRADSMITH_CONTEXT_H_
#define GRADSMITH_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

namespace gradsmith {

namespace internal {
class DecisionCache;
class ThreadPool;
class WorkspaceArena;
}  // namespace internal

/// SearchMode says how a kernel is chosen for a problem (types, shapes, layout, policies) that has
/// not been met before: on CUDA, and in a build with oneDNN for float convolutions on the CPU.
/// Whatever the mode, no kernel is used before its output has been compared with another's.
enum class SearchMode : std::uint8_t {
  /// A fixed choice: the first deterministic kernel by heuristics (on CUDA cuDNN's), whatever was
  /// measured or remembered.
  kDefault,
  /// What an earlier search remembered; otherwise the quickest of a few kernels that heuristics put
  /// first, timed for a moment (ContextOptions::first_choice_seconds).
  kHeuristic,
  /// The fastest of all kernels, timed once and remembered. The first call takes seconds.
  kBenchmark,
};

/// ToString returns "default", "heuristic" or "benchmark", and "unknown" for any other value.
std::string_view ToString(SearchMode mode);

/// SearchProgress is reported while a search goes on.
struct SearchProgress {
  std::string problem;
  std::string candidate;
  /// The median time of the candidate's runs, or 0 where it was not timed.
  double milliseconds = 0;
  /// The largest error that was measured of the candidate's outputs, relative to their norm, or 0
  /// where they were not compared.
  double error = 0;
  /// The reason why the candidate cannot be taken, empty where it can.
  std::string rejection;
  int tried = 0;
  int candidates = 0;
  std::string best;
  double best_milliseconds = 0;
  double seconds = 0;
};

/// Allocator is a pair of functions that the caller provides for device memory. `allocate` returns
/// null where there is none. Work that uses the memory may still be enqueued on the stream when
/// `free` is called. Workspace of a CUDA graph is allocated during its capture, on a stream that is
/// not captured, and freed some time after the graph has gone, which may be later than the context.
/// `owner` may hold what `user` points to: it is kept until `free` will not be called any more.
struct Allocator {
  void* (*allocate)(void* user, std::size_t size, void* stream) = nullptr;
  void (*free)(void* user, void* address, std::size_t size, void* stream) = nullptr;
  void* user = nullptr;
  std::shared_ptr<const void> owner = {};
};

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// ContextOptions are the policies of a Context.
struct ContextOptions {
  Device device = {};
  /// How many threads the CPU backend may use, the caller's among them; 0 means one for each
  /// processor. Where the system gives no more there are fewer: see Context::threads. Results have
  /// the same bits for any number, but for those of oneDNN's kernels.
  int threads = 0;

  // What follows is for CUDA. In a build with oneDNN kernels are chosen on the CPU as well, by
  // deterministic, search_mode, search_budget_seconds, first_choice_seconds, cache,
  // on_search_progress and workspace_limit.

  /// A cudaStream_t (CUstream) of the device. Null stands for its default stream.
  void* stream = nullptr;
  /// Whether only kernels are taken that give the same bits each time. Where it is unset, that
  /// holds for double alone; where it is true, the kernel is not chosen by a clock either, unless
  /// search_mode is kBenchmark.
  std::optional<bool> deterministic = {};
  /// Whether float may be multiplied in TF32, which is faster and has 10 bits of mantissa.
  bool allow_tf32 = false;
  /// Whether kernels may be taken, where they are faster, whose measured error is beyond the
  /// promise of their type. Batch normalization may then lose the digits that a large mean costs.
  /// It holds on the CPU as well.
  bool allow_reduced_accuracy = false;
  /// Whether only kernels are taken that never multiply padding, which is zero. What is NaN or
  /// infinite in an input then reaches those results alone that have a product with it. It bears
  /// on convolutions: all kernels of other operators are such.
  bool exact_padding = false;
  /// The mode of searches. Where it is unset, the environment variable GRADSMITH_SEARCH_MODE says
  /// it, and otherwise it is kHeuristic.
  std::optional<SearchMode> search_mode = {};
  /// After so many seconds kBenchmark tries no further kernel on a problem, counted from when the
  /// first has loaded its code, but for kHeuristic's choice where first_choice_seconds is not 0.
  double search_budget_seconds = 10;
  /// When a problem is new, kHeuristic times other kernels beside the first by heuristics, and
  /// begins no further one after so many seconds and four runs of the first. It takes longer where
  /// that one takes more than 5 ms. With 0, and where `deterministic` is set to true, the first is
  /// taken, by no clock.
  double first_choice_seconds = 0.008;
  /// The file in which choices of kernels are kept across processes. "off" keeps them for this
  /// process alone. Contexts of one file share its choices. Where it is unset, gradsmith/cache.h
  /// says which file it is.
  std::optional<std::string> cache = {};
  /// The function that is told of each step of a search, called from the searching thread.
  std::function<void(const SearchProgress&)> on_search_progress = {};
  /// The most bytes of workspace that a call may take.
  std::size_t workspace_limit = kNoLimit;
  /// The caller's own workspace, used instead of memory that the context takes. Its address is a
  /// multiple of 256: at others calls are refused. Calls through such a context, and CUDA graphs
  /// that they were captured into, must not overlap on several streams.
  void* workspace = nullptr;
  std::size_t workspace_size = 0;
  /// The memory that workspace is made of, unless `workspace` is given. Where it is unset, that is
  /// the driver's memory pool.
  Allocator allocator = {};
};

/// Context says where calls run and under which policies. Make one and keep it: it owns the CPU
/// backend's threads and remembers the device's. Copies share them; the threads end with the last
/// copy. Several host threads may call through one Context at once; it must outlive their calls.
/// docs/teardown.md says what holds at exit, after fork and with dlclose.
class Context {
 public:
  Context() : Context(ContextOptions{}) {}
  /// The constructor throws nothing. Where there is no memory for the Context, status() says so;
  /// where threads cannot be started it has fewer, at worst the caller's alone.
  explicit Context(const ContextOptions& options);

  /// status returns success, or the error with which every call through this Context is refused:
  /// there was no memory to make it, or it was moved from. Its options are then the defaults.
  [[nodiscard]] Status status() const;

  [[nodiscard]] Device device() const { return options().device; }
  [[nodiscard]] Backend backend() const { return options().device.backend; }
  /// threads returns how many threads calls run on, the caller's among them. They are no more than
  /// could be started, and in the child of a fork the caller's alone.
  [[nodiscard]] int threads() const;
  [[nodiscard]] const ContextOptions& options() const { return state().options; }

  /// search_mode returns the mode that searches are made in.
  [[nodiscard]] SearchMode search_mode() const { return state().search_mode; }

  /// ForPreparing returns this context for calls that do everything but the work: they validate,
  /// choose kernels, build them and reserve workspace, so that the same call through this context
  /// then takes no workspace, waits for nothing and can be captured into a CUDA graph, which takes
  /// workspace of its own. Outputs are left alone.
  [[nodiscard]] Context ForPreparing() const;
  [[nodiscard]] bool preparing() const { return preparing_; }

  /// thread_pool returns what ParallelFor in core/parallel.h runs on, for kernels. It is null where
  /// one thread does all.
  [[nodiscard]] internal::ThreadPool* thread_pool() const { return state().pool.get(); }
  /// workspace_arena returns where CUDA kernels take their workspace. It is null on the CPU.
  [[nodiscard]] internal::WorkspaceArena* workspace_arena() const { return state().arena.get(); }
  /// decisions returns what remembers the choices that are made for this context, for kernels. It
  /// is null on the CPU, but in a build with oneDNN.
  [[nodiscard]] internal::DecisionCache* decisions() const { return state().decisions; }

 private:
  struct State {
    ContextOptions options;
    SearchMode search_mode = SearchMode::kHeuristic;
    std::shared_ptr<internal::ThreadPool> pool;
    std::shared_ptr<internal::WorkspaceArena> arena;
    internal::DecisionCache* decisions = nullptr;  // lives as long as the process
  };

  static std::shared_ptr<const State> MakeState(const ContextOptions& options);
  /// The state of a Context that has none of its own.
  static const State& Nothing();
  [[nodiscard]] const State& state() const { return state_ == nullptr ? Nothing() : *state_; }

  /// The state, or null where there is no memory for it and where it was moved from.
  std::shared_ptr<const State> state_;
  /// The reason why `state_` could not be made.
  Status not_made_;
  bool preparing_ = false;
};

/// CheckDevice returns success where calls can run on a device, or the error that says what is
/// missing on this machine or in this build (the driver, a GPU, cuDNN).
Status CheckDevice(Device device);

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_CONTEXT_H_
