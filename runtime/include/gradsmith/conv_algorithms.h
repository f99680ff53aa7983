#ifndef GRADSMITH_CONV_ALGORITHMS_H_
#define GRADSMITH_CONV_ALGORITHMS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The choice of a convolution's algorithm in the caller's own hands. The ops choose by themselves;
/// this is for those who port code that asks cuDNN for algorithms and workspaces, or who want to
/// see what there is.
namespace gradsmith {

/// ConvPrimitive says what is computed: y from x and w, the gradient of x from those of y and w, or
/// the gradient of w from x and that of y.
enum class ConvPrimitive : std::uint8_t { kForward, kBackwardData, kBackwardFilter };

/// ConvGeometry are a convolution's attributes; empty lists mean the defaults.
struct ConvGeometry {
  IntList strides = {};    ///< default: 1s
  IntList pads = {};       ///< begins, then ends; default: 0s
  IntList dilations = {};  ///< default: 1s
  std::int64_t group = 1;
};

/// ConvAlgorithm is one way to compute a primitive: an engine of cuDNN's graph API with its knobs,
/// an algorithm of its legacy API, or our own kernel.
struct ConvAlgorithm {
  std::string name;
  std::size_t workspace = 0;  ///< bytes
  bool deterministic = true;
  bool tf32 = false;
  bool runtime_compiled = false;
  bool reduced_precision = false;
  double milliseconds = 0;  ///< where it was timed
};

/// WorkspaceLimit is the largest workspace worth offering.
struct WorkspaceLimit {
  /// This limit is nine tenths of the device memory that is free now.
  static WorkspaceLimit OfFreeMemory() { return {true, kNoLimit}; }
  static WorkspaceLimit AtMost(std::size_t bytes) { return {false, bytes}; }
  static WorkspaceLimit None() { return {false, kNoLimit}; }

  bool of_free_memory = true;
  std::size_t bytes = kNoLimit;
};

/// LargestWorkspace returns the limit in bytes on the context's device.
Result<std::size_t> LargestWorkspace(const Context& context, const WorkspaceLimit& limit);

/// ConvAttempt is an algorithm that did not run, and why.
struct ConvAttempt {
  std::string name;
  Status status;
};

/// ConvAddresses are where the tensors of a run lie, whose shapes and strides are the prepared
/// ones.
struct ConvAddresses {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
};

/// ConvAlgorithms holds what cuDNN needs to know of one primitive of one shape. It is prepared once
/// and used while the shape and the strides of the tensors stay, also for tensors elsewhere. Use it
/// from one thread at a time; it belongs to the thread that prepared it.
///
///     Result<ConvAlgorithms> algorithms = ConvAlgorithms::Prepare(
///         context, ConvPrimitive::kBackwardFilter, x, dw, dy, {.pads = {1, 1, 1, 1}});
///     Result<ConvAlgorithm> best = algorithms->Best(
///         SearchMode::kBenchmark, WorkspaceLimit::AtMost(64 << 20));
///     Result<std::string> ran = algorithms->Run({best->name});
class ConvAlgorithms {
 public:
  /// Prepare makes the descriptors. x (N, C, D...), w (M, C / group, K...) and y (N, M, O...) are
  /// of one type on the context's CUDA device; the one that is computed is written, or added to
  /// where it is `Accumulating()`. Best, and Run without addresses, use the memory as long as they
  /// are called. Errors: shapes that do not fit; strides, overlaps and addresses that ops would
  /// refuse as well; no CUDA.
  static Result<ConvAlgorithms> Prepare(
      const Context& context,
      ConvPrimitive primitive,
      const TensorRef& x,
      const TensorRef& w,
      const TensorRef& y,
      const ConvGeometry& geometry);

  ConvAlgorithms(ConvAlgorithms&&) noexcept;
  ConvAlgorithms& operator=(ConvAlgorithms&&) noexcept;
  ConvAlgorithms(const ConvAlgorithms&) = delete;
  ConvAlgorithms& operator=(const ConvAlgorithms&) = delete;
  ~ConvAlgorithms();

  /// List returns the algorithms by source, each source's best first by cuDNN's heuristics: those
  /// that the context's policies would not take as well, for which see ConvAlgorithm's fields. But
  /// of detours (another layout, padded channels) the first eight that the policies take, and of
  /// our own kernels for float on tensor cores those in TF32 with allow_tf32, the exact ones
  /// without. It may take seconds: cuDNN's legacy list takes up to 7 for groups of half.
  Result<std::vector<ConvAlgorithm>> List();

  /// WorkspaceOf returns the bytes that an algorithm needs, by cuDNN's own answer.
  Result<std::size_t> WorkspaceOf(const std::string& name);

  /// Best returns the algorithm to take under the context's policies, but in this search mode: for
  /// kBenchmark the fastest by timing, for kHeuristic the quickest of a few that heuristics put
  /// first (ContextOptions::first_choice_seconds), for kDefault the first deterministic one. Its
  /// output has been compared with another computation of the same, as exactly as the mode asks
  /// (docs/cuda.md). It waits for the context's stream, and is refused while that is captured into
  /// a CUDA graph.
  Result<ConvAlgorithm> Best(SearchMode mode, const WorkspaceLimit& limit);

  /// Run tries the algorithms in order until one runs, and returns its name. Where one fails, also
  /// for lack of memory, the next is tried; `attempts` receives why each of those failed. An
  /// algorithm that runs for the first time, and is not the best, is built then.
  Result<std::string> Run(
      std::span<const std::string> names,
      std::vector<ConvAttempt>* attempts = nullptr);
  Result<std::string> Run(
      std::initializer_list<std::string> names,
      std::vector<ConvAttempt>* attempts = nullptr) {
    return Run(std::span(names.begin(), names.size()), attempts);
  }

  /// Run does the same on tensors elsewhere, as they come with each batch, and prepares nothing
  /// anew. An address that was prepared as a multiple of 16 must be one here; elements must be
  /// aligned.
  Result<std::string> Run(
      std::span<const std::string> names,
      const ConvAddresses& addresses,
      std::vector<ConvAttempt>* attempts = nullptr);
  Result<std::string> Run(
      std::initializer_list<std::string> names,
      const ConvAddresses& addresses,
      std::vector<ConvAttempt>* attempts = nullptr) {
    return Run(std::span(names.begin(), names.size()), addresses, attempts);
  }

 private:
  class Impl;
  explicit ConvAlgorithms(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_CONV_ALGORITHMS_H_
