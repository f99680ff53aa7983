#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_H_

#include "patterns/cuda/rows_policy.h"
#include "patterns/cuda/rows_shape.h"
#include "patterns/rows_task.h"

/// How kernels by columns (patterns/cuda/rows_by_columns.cuh) are laid over a GPU.
namespace gradsmith::cuda {

/// IsByColumns says whether kernels by columns compute a task whose rows are whole in memory, by
/// vectors of so many elements or by single ones: there is something of columns, rows have one
/// stride, and there is enough of them to employ all multiprocessors. Rows of more columns than a
/// block holds are cut into parts. `bytes` are those of an element of the wider type.
bool IsByColumns(
    const RowsTarget& target,
    const internal::RowsTask& task,
    const RowsInfo& info,
    int bytes,
    int vector);

/// CutByColumns cuts a task for such a kernel, that of the shape's access.
void CutByColumns(
    const RowsTarget& target,
    const internal::RowsTask& task,
    const RowsInfo& info,
    int bytes,
    RowsShape* shape);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_H_
