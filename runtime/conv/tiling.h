#ifndef GRADSMITH_CONV_TILING_H_
#define GRADSMITH_CONV_TILING_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/tiles.h"

/// How products are cut into pieces. All of it depends on the problem alone, never on the number of
/// threads, so that results do not either.
namespace gradsmith::conv {

/// A packed block of a matrix has at most this many elements, which stay in a core's own cache.
inline constexpr std::int64_t kBlockElements = std::int64_t{1} << 18;
/// Enough tasks to keep a machine's threads busy, where the problem allows it.
inline constexpr std::int64_t kEnoughTasks = 32;
/// A task of fewer multiplications than this is not worth another thread.
inline constexpr std::int64_t kMinMultiplications = 1 << 16;

using internal::CeilDivide;
using internal::Tiles;

/// AllocateScratch returns memory that holds anything.
template <typename Real>
std::unique_ptr<Real[]> AllocateScratch(std::int64_t count) {
  return std::make_unique_for_overwrite<Real[]>(count);
}

/// PositionTiles cuts the positions of a batch of images: a tile is a part of one image, or several
/// whole ones where an image is small.
class PositionTiles {
 public:
  PositionTiles(std::int64_t images, std::int64_t positions, std::int64_t largest)
      : positions_(positions),
        images_(
            images,
            std::clamp<std::int64_t>(
                kFewPositions / positions,
                1,
                std::max<std::int64_t>(1, largest / positions))),
        within_(positions, largest) {}

  [[nodiscard]] std::int64_t count() const { return images_.count() * within_.count(); }
  [[nodiscard]] std::int64_t largest() const { return images_.largest() * within_.largest(); }
  [[nodiscard]] internal::Range operator[](std::int64_t i) const {
    const internal::Range images = images_[i / within_.count()];
    if (images.size() > 1) {
      return {images.begin * positions_, images.end * positions_};
    }
    const internal::Range part = within_[i % within_.count()];
    return {(images.begin * positions_) + part.begin, (images.begin * positions_) + part.end};
  }

 private:
  /// A product over fewer columns than this spends its time on starting.
  static constexpr std::int64_t kFewPositions = 128;

  std::int64_t positions_;
  Tiles images_;
  Tiles within_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_TILING_H_
