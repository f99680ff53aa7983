#ifndef GRADSMITH_PATTERNS_ROWS_CPU_H_
#define GRADSMITH_PATTERNS_ROWS_CPU_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/element.h"
#include "core/parallel.h"
#include "core/tiles.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// How the CPU computes a RowsTask. patterns/rows.h says what that is.
namespace gradsmith::internal {

/// The fewest elements that are worth a thread of their own.
inline constexpr std::int64_t kRowsGrain = 8192;

/// OffsetAt returns how far the index-th element of a space with these dims lies from the first.
inline std::int64_t
OffsetAt(int rank, const std::int64_t* dims, const std::int64_t* strides, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = rank - 1; dim >= 0; --dim) {
    offset += index % dims[dim] * strides[dim];
    index /= dims[dim];
  }
  return offset;
}

/// CpuRows computes rows whose operands have the types T and U. Sums are in double.
template <typename Functor, typename T, typename U>
class CpuRows {
 public:
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;
  using Results = std::array<A, AtLeastOne(Functor::kResults)>;

  explicit CpuRows(const RowsTask& task) : task_(task) {
    std::copy_n(task.scalars, kMaxRowsScalars, scalars_.begin());
  }

  /// Whether an output of a row's elements, or of the row, is wanted.
  [[nodiscard]] bool WantsRows() const {
    return IsAnyPresent(Places::kOutput, Places::kColumnSum) ||
           IsAnyPresent(Places::kRowOutput, Places::kEnd);
  }
  [[nodiscard]] bool WantsColumns() const {
    return IsAnyPresent(Places::kColumnSum, Places::kRowOutput);
  }

  /// Whether an output of rows takes the place of an input of rows, which all of a row reads.
  [[nodiscard]] bool ReplacesRowInputs() const {
    const auto* const inputs = task_.tensors + Places::kRowInput;
    const auto* const outputs = task_.tensors + Places::kRowOutput;
    return std::any_of(outputs, task_.tensors + Places::kEnd, [&](const void* output) {
      return output != nullptr && std::find(inputs, task_.tensors + Places::kTable, output) !=
                                      task_.tensors + Places::kTable;
    });
  }

  /// What the phases find of a row.
  [[nodiscard]] Results ResultsOf(std::int64_t row) const {
    Results results{};
    RowState state = StateOf(row);
    state.row.results = results.data();
    for (int phase = 0; phase < Functor::kPhases; ++phase) {
      Reduce(phase, state, results);
      Functor::Finish(phase, state.row, results.data());
    }
    return results;
  }

  /// Writes the outputs of a row's elements from `begin` to `end`, and with the first its own.
  void Map(std::int64_t row, const Results& results, std::int64_t begin, std::int64_t end) const {
    RowState state = StateOf(row);
    state.row.results = results.data();
    ForEach(state, begin, end, [&](const A* in, const A* columns, const Elements& at) {
      std::array<A, AtLeastOne(Functor::kOutputs)> out{};
      Functor::Map(state.row, in, columns, out.data());
      for (int o = 0; o < Functor::kOutputs; ++o) {
        Store(Places::kOutput + o, at[Places::kOutput + o], out[o]);
      }
    });
    if (begin > 0) {
      return;
    }
    std::array<A, AtLeastOne(Functor::kRowOutputs)> outputs{};
    Functor::RowOutputs(state.row, outputs.data());
    for (int o = 0; o < Functor::kRowOutputs; ++o) {
      StoreOfAnyType(Places::kRowOutput + o, state.offsets[Places::kRowOutput + o], outputs[o]);
    }
  }

