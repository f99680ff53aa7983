#include "patterns/cuda/rows_by_columns.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/module.h"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_policy.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;
using internal::RowsTask;

/// How a block is made of teams, and how many columns it has of how many parts of a row.
struct Cut {
  std::int64_t members = 0;
  std::int64_t teams = 0;
  std::int64_t groups = 0;
  std::int64_t parts = 1;
  std::int64_t part_length = 0;
  std::int64_t shared_bytes = 0;

  [[nodiscard]] std::int64_t threads() const { return members * teams; }
};

/// Threads that have a row's columns: within a warp a power of two, else whole warps.
std::int64_t MembersOf(std::int64_t length, int columns_of_thread, int vector) {
  const int beside = ThreadsBesideEachOther(vector);
  const std::int64_t least = CeilDivide(length, std::int64_t{beside} * columns_of_thread) * beside;
  if (least > 32) {
    return CeilDivide(least, 32) * 32;
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

/// Cuts rows that are longer than what a block holds: each multiprocessor has a block, or nearly
/// so. Where rows are few, parts are smaller, though not smaller than the policy says.
void CutIntoParts(
    const RowsTarget& target,
    std::int64_t groups,
    std::int64_t length,
    std::int64_t most,
    std::int64_t multiple,
    Cut* cut) {
  const std::int64_t blocks = target.device.multiprocessors();
  const std::int64_t fewest = CeilDivide(length, most);
  const std::int64_t of_each = std::clamp<std::int64_t>(blocks / fewest, 1, groups);
  const std::int64_t parts = std::clamp<std::int64_t>(
      blocks / of_each, fewest, std::max(fewest, length / target.policy.least_columns_of_part));
  cut->part_length = CeilDivide(CeilDivide(length, parts), multiple) * multiple;
  cut->parts = CeilDivide(length, cut->part_length);
}

Cut CutOf(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    int bytes,
    int vector) {
  const int bytes_of_sum = BytesOfSum(bytes);
  const int rows = RowsOfTeam(bytes_of_sum, vector);
  const int columns = ColumnsOfThread(bytes_of_sum, vector == 1 ? info.elements_of_column : 0);
  const std::int64_t most = std::int64_t{target.policy.most_threads_by_columns} * columns;
  Cut cut = {.part_length = task.length};
  if (task.length > most) {
    const std::int64_t multiple = std::int64_t{ThreadsBesideEachOther(vector)} * columns;
    CutIntoParts(target, CeilDivide(task.rows, rows), task.length, most, multiple, &cut);
  }
  // Vectors wait in shared memory.
  const std::int64_t slots =
      vector == 1 ? 0 : std::int64_t{rows} * (columns / vector) * info.counts.inputs;
  cut.members = MembersOf(cut.part_length, columns, vector);
  const auto shared_of = [&](std::int64_t teams) {
    // The sums of several teams take the place of rows when there are none any more.
    const std::int64_t sums =
        teams > 1 ? teams * info.counts.column_sums * cut.part_length * bytes_of_sum : 0;
    return std::max(slots * kVectorBytes * cut.members * teams, sums);
  };
  cut.teams =
      cut.parts > 1 ? 1 : std::max<std::int64_t>(target.policy.threads_by_columns / cut.members, 1);
  const auto groups_of = [&](std::int64_t teams) { return CeilDivide(task.rows, teams * rows); };
  while (cut.teams > 1 && cut.threads() > 32 &&
         (shared_of(cut.teams) > MostShared(target) ||
          groups_of(cut.teams) < target.device.multiprocessors())) {
    cut.teams /= 2;
  }
  cut.groups = groups_of(cut.teams);
  cut.shared_bytes = shared_of(cut.teams);
  return cut;
}

}  // namespace

bool IsByColumns(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    int bytes,
    int vector) {
  if (info.counts.column_inputs + info.counts.column_sums == 0 || info.rows_of_many_dims ||
      task.row_rank > 1 || task.length_rank != 1 || task.length == 0 ||
      target.policy.threads_by_columns == 0) {
    return false;
  }
  const Cut cut = CutOf(target, task, info, bytes, vector);
  if (cut.parts > 1 && info.phases > 0 &&
      task.length * BytesOfSum(bytes) <= target.policy.most_bytes_along) {
    return false;
  }
  // A launch for each phase is more than one for whole rows, but employs more.
  const std::int64_t blocks = cut.groups * cut.parts * (cut.parts > 1 ? 2 : 1);
  return cut.shared_bytes <= MostShared(target) && cut.parts <= kMostBlocksYz &&
         blocks >= target.device.multiprocessors();
}

void CutByColumns(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    int bytes,
    RowsShape* shape) {
  const Cut cut = CutOf(target, task, info, bytes, shape->access.vector);
  shape->launch.members = static_cast<int>(cut.members);
  shape->launch.teams = static_cast<int>(cut.teams);
  shape->launch.groups = cut.groups;
  shape->launch.parts = static_cast<int>(cut.parts);
  shape->launch.part_length = cut.part_length;
  shape->threads = static_cast<unsigned>(cut.threads());
  shape->shared_bytes = static_cast<unsigned>(cut.shared_bytes);
}

}  // namespace gradsmith::cuda
