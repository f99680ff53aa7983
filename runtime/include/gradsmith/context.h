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

/// ToString returns "default", "heuristic" or "benchmark", and "unknown" for what is none of them.
std::string_view ToString(SearchMode mode);

/// SearchProgress is reported while a search goes on.
struct SearchProgress {
  std::string problem;
  std::string candidate;
  /// Median of the candidate's runs; 0 where it was not timed.
  double milliseconds = 0;
  /// The largest error that was measured of the candidate's outputs, relative to their norm; 0
  /// where they were not compared.
  double error = 0;
  /// Why the candidate cannot be taken; empty where it can.
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

  /// A cudaStream_t (CUstream) of the device; null is its default stream.
  void* stream = nullptr;
  /// Only kernels that give the same bits each time. Unset: for double only. Where it is set to
  /// true the kernel is not chosen by a clock either, unless search_mode is kBenchmark.
  std::optional<bool> deterministic = {};
  /// Float may be multiplied in TF32: 10 bits of mantissa, and faster.
  bool allow_tf32 = false;
  /// Kernels whose measured error is beyond the promise of their type may be taken where they are
  /// faster; batch normalization may then lose the digits that a large mean costs. On the CPU as
  /// well.
  bool allow_reduced_accuracy = false;
  /// Only kernels of convolutions that never multiply padding, which is zero: what is NaN or
  /// infinite in an input then reaches those results alone that have a product with it.
  bool exact_padding = false;
  /// Unset: what the environment variable GRADSMITH_SEARCH_MODE says, otherwise kHeuristic.
  std::optional<SearchMode> search_mode = {};
  /// For kBenchmark: after so many seconds no further kernel is tried on a problem, counted from
  /// when the first has loaded its code.
  double search_budget_seconds = 10;
  /// For kHeuristic: when a problem is new, other kernels are timed beside the first by heuristics,
  /// and no further one is begun after so many seconds and four runs of the first; longer where
  /// that takes more than 5 ms. With 0, and where `deterministic` is set to true, the first is
  /// taken, by no clock.
  double first_choice_seconds = 0.008;
  /// The file in which choices of kernels are kept across processes; "off": kept for this process
  /// alone. Contexts of one file share its choices. Unset: as gradsmith/cache.h says.
  std::optional<std::string> cache = {};
  /// Called from the searching thread.
  std::function<void(const SearchProgress&)> on_search_progress = {};
  /// Most bytes of workspace that a call may take.
  std::size_t workspace_limit = kNoLimit;
  /// The caller's own workspace instead of memory that the context takes, at a multiple of 256 (at
  /// others calls are refused); calls through such a context, and CUDA graphs that they were
  /// captured into, must not overlap on several streams.
  void* workspace = nullptr;
  std::size_t workspace_size = 0;
  /// Where workspace comes from unless `workspace` is given; unset: the driver's memory pool.
  Allocator allocator = {};
};

/// Context says where calls run and under which policies. Make one and keep it: it owns the CPU
/// backend's threads and remembers the device's. Copies share them; the threads end with the last
/// copy. Several host threads may call through one Context at once; it must outlive their calls.
/// docs/teardown.md says what holds at exit, after fork and with dlclose.
class Context {
 public:
  Context() : Context(ContextOptions{}) {}
  /// Nothing is thrown: where there is no memory for the Context, see status(); where threads
  /// cannot be started it has fewer, at worst the caller's alone.
  explicit Context(const ContextOptions& options);

  /// Success, or why every call through this Context is refused with this very error: there was no
  /// memory to make it, or it was moved from. Its options are then the defaults.
  [[nodiscard]] Status status() const;

  [[nodiscard]] Device device() const { return options().device; }
  [[nodiscard]] Backend backend() const { return options().device.backend; }
  /// How many threads calls run on, the caller's among them: no more than could be started, and in
  /// the child of a fork the caller's alone.
  [[nodiscard]] int threads() const;
  [[nodiscard]] const ContextOptions& options() const { return state().options; }

  /// The mode that searches are made in.
  [[nodiscard]] SearchMode search_mode() const { return state().search_mode; }

  /// ForPreparing returns this context for calls that do everything but the work: they validate,
  /// choose kernels, build them and reserve workspace, so that the same call through this context
  /// then takes no workspace, waits for nothing and can be captured into a CUDA graph, which takes
  /// workspace of its own. Outputs are left alone.
  [[nodiscard]] Context ForPreparing() const;
  [[nodiscard]] bool preparing() const { return preparing_; }

  /// For kernels: what ParallelFor in core/parallel.h runs on; null where one thread does all.
  [[nodiscard]] internal::ThreadPool* thread_pool() const { return state().pool.get(); }
  /// For kernels: where CUDA kernels take their workspace; null on the CPU.
  [[nodiscard]] internal::WorkspaceArena* workspace_arena() const { return state().arena.get(); }
  /// For kernels: what remembers the choices that are made for this context; null on the CPU, but
  /// in a build with oneDNN.
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
  /// What a Context without a state has.
  static const State& Nothing();
  [[nodiscard]] const State& state() const { return state_ == nullptr ? Nothing() : *state_; }

  /// Null where there is no memory for it, and where it was moved from.
  std::shared_ptr<const State> state_;
  /// Why `state_` could not be made.
  Status not_made_;
  bool preparing_ = false;
};

/// CheckDevice says whether calls can run on a device: success, or what is missing on this machine
/// or in this build (the driver, a GPU, cuDNN).
Status CheckDevice(Device device);

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_CONTEXT_H_