  /// Writes the sums of the columns from `begin` to `end`, over all rows in their order; `results`
  /// are those of all rows, or empty where no sum that is wanted is made of any.
  void SumColumns(std::int64_t begin, std::int64_t end, const std::vector<Results>& results) const {
    constexpr int kSums = AtLeastOne(Functor::kColumnSums);
    std::vector<std::array<double, kSums>> sums(static_cast<std::size_t>(end - begin));
    const Results none{};
    for (std::int64_t row = 0; row < task_.rows; ++row) {
      RowState state = StateOf(row);
      const auto place = static_cast<std::size_t>(row);
      state.row.results = results.empty() ? none.data() : results[place].data();
      auto* sum = sums.data();
      ForEach(state, begin, end, [&](const A* in, const A* columns, const Elements& /*at*/) {
        std::array<A, kSums> terms{};
        Functor::ColumnTerms(state.row, in, columns, terms.data());
        for (int s = 0; s < kSums; ++s) {
          (*sum)[s] += terms[s];
        }
        ++sum;
      });
    }
    for (std::int64_t column = begin; column < end; ++column) {
      for (int s = 0; s < Functor::kColumnSums; ++s) {
        const int t = Places::kColumnSum + s;
        const std::int64_t offset =
            OffsetAt(task_.length_rank, task_.length_dims, task_.length_strides[t], column);
        Store(t, offset, sums[static_cast<std::size_t>(column - begin)][s]);
      }
    }
  }

 private:
  /// How far each operand's element lies from the operand's first.
  using Elements = std::array<std::int64_t, Places::kEnd>;

  struct RowState {
    Elements offsets{};
    std::array<A, AtLeastOne(Functor::kRowInputs)> inputs{};
    std::array<std::int64_t, AtLeastOne(Functor::kIntegerInputs)> integers{};
    std::array<A, AtLeastOne(Functor::kLookups)> lookups{};
    RowValues<A> row;
  };

  [[nodiscard]] bool IsAnyPresent(int begin, int end) const {
    return std::any_of(task_.tensors + begin, task_.tensors + end, [](const void* tensor) {
      return tensor != nullptr;
    });
  }

  /// The state is not copied afterwards: it points at itself.
  [[nodiscard]] RowState StateOf(std::int64_t index) const {
    RowState state;
    for (int t = 0; t < Places::kEnd; ++t) {
      state.offsets[t] = OffsetAt(task_.row_rank, task_.row_dims, task_.row_strides[t], index);
    }
    for (int i = 0; i < Functor::kRowInputs; ++i) {
      const int t = Places::kRowInput + i;
      state.inputs[i] = LoadOfAnyType(t, state.offsets[t]);
    }
    LookUp(state);
    state.row.length = static_cast<A>(task_.length);
    state.row.exact_length = task_.length;
    state.row.scalars = scalars_.data();
    state.row.exact_scalars = task_.scalars;
    if constexpr (Functor::kPivot >= 0) {
      const A first =
          task_.length == 0 ? A{0} : Load(Functor::kPivot, state.offsets[Functor::kPivot]);
      state.row.pivot = std::isfinite(first) ? first : A{0};
    }
    return state;
  }

  /// Loads a row's integers, and what tables have there.
  void LookUp(RowState& state) const {
    for (int i = 0; i < Functor::kIntegerInputs; ++i) {
      const int t = Places::kIntegerInput + i;
      state.integers[i] = LoadInteger(t, state.offsets[t]);
    }
    for (int i = 0; i < Functor::kLookups; ++i) {
      const RowsLookup lookup = Functor::LookupAt(i);
      const int t = Places::kTable + lookup.table;
      const std::int64_t at = state.integers[lookup.integer];
      if (at < 0 || at >= task_.length) {
        const bool is_nan = lookup.refuses_outside && task_.tensors[t] != nullptr;
        state.lookups[i] = is_nan ? std::numeric_limits<A>::quiet_NaN() : A{0};
      } else {
        const std::int64_t stride = task_.length_rank == 0 ? 0 : task_.length_strides[t][0];
        state.lookups[i] = LoadOfAnyType(t, at * stride);
      }
    }
  }

