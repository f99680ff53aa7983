#ifndef GRADSMITH_CACHE_H_
#define GRADSMITH_CACHE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/status.h"

/// What the library remembers of the kernels that it chose. The environment variable
/// GRADSMITH_CACHE names the file, or is "off"; otherwise it is gradsmith/decisions.txt in the
/// user's cache folder (XDG_CACHE_HOME, else ~/.cache). A context may have a cache of its own:
/// `cache` is ContextOptions::cache, and unset for that of all others. A file in which others may
/// have had a hand is neither read nor written; docs/cuda.md says which that are.
namespace gradsmith {

/// CachedChoice is one problem and the kernel that it is computed with.
struct CachedChoice {
  /// The op, its types, shapes, layout and policy. This and the next are printable UTF-8, whatever
  /// was in the file.
  std::string problem;
  /// The kernel's source, engine and knobs.
  std::string kernel;
  SearchMode mode = SearchMode::kHeuristic;
  /// The kernel's time, or 0 where it was not timed.
  double milliseconds = 0;
  std::size_t workspace = 0;
  /// The largest error that was measured of its outputs, relative to their norm, or 0 where none
  /// was.
  double error = 0;
};

/// CachedChoices returns what is remembered, the last used first; nothing where there is no memory
/// for the list, or the warning handler throws.
std::vector<CachedChoice> CachedChoices(const std::optional<std::string>& cache = {});

/// CacheFile returns the path of the file; empty where there is none, or no memory for the path.
std::string CacheFile(const std::optional<std::string>& cache = {});

/// ClearCache forgets all choices, those in the file as well.
Status ClearCache(const std::optional<std::string>& cache = {});

/// ExportCache writes all choices to a file that ImportCache reads: on another machine, those for
/// the same GPU, driver, cuDNN and Gradsmith serve. What was timed in benchmark mode is not
/// replaced by what was not. What is exported to is no device, no file of something else, and
/// nothing in which others may have had a hand. What is imported may belong to anyone, but must be
/// a regular file of 32 MiB at most in which every line is whole.
Status ExportCache(const std::string& path, const std::optional<std::string>& cache = {});
Status ImportCache(const std::string& path, const std::optional<std::string>& cache = {});

/// SetWarningHandler sets who is told of what is odd and harmless, as a damaged cache file. Without
/// one, sentences go to standard error. What it throws ends at the function that was called, which
/// returns it as an internal error where it returns a Status.
void SetWarningHandler(std::function<void(const std::string& sentence)> handler);

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_CACHE_H_
