#ifndef GRADSMITH_REGISTRY_H_
#define GRADSMITH_REGISTRY_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/schema.h"

namespace gradsmith {

/// DispatchTable is a constant list of rows, op by op, as the generator writes it.
using DispatchTable = std::span<const std::span<const Row>>;

/// Registry finds rows by op, types and backend. Fill it once; looking up is thread-safe and
/// allocates nothing.
///
///     Registry registry;
///     Status status = RegisterAll(registry);
class Registry {
 public:
  /// Add takes in a table that outlives the Registry. A row that is there already is an error that
  /// names both `ops.yaml` lines; out of memory is another. Nothing of the table is then added.
  Status Add(DispatchTable table);

  /// Find returns the row, or null; Explain says why.
  [[nodiscard]] const Row*
  Find(std::string_view op, std::span<const DataType> types, Backend backend) const;
  [[nodiscard]] const Row*
  Find(std::string_view op, std::initializer_list<DataType> types, Backend backend) const {
    return Find(op, std::span(types.begin(), types.size()), backend);
  }

  /// Explain says in sentences whether the combination is there and, if not, that the build lacks
  /// the row's backend, or the nearest rows and the first field in which each differs. Where there
  /// is no memory for sentences it returns "out of memory".
  [[nodiscard]] std::string
  Explain(std::string_view op, std::span<const DataType> types, Backend backend) const;
  [[nodiscard]] std::string
  Explain(std::string_view op, std::initializer_list<DataType> types, Backend backend) const {
    return Explain(op, std::span(types.begin(), types.size()), backend);
  }

  /// rows returns all rows, in the order in which they were added.
  [[nodiscard]] const std::vector<const Row*>& rows() const { return rows_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    const Row* row = nullptr;
  };

  Status AddRows(std::span<const Row> rows);
  void Insert(const Row* row);
  void Rehash();

  std::vector<const Row*> rows_;
  /// A hash table with open addressing, whose size is a power of two and which is at most half
  /// full.
  std::vector<Slot> slots_;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_REGISTRY_H_
