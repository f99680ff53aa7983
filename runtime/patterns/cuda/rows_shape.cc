#include "patterns/cuda/rows_shape.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "patterns/cuda/rows_by_columns.h"
#include "patterns/cuda/rows_policy.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;
using internal::RowsCounts;
using internal::RowsTask;

/// Returns how many vectors or single elements a thread is given of a row. Where columns of
/// elements of more than two bytes are summed, more threads with less each are quicker.
std::int64_t ChunksOfThread(const RowsPolicy& policy, const RowsAccess& access, bool sums_wide) {
  if (access.vector == 1) {
    return sums_wide ? policy.elements_of_summing_thread : policy.elements_of_thread;
  }
  return sums_wide ? policy.vectors_of_summing_thread : policy.vectors_of_thread;
}

std::int64_t PowerOfTwo(std::int64_t at_least) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(at_least)));
}

/// Bytes of an element of the wider type, of a sum, and of all sums that are wanted of a column.
struct RowsBytes {
  std::int64_t element = 0;
  std::int64_t sum = 0;
  std::int64_t sums_of_column = 0;
};

/// Whether an operand is read or written by vectors: it has elements along the rows or columns.
bool HasVectors(int operand, const RowsCounts& counts) {
  const int outputs = counts.all_inputs();
  return operand < counts.inputs + counts.column_inputs ||
         (operand >= outputs && operand < outputs + counts.outputs);
}

/// The operand whose memory is followed: an output where there is one, since an input may be
/// broadcast.
int LeadOf(const RowsTask& task, const RowsCounts& counts) {
  const int output = counts.all_inputs();
  return counts.outputs > 0 && task.tensors[output] != nullptr ? output : 0;
}

/// Whether neighbours in memory are of different rows.
bool IsAcross(const RowsTask& task, const RowsCounts& counts) {
  if (counts.column_inputs + counts.column_sums > 0 || task.row_rank == 0) {
    return false;
  }
  if (task.length_rank == 0) {
    return true;
  }
  const int lead = LeadOf(task, counts);
  return std::abs(task.row_strides[lead][task.row_rank - 1]) <
         std::abs(task.length_strides[lead][task.length_rank - 1]);
}

/// Whether a vector of so many elements lies whole in memory, wherever it begins.
bool AreWhole(
    const std::int64_t (&inner)[internal::kMaxRowsRank],
    int inner_rank,
    const std::int64_t (&outer)[internal::kMaxRowsRank],
    int outer_rank,
    int vector) {
  if (inner_rank == 0 || inner[inner_rank - 1] != 1) {
    return false;
  }
  const auto divides = [vector](std::int64_t stride) { return stride % vector == 0; };
  return std::all_of(inner, inner + inner_rank - 1, divides) &&
         std::all_of(outer, outer + outer_rank, divides);
}

/// Whether elements are neighbours in memory, in each operand that has them along the rows.
bool AreNeighbours(
    const RowsTask& task,
    std::span<const TensorRef> tensors,
    const RowsCounts& counts) {
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (tensors[t].present && HasVectors(t, counts) && task.length_strides[t][0] != 1) {
      return false;
    }
  }
  return true;
}

/// Whether vectors of so many elements lie alike in two operands, though rows may begin between
/// them.
bool LieAlike(const RowsTask& task, int a, int b, int vector) {
  for (int dim = 0; dim < task.row_rank; ++dim) {
    if ((task.row_strides[a][dim] - task.row_strides[b][dim]) % vector != 0) {
      return false;
    }
  }
  return true;
}

/// Whether rows are whole in memory and begin between vectors. Few and long ones are cut into parts
/// instead.
bool IsRagged(
    const RowsTarget& target,
    const RowsTask& task,
    std::span<const TensorRef> tensors,
    const RowsInfo& info,
    int vector) {
  const RowsCounts& counts = info.counts;
  const bool has_parts =
      task.rows < target.device.multiprocessors() && task.length > target.policy.most_ragged;
  if (counts.column_inputs + counts.column_sums > 0 || info.rows_of_many_dims ||
      task.length_rank != 1 || task.length < std::int64_t{2} * vector || has_parts ||
      !AreNeighbours(task, tensors, counts)) {
    return false;
  }
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (tensors[t].present && HasVectors(t, counts) &&
        (!LieAlike(task, t, 0, vector) ||
         AlignmentClass(tensors[t].data, tensors[t].type) != kVectorBytes)) {
      return false;
    }
  }
  return true;
}

