#include "patterns/cuda/rows_by_columns.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_policy.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;
using internal::RowsTask;

/// How a block is made of teams.
struct Cut {
  std::int64_t members = 0;
  std::int64_t teams = 0;
  std::int64_t groups = 0;
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

Cut CutOf(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    int bytes,
    int vector) {
  const int bytes_of_sum = BytesOfSum(bytes);
  const int rows = RowsOfTeam(bytes_of_sum, vector);
  const int columns = ColumnsOfThread(bytes_of_sum);
  // Vectors wait in shared memory.
  const std::int64_t slots =
      vector == 1 ? 0 : std::int64_t{rows} * (columns / vector) * info.counts.inputs;
  Cut cut = {.members = MembersOf(task.length, columns, vector)};
  const auto shared_of = [&](std::int64_t teams) {
    // The sums of several teams take the place of rows when there are none any more.
    const std::int64_t sums =
        teams > 1 ? teams * info.counts.column_sums * task.length * bytes_of_sum : 0;
    return std::max(slots * kVectorBytes * cut.members * teams, sums);
  };
  cut.teams = std::max<std::int64_t>(target.policy.threads_by_columns / cut.members, 1);
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
      task.length > std::int64_t{kFewerRowsThreads} * ColumnsOfThread(BytesOfSum(bytes)) ||
      target.policy.threads_by_columns == 0) {
    return false;
  }
  const Cut cut = CutOf(target, task, info, bytes, vector);
  return cut.shared_bytes <= MostShared(target) && cut.groups >= target.device.multiprocessors();
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
  shape->threads = static_cast<unsigned>(cut.threads());
  shape->shared_bytes = static_cast<unsigned>(cut.shared_bytes);
}

}  // namespace gradsmith::cuda
