#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "cuda/divisor.h"
#include "patterns/rows_task.h"

/// How the kernels of the pattern `rows` are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

inline constexpr int kMostRowsThreads = 1024;
inline constexpr int kFewerRowsThreads = 512;
/// Threads of a block of a flat row, at most.
inline constexpr int kMostFlatThreads = 256;
/// Bytes of shared memory that kernels have besides what launches ask for, at most.
inline constexpr int kRowsStaticBytes = 17 << 10;

/// Returns how many threads a block has at most. Kernels across rows, and those that sum columns of
/// elements of two bytes, need so many registers that they have fewer threads.
constexpr int MostRowsThreads(bool is_across, bool sums, int bytes) {
  return is_across || (sums && bytes == 2) ? kFewerRowsThreads : kMostRowsThreads;
}

/// Teams that stand beside each other in a kernel across rows: they have 64 bytes of vectors, or a
/// warp has 32 single elements. Teams of one thread are as many as a block has threads.
template <int kVector>
inline constexpr int kRowsAcross = kVector > 1 ? 4 : 32;

/// Kernels by columns: how many columns a thread has at most. Their sums and what there is once of
/// each are in its registers, so that a block has kFewerRowsThreads at most. Single elements are as
/// well, and what is made of them: `elements` of each column, and where these are many a thread has
/// half as many columns. Where vectors wait in shared memory it is 0.
constexpr int ColumnsOfThread(int bytes_of_sum, int elements = 0) {
  constexpr int kMany = 7;
  return (bytes_of_sum == 8 ? 8 : 16) / (elements < kMany ? 1 : 2);
}
/// How many rows a team has at once, of which each thread has eight vectors; or one of single
/// elements, which wait in registers.
constexpr int RowsOfTeam(int bytes_of_sum, int vector) {
  return vector == 1 ? 1 : 8 / (ColumnsOfThread(bytes_of_sum) / vector);
}
/// Threads of a team in them, at least: its lanes know what there is once of its rows.
inline constexpr int kLeastMembersByColumns = 8;
/// ThreadsBesideEachOther returns how many neighbouring threads have neighbouring columns. Of
/// vectors of 16 bytes these fill a line of the caches, so that all that is moved is used.
constexpr int ThreadsBesideEachOther(int vector) {
  return vector == 1 ? 16 : kLeastMembersByColumns;
}

/// RowsLaunch is how a launch cuts a task. A team is the threads that share a row, or as many
/// neighbouring rows as a vector has elements; a group is the rows that a block has at once.
struct RowsLaunch {
  /// Threads of a team: a power of two, and which; of kernels by columns a multiple of 32 too.
  int members = 1;
  int member_bits = 0;
  /// Teams of a block.
  int teams = 1;
  std::int64_t groups = 0;
  /// Vectors of each input that a thread keeps in shared memory, and vectors of columns of which it
  /// keeps the sums there.
  int held = 0;
  int held_sums = 0;
  /// A row may be cut into parts, one block for each along the grid's y axis. There is then a
  /// launch for each phase, which leaves what it finds of each part, and one for the outputs.
  int parts = 1;
  int phase = 0;
  /// Elements of a part, of the last one at most. Kernels by columns ask for those of a whole row
  /// too.
  std::int64_t part_length = 0;
  /// What phases found of each row's parts, [rows][parts][results]. Null without parts.
  void* partials = nullptr;
  /// Each block's sums, [blocks][sums][length]. Null where no column sums are wanted.
  void* columns = nullptr;
  /// Whether there is one block, whose sums are the result. Kernels by columns do not ask.
  bool is_only_block = false;
  /// Whether a row has fewer than 2^31 elements, so that kernels for rows of many dims divide a
  /// place in it by length_divisors; they divide a place in a longer row by the dims themselves.
  bool is_short = false;
  Divisor length_divisors[internal::kMaxRowsRank] = {};
};

/// Sums of columns over blocks, in the blocks' order.
struct RowsColumns {
  std::int64_t length = 0;
  int blocks = 0;
  /// The place of the first sum among the task's operands, and how many there are.
  int first = 0;
  int sums = 0;
  const void* partials = nullptr;
};

/// How a block of the kernel that finds them is made: threads beside each other, which have
/// neighbouring columns, threads below each other, which share those, and columns of a thread.
template <int kWide, int kLow, int kOfThread>
struct RowsColumnsCut {
  static constexpr int kWidth = kWide;
  static constexpr int kDeep = kLow;
  static constexpr int kAtOnce = kOfThread;
  static constexpr int kThreads = kWidth * kDeep;
  static constexpr int kColumns = kWidth * kAtOnce;
};
using FewColumns = RowsColumnsCut<32, 32, 1>;
/// Where there are columns for all multiprocessors.
using ManyColumns = RowsColumnsCut<256, 1, 4>;

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_LAUNCH_H_