/// How many parts a row is cut into where there are so many groups of rows, fewer than there are
/// multiprocessors, and it is long.
std::int64_t PartsOf(
    const RowsTarget& target,
    std::int64_t groups,
    std::int64_t length,
    std::int64_t least_part) {
  if (groups == 0 || groups >= target.device.multiprocessors() || length <= 4 * least_part) {
    return 1;
  }
  const std::int64_t blocks =
      std::int64_t{target.policy.blocks_of_parts} * target.device.multiprocessors();
  return std::min(
      {blocks / groups, CeilDivide(length, least_part), std::int64_t{target.policy.most_parts}});
}

/// Cuts rows into parts of a multiple of so many elements.
void CutIntoParts(
    const RowsTask& task,
    std::int64_t parts,
    std::int64_t multiple,
    RowsLaunch* launch) {
  if (parts > 1) {
    launch->part_length = CeilDivide(CeilDivide(task.length, parts), multiple) * multiple;
    launch->parts = static_cast<int>(CeilDivide(task.length, launch->part_length));
  }
}

/// How many element inputs there are, of which vectors are kept.
std::int64_t InputsOf(const RowsTask& task, const RowsCounts& counts) {
  std::int64_t inputs = counts.inputs;
  for (int t = 0; t < counts.inputs; ++t) {
    const bool may_be_absent = (counts.optional_inputs >> static_cast<unsigned>(t) & 1U) != 0;
    inputs -= may_be_absent && task.tensors[t] == nullptr ? 1 : 0;
  }
  return inputs;
}

/// How many teams of one thread each a block has across memory, where rows are short: as many as
/// leave each multiprocessor blocks, two of which hold all of their rows. 0 where teams should have
/// more threads.
int SingleTeams(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    std::int64_t bytes_of_word,
    int vector) {
  const RowsPolicy& policy = target.policy;
  if (task.length > policy.most_of_single_thread) {
    return 0;
  }
  const std::int64_t place = target.device.shared_bytes() / 2 - kRowsStaticBytes;
  const std::int64_t held = InputsOf(task, info.counts) * task.length * bytes_of_word;
  const auto groups_of = [&](int teams) {
    return CeilDivide(task.rows, std::int64_t{teams} * vector);
  };
  for (int teams = policy.threads; teams >= 32; teams /= 2) {
    if (teams * held <= place &&
        groups_of(teams) >= std::int64_t{2} * target.device.multiprocessors()) {
      return teams;
    }
  }
  return 0;
}

void CutAcross(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    const RowsBytes& bytes,
    RowsShape* shape) {
  const int vector = shape->access.vector;
  const std::int64_t chunks = ChunksOfThread(target.policy, shape->access, /*sums_wide=*/false);
  int teams = SingleTeams(target, task, info, vector * bytes.element, vector);
  std::int64_t members = 1;
  if (teams == 0) {
    teams = vector > 1 ? kRowsAcross<2> : kRowsAcross<1>;
    members = std::clamp<std::int64_t>(
        PowerOfTwo(CeilDivide(task.length, chunks)), 32 / teams, kFewerRowsThreads / teams);
  }
  shape->launch.members = static_cast<int>(members);
  shape->launch.member_bits = std::countr_zero(static_cast<unsigned>(members));
  shape->launch.teams = teams;
  shape->threads = static_cast<unsigned>(members * teams);
  shape->launch.groups = CeilDivide(task.rows, std::int64_t{teams} * vector);
  if (info.results > 0) {
    const std::int64_t parts = PartsOf(target, shape->launch.groups, task.length, members * chunks);
    CutIntoParts(task, parts, 1, &shape->launch);
  }
}

void CutAlong(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    const RowsBytes& bytes,
    RowsShape* shape) {
  const RowsPolicy& policy = target.policy;
  RowsLaunch& launch = shape->launch;
  const std::int64_t vector = shape->access.vector;
  // Whether or not sums are wanted: which outputs there are changes no result.
  const bool sums = info.counts.column_sums > 0;
  const std::int64_t chunks = ChunksOfThread(policy, shape->access, sums && bytes.element > 2);
  const std::int64_t vectors = std::max<std::int64_t>(CeilDivide(task.length, vector), 1);
  const std::int64_t least = std::min<std::int64_t>(
      PowerOfTwo(vectors), vector > 1 ? policy.least_members : policy.least_members_of_elements);
  const std::int64_t most =
      MostRowsThreads(/*is_across=*/false, sums, static_cast<int>(bytes.element));
  std::int64_t members =
      std::clamp<std::int64_t>(PowerOfTwo(CeilDivide(vectors, chunks)), least, most);
  const int vectors_of_part = vector > 1 ? policy.vectors_of_part : policy.elements_of_part;
  const std::int64_t least_part = vector * policy.most_threads_of_part * vectors_of_part;
  const std::int64_t parts = info.results > 0 && !shape->access.is_ragged
                                 ? PartsOf(target, task.rows, task.length, least_part)
                                 : 1;
  if (parts > 1) {
    members = std::min<std::int64_t>(members, policy.most_threads_of_part);
    CutIntoParts(task, parts, vector, &launch);
  }
  std::int64_t threads = policy.threads;
  const std::int64_t rows = PowerOfTwo(std::max<std::int64_t>(task.rows, 1));
  if (sums && rows * members <= policy.threads_of_few_rows) {
    // One block is all there is, so that its threads may be many.
    threads = policy.threads_of_few_rows;
    members = std::clamp<std::int64_t>(
        threads / rows, members, std::min(std::max(PowerOfTwo(vectors), members), most));
  }
  std::int64_t teams = std::max<std::int64_t>(threads / members, 1);
  teams = std::min(teams, rows);
  teams = std::max(teams, 32 / std::min<std::int64_t>(members, 32));
  launch.members = static_cast<int>(members);
  launch.member_bits = std::countr_zero(static_cast<unsigned>(members));
  launch.teams = static_cast<int>(teams);
  shape->threads = static_cast<unsigned>(members * teams);
  launch.groups = CeilDivide(task.rows, teams);
}

