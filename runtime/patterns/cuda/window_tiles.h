#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_H_

#include <cstdint>
#include <optional>

#include "cuda/op_task.h"
#include "patterns/cuda/window_tiles_launch.h"
#include "patterns/cuda/windows.h"
#include "patterns/cuda/windows_policy.h"

namespace gradsmith::cuda {

/// WindowTiles is a launch of a gather by tiles.
struct WindowTiles {
  TilesLaunch launch;
  std::int64_t blocks = 0;
  unsigned shared_bytes = 0;
  /// Whether its kernel goes through planes, as those of volumes do.
  bool has_volumes = false;
};

/// MakeWindowTiles cuts a gather into tiles, of a task whose tensors are all aligned: with vectors
/// of channels (channels_last), or contiguous. Nothing where tiles do not serve.
std::optional<WindowTiles> MakeWindowTiles(
    const WindowsPolicy& policy,
    const WindowsKind& kind,
    const OpTask& task,
    const internal::WindowsTask& windows,
    bool column_major,
    bool channels_last);

/// MakeReducedTiles cuts a reduction of contiguous tensors into tiles of windows. Nothing where
/// tiles do not serve.
std::optional<WindowTiles> MakeReducedTiles(
    const WindowsPolicy& policy,
    const OpTask& task,
    const internal::WindowsTask& windows);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_TILES_H_
