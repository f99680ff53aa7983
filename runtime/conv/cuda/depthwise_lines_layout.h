#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_LAYOUT_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_LAYOUT_H_

#include <cstdint>

#include "conv/cuda/depthwise_lines_arguments.h"
#include "conv/task.h"
#include "core/tiles.h"

/// How a depthwise task's rows and taps become lines in shared memory, for
/// conv/cuda/depthwise_lines.h.
namespace gradsmith::conv::depthwise_lines {

/// EvenPart returns the part of `whole` that each of the fewest parts of at most `most` has.
constexpr std::int64_t EvenPart(std::int64_t whole, std::int64_t most) {
  return internal::CeilDivide(whole, internal::CeilDivide(whole, most));
}

/// MakesLines returns whether a task is a depthwise one that can be computed by lines.
bool MakesLines(const Task& task);

enum SpatialAxis : unsigned char { kDepths, kRows, kColumns };

/// AxisOf returns a spatial axis of three: 2-D tensors have one plane, 1-D ones one row of it. A
/// single tap is not dilated.
Axis AxisOf(const Problem& problem, SpatialAxis axis);

/// PlanesOf returns an operand's planes.
Planes PlanesOf(const Task& task, Operand operand);

/// Runs are how lines of a task are cut: the elements of a vector of sums, of a run, and the
/// vectors from one run to the next.
struct Runs {
  int of_vector;
  int length;
  int vectors;
};

Runs RunsOf(const Task& task, bool is_long);

/// PrefersLong returns whether a line of so many elements is better cut into long runs.
bool PrefersLong(const Task& task, std::int64_t elements);

/// Columns are how elements of lines meet along the last axis. `from` is what `to` is summed of, or
/// x, and `to` dY, for the filter's gradient. Without phases steps are 1.
struct Columns {
  int from_step;
  int to_step;
  int from;
  int to;
  Taps taps;
};

/// ColumnsOf leaves room in front of the taps so that pieces of `piece` elements are aligned.
Columns ColumnsOf(const Task& task, int piece);

Rows RowsOf(const Task& task);

Depths DepthsOf(const Task& task);

/// FirstRowOf returns the row of the result where tiles begin: 0 or before it.
int FirstRowOf(const Task& task);

/// PitchOf returns the elements that a line of so many positions takes.
std::int64_t PitchOf(const Runs& runs, std::int64_t positions);

/// PaddedTo returns the least number of vectors' elements from `elements` on that is, in vectors,
/// `residue` modulo the 8 that all banks have.
int PaddedTo(const Runs& runs, std::int64_t elements, int residue);

/// SetLanes sets how many threads copy a row.
void SetLanes(const Task& task, int threads, Lines* lines);

}  // namespace gradsmith::conv::depthwise_lines

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_LAYOUT_H_