/// Shares a block's shared memory between sums of columns, each of which would otherwise be read
/// and written anew for every row, and the row itself. Teams of a block share no place outside of
/// shared memory, so that there are no more of them than have their sums there.
void HoldInShared(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsInfo& info,
    const RowsBytes& bytes,
    RowsShape* shape) {
  RowsLaunch& launch = shape->launch;
  const std::int64_t before = shape->access.is_ragged ? shape->access.vector - 1 : 0;
  const std::int64_t length = (launch.parts > 1 ? launch.part_length : task.length) + before;
  const auto chunks_of_thread = [&] {
    const int at_once = shape->access.is_across ? 1 : shape->access.vector;
    return CeilDivide(length, launch.members * std::int64_t{at_once});
  };
  // Blocks of parts share what a block of all threads would have.
  const std::int64_t most =
      launch.parts > 1 ? MostShared(target) * std::int64_t{shape->threads} / kMostRowsThreads
                       : MostShared(target);
  const std::int64_t sums_of_thread = shape->access.vector * bytes.sums_of_column;
  while (launch.teams > 1 && shape->threads * sums_of_thread * chunks_of_thread() > most) {
    launch.teams /= 2;
    if (shape->threads > 32) {
      shape->threads /= 2;
    } else {  // a block has a warp: teams become larger
      launch.members *= 2;
      ++launch.member_bits;
    }
    launch.groups = CeilDivide(task.rows, std::int64_t{launch.teams});
  }
  const std::int64_t chunks = chunks_of_thread();
  const std::int64_t of_sums = shape->threads * sums_of_thread;
  const std::int64_t of_row =
      InputsOf(task, info.counts) * shape->threads * shape->access.vector * bytes.element;
  if (of_sums > 0) {
    launch.held_sums = static_cast<int>(std::min(chunks, most / of_sums));
  }
  const std::int64_t left = most - (launch.held_sums * of_sums);
  const bool is_general =
      shape->access.vector == 1 && task.length_rank > 1 && !info.rows_of_many_dims;
  launch.held = is_general ? 0 : static_cast<int>(std::min(chunks, left / of_row));
  shape->shared_bytes = static_cast<unsigned>(launch.held * of_row + launch.held_sums * of_sums);
}

/// Lets kernels divide a place in a row by the row's dims. Those behind its end are computed too,
/// and not used.
void DivideLength(const RowsTask& task, RowsLaunch* launch) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31U) - 1;
  launch->is_short = task.length <= kMost;
  for (int dim = 0; dim < task.length_rank; ++dim) {
    launch->length_divisors[dim] =
        DivisorOf(std::clamp<std::int64_t>(task.length_dims[dim], 1, kMost));
  }
}

/// Blocks go on to further rows, so that these are on their way while others are finished, and so
/// that their sums of columns are few.
std::int64_t BlocksOf(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsShape& shape,
    std::int64_t bytes_of_sums) {
  const RowsPolicy& policy = target.policy;
  const bool sums = bytes_of_sums > 0;
  const std::int64_t shared = std::int64_t{shape.shared_bytes} + kRowsStaticBytes;
  int threads = sums ? policy.summing_threads : policy.resident_threads;
  if (shape.access.is_by_columns) {
    threads = policy.summing_threads_by_columns;
  }
  const std::int64_t of_each = std::min<std::int64_t>(
      threads / static_cast<int>(shape.threads), target.device.shared_bytes() / shared);
  const std::int64_t at_once = target.device.multiprocessors() * std::max<std::int64_t>(of_each, 1);
  const std::int64_t blocks = std::max<std::int64_t>(at_once / std::max(shape.launch.parts, 1), 1);
  const std::int64_t affordable = std::max<std::int64_t>(
      policy.most_columns_bytes / std::max<std::int64_t>(bytes_of_sums, 1), 1);
  return sums && task.length == 0 ? 0 : std::min({shape.launch.groups, blocks, affordable});
}