  void Reduce(int phase, RowState& state, Results& results) const {
    constexpr int kResults = AtLeastOne(Functor::kResults);
    std::array<double, kResults> found{};
    for (int r = 0; r < Functor::kResults; ++r) {
      found[r] = Functor::IsMax(r) ? -std::numeric_limits<double>::infinity() : 0;
    }
    ForEach(state, 0, task_.length, [&](const A* in, const A* columns, const Elements& /*at*/) {
      std::array<A, kResults> terms{};
      Functor::Terms(phase, state.row, in, columns, terms.data());
      for (int r = 0; r < Functor::kResults; ++r) {
        found[r] = Functor::IsMax(r) ? std::max<double>(found[r], terms[r]) : found[r] + terms[r];
      }
    });
    for (int r = 0; r < Functor::kResults; ++r) {
      results[r] = Functor::PhaseOf(r) == phase ? static_cast<A>(found[r]) : results[r];
    }
  }

  /// Calls visit(in, columns, offsets) for the elements of a row from `begin` to `end`.
  template <typename Visit>
  void ForEach(RowState& state, std::int64_t begin, std::int64_t end, const Visit& visit) const {
    state.row.inputs = state.inputs.data();
    state.row.integers = state.integers.data();
    state.row.lookups = state.lookups.data();
    const int last = task_.length_rank - 1;
    const std::int64_t size = last < 0 ? 1 : task_.length_dims[last];
    for (std::int64_t run = begin; run < end;) {
      const std::int64_t count = std::min(size - (run % size), end - run);
      Elements at = state.offsets;
      Elements steps{};
      for (int t = 0; t < Places::kEnd; ++t) {
        at[t] += OffsetAt(task_.length_rank, task_.length_dims, task_.length_strides[t], run);
        steps[t] = last < 0 ? 0 : task_.length_strides[t][last];
      }
      for (std::int64_t i = 0; i < count; ++i) {
        std::array<A, Functor::kInputs> in{};
        std::array<A, AtLeastOne(Functor::kColumnInputs)> columns{};
        for (int t = 0; t < Functor::kInputs; ++t) {
          in[t] = Load(t, at[t]);
        }
        for (int t = 0; t < Functor::kColumnInputs; ++t) {
          columns[t] = Load(Places::kColumnInput + t, at[Places::kColumnInput + t]);
        }
        state.row.index = run + i;
        visit(in.data(), columns.data(), at);
        for (int t = 0; t < Places::kEnd; ++t) {
          at[t] += steps[t];
        }
      }
      run += count;
    }
  }

  static constexpr bool IsSecond(int t) { return (Functor::kSecondTypes >> t & 1U) != 0; }

  [[nodiscard]] A Load(int t, std::int64_t offset) const {
    const void* data = task_.tensors[t];
    if (data == nullptr) {
      return 0;
    }
    return IsSecond(t) ? Convert<A>(static_cast<const U*>(data)[offset])
                       : Convert<A>(static_cast<const T*>(data)[offset]);
  }
  template <typename Value>
  void Store(int t, std::int64_t offset, Value value) const {
    void* data = task_.tensors[t];
    if (data == nullptr) {
      return;
    }
    if (IsSecond(t)) {
      static_cast<U*>(data)[offset] = Convert<U>(static_cast<A>(value));
    } else {
      static_cast<T*>(data)[offset] = Convert<T>(static_cast<A>(value));
    }
  }
  [[nodiscard]] A LoadOfAnyType(int t, std::int64_t offset) const {
    const void* data = task_.tensors[t];
    if (data == nullptr) {
      return 0;
    }
    return VisitFloatingType(
        static_cast<DataType>(task_.types[t]), [&]<typename E>(std::type_identity<E> /*type*/) {
          return Convert<A>(static_cast<const E*>(data)[offset]);
        });
  }
  [[nodiscard]] std::int64_t LoadInteger(int t, std::int64_t offset) const {
    const void* data = task_.tensors[t];
    if (data == nullptr) {
      return 0;
    }
    return VisitIntegerType(
        static_cast<DataType>(task_.types[t]), [&]<typename E>(std::type_identity<E> /*type*/) {
          return static_cast<std::int64_t>(static_cast<const E*>(data)[offset]);
        });
  }
  void StoreOfAnyType(int t, std::int64_t offset, A value) const {
    if (task_.tensors[t] == nullptr) {
      return;
    }
    const auto type = static_cast<DataType>(task_.types[t]);
    if (type == DataType::kBool) {
      static_cast<bool*>(task_.tensors[t])[offset] = value != 0;
      return;
    }
    VisitFloatingType(type, [&]<typename E>(std::type_identity<E> /*type*/) {
      static_cast<E*>(task_.tensors[t])[offset] = Convert<E>(value);
    });
  }