/// Whether there are columns for half of all multiprocessors where threads have several each.
bool HasManyColumns(const RowsTarget& target, std::int64_t length, int sums) {
  const std::int64_t blocks = CeilDivide(length, std::int64_t{ManyColumns::kColumns}) * sums;
  return 2 * blocks >= target.device.multiprocessors();
}

}  // namespace

int MostShared(const RowsTarget& target) {
  return std::min(
      target.policy.most_shared_bytes,
      target.device.shared_bytes() - target.device.reserved_shared_bytes() - kRowsStaticBytes);
}

RowsAccess AccessOf(
    const RowsTarget& target,
    const RowsTask& task,
    std::span<const TensorRef> tensors,
    const RowsInfo& info) {
  const RowsCounts& counts = info.counts;
  RowsAccess access = {.is_across = IsAcross(task, counts)};
  const internal::RowsTypes types = internal::TypesOf(tensors, counts);
  const int bytes = static_cast<int>(std::max(SizeOf(types.first), SizeOf(types.second)));
  const int vector = kVectorBytes / bytes;
  const int inner_rank = access.is_across ? task.row_rank : task.length_rank;
  if (inner_rank == 0 || (task.length_rank > 1 && !info.rows_of_many_dims)) {
    return access;
  }
  const std::int64_t innermost =
      access.is_across ? task.row_dims[inner_rank - 1] : task.length_dims[inner_rank - 1];
  bool has_vectors = innermost % vector == 0;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (!tensors[t].present || !HasVectors(t, counts)) {
      continue;
    }
    has_vectors = has_vectors && AlignmentClass(tensors[t].data, tensors[t].type) == kVectorBytes &&
                  (access.is_across ? AreWhole(
                                          task.row_strides[t], task.row_rank,
                                          task.length_strides[t], task.length_rank, vector)
                                    : AreWhole(
                                          task.length_strides[t], task.length_rank,
                                          task.row_strides[t], task.row_rank, vector));
  }
  access.is_ragged =
      !has_vectors && !access.is_across && IsRagged(target, task, tensors, info, vector);
  access.vector = has_vectors || access.is_ragged ? vector : 1;
  access.is_by_columns =
      AreNeighbours(task, tensors, counts) && IsByColumns(target, task, info, bytes, access.vector);
  return access;
}

RowsShape ShapeOf(
    const RowsTarget& target,
    const RowsTask& task,
    const RowsAccess& access,
    const RowsInfo& info,
    int bytes) {
  constexpr std::size_t kAlignment = 256;
  RowsShape shape;
  shape.access = access;
  const int first_sum = info.counts.all_inputs() + info.counts.outputs;
  const bool sums_columns = std::any_of(
      task.tensors + first_sum, task.tensors + first_sum + info.counts.column_sums,
      [](const void* tensor) { return tensor != nullptr; });
  RowsBytes of = {.element = bytes};
  of.sum = BytesOfSum(bytes);
  of.sums_of_column = sums_columns ? info.counts.column_sums * of.sum : 0;
  if (access.is_by_columns) {
    CutByColumns(target, task, info, bytes, &shape);
  } else if (access.is_across) {
    CutAcross(target, task, info, of, &shape);
  } else {
    CutAlong(target, task, info, of, &shape);
  }
  if (!access.is_by_columns) {
    HoldInShared(target, task, info, of, &shape);
  }
  if (info.rows_of_many_dims) {
    DivideLength(task, &shape.launch);
  }
  const std::int64_t bytes_of_sums = task.length * of.sums_of_column;
  shape.blocks = BlocksOf(target, task, shape, bytes_of_sums);
  if (sums_columns) {
    shape.columns_bytes =
        std::max<std::size_t>(static_cast<std::size_t>(shape.blocks * bytes_of_sums), 1);
    shape.has_many_columns = HasManyColumns(target, task.length, info.counts.column_sums);
    shape.launch.is_only_block =
        shape.blocks == 1 && shape.launch.parts == 1 && !access.is_by_columns;
  }
  if (shape.launch.parts > 1) {
    const auto partials =
        static_cast<std::size_t>(task.rows * shape.launch.parts * info.results * of.sum);
    shape.partials_bytes = internal::RoundUp(partials, kAlignment);
  }
  return shape;
}

}  // namespace gradsmith::cuda