  const RowsTask& task_;
  std::array<A, kMaxRowsScalars> scalars_{};
};

/// ResultsOfRows returns what the phases find of all rows.
template <typename Rows>
std::vector<typename Rows::Results>
ResultsOfRows(const Context& context, const RowsTask& task, const Rows& rows) {
  std::vector<typename Rows::Results> results(static_cast<std::size_t>(task.rows));
  const std::int64_t grain = CeilDivide(kRowsGrain, std::max<std::int64_t>(task.length, 1));
  ParallelFor(context, task.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      results[static_cast<std::size_t>(row)] = rows.ResultsOf(row);
    }
  });
  return results;
}

/// RunRows computes all that is wanted. Sums of columns read what element outputs may replace, so
/// they come first.
template <typename Functor, typename T, typename U>
void RunRows(const Context& context, const RowsTask& task) {
  using Rows = CpuRows<Functor, T, U>;
  const Rows rows(task);
  std::vector<typename Rows::Results> known;
  if constexpr (Functor::kSumsOfResults != 0) {
    if (WantsSumsOfResults<Functor>(task.tensors)) {
      known = ResultsOfRows(context, task, rows);
    }
  }
  if (rows.WantsColumns()) {
    const std::int64_t columns = CeilDivide(kRowsGrain, std::max<std::int64_t>(task.rows, 1));
    ParallelFor(context, task.length, columns, [&](std::int64_t begin, std::int64_t end) {
      // Some at a time: their sums take several times the memory of the elements of a row.
      for (std::int64_t first = begin; first < end; first += kRowsGrain) {
        rows.SumColumns(first, std::min(first + kRowsGrain, end), known);
      }
    });
    if (!rows.WantsRows()) {
      return;
    }
  }
  // Threads share a row of which nothing is to be found first.
  const std::int64_t whole = std::max<std::int64_t>(task.length, 1);
  const std::int64_t grain = CeilDivide(kRowsGrain, whole);
  const bool has_pieces = Functor::kPhases == 0 && !rows.ReplacesRowInputs();
  const std::int64_t piece = has_pieces ? std::min(whole, kRowsGrain) : whole;
  const std::int64_t pieces = CeilDivide(whole, piece);
  ParallelFor(context, task.rows * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t row = unit / pieces;
      const std::int64_t first = unit % pieces * piece;
      const typename Rows::Results results =
          known.empty() ? rows.ResultsOf(row) : known[static_cast<std::size_t>(row)];
      rows.Map(row, results, first, std::min(first + piece, task.length));
    }
  });
}

/// VisitRowsTypes calls visitor.operator()<T, U>() with the C++ types of both. The error names a
/// pair that is computed by no kernel: types that differ are float and one of 16 bits.
template <typename Functor, typename Visitor>
Status VisitRowsTypes(DataType first, DataType second, const Visitor& visitor) {
  if (first == second) {
    VisitFloatingType(first, [&]<typename T>(std::type_identity<T> /*type*/) {
      visitor.template operator()<T, T>();
    });
    return {};
  }
  if constexpr (Functor::kSecondTypes != 0) {
    if (second == DataType::kFloat && first == DataType::kMLFloat16) {
      visitor.template operator()<MLFloat16, float>();
      return {};
    }
    if (second == DataType::kFloat && first == DataType::kBFloat16) {
      visitor.template operator()<BFloat16, float>();
      return {};
    }
    if (first == DataType::kFloat && second == DataType::kMLFloat16) {
      visitor.template operator()<float, MLFloat16>();
      return {};
    }
  }
  return Internal(
      "rows of " + std::string(ToString(first)) + " are not computed beside " +
      std::string(ToString(second)));
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_ROWS_CPU_H_
