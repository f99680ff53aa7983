#include "core/explain.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_backend.h"
#include "core/text.h"

namespace gradsmith {

namespace {

// NOLINTBEGIN(misc-unused-using-decls): they are used in lambdas, which the check overlooks
using internal::Counted;
using internal::DidYouMean;
using internal::Join;
using internal::Quoted;
// NOLINTEND(misc-unused-using-decls)
using internal::Shortened;
using internal::TypesText;

constexpr std::size_t kNearestShown = 3;

std::vector<std::string_view> OpNames(const std::vector<const Row*>& rows) {
  std::vector<std::string_view> names;
  for (const Row* row : rows) {
    if (names.empty() || names.back() != row->op->name) {
      names.push_back(row->op->name);
    }
  }
  return names;
}

std::string Request(std::string_view op, std::span<const DataType> types, Backend backend) {
  return Shortened(op) + TypesText(types) + " on " + std::string(ToString(backend));
}

/// How many fields of the request the row has differently; a backend weighs more than any type.
int Distance(const Row& row, std::span<const DataType> types, Backend backend) {
  int distance = row.backend == backend ? 0 : 100;
  for (std::size_t i = 0; i < row.types.size(); ++i) {
    distance += row.types[i] == types[i] ? 0 : 1;
  }
  return distance;
}

std::string FirstDifference(const Row& row, std::span<const DataType> types, Backend backend) {
  for (std::size_t i = 0; i < row.types.size(); ++i) {
    if (row.types[i] != types[i]) {
      return std::string(row.op->type_parameters[i]) + " is " +
             std::string(ToString(row.types[i])) + ", not " + std::string(ToString(types[i]));
    }
  }
  return row.backend == backend ? "nothing differs"
                                : "the backend is " + std::string(ToString(row.backend)) +
                                      ", not " + std::string(ToString(backend));
}

std::string
NearestRows(std::vector<const Row*> rows, std::span<const DataType> types, Backend backend) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    return Distance(*a, types, backend) < Distance(*b, types, backend);
  });
  rows.resize(std::min(rows.size(), kNearestShown));
  std::string text;
  for (const Row* row : rows) {
    text += "\n  nearest: " + ToString(*row) + " with " + TypesText(row->types) + ": " +
            FirstDifference(*row, types, backend);
  }
  return text;
}

/// The names, or the first of many and how many others there are.
std::string FirstOf(std::span<const std::string_view> names) {
  constexpr std::size_t kMost = 24;
  if (names.size() <= kMost) {
    return Join(names);
  }
  return Join(names.first(kMost)) + " and " + std::to_string(names.size() - kMost) + " others";
}

}  // namespace

namespace internal {

std::string Explain(
    const Registry& registry,
    std::string_view op,
    std::span<const DataType> types,
    Backend backend) {
  if (const Row* row = registry.Find(op, types, backend)) {
    const Status built = internal::CheckBuilt(backend);
    return Request(op, types, backend) + (built.ok() ? " is there: " : " is declared: ") +
           ToString(*row) + ", kernel " + Shortened(row->op->kernel) +
           (built.ok() ? "." : "; but " + built.message() + ".");
  }
  std::vector<const Row*> rows;
  std::ranges::copy_if(registry.rows(), std::back_inserter(rows), [op](const Row* row) {
    return row->op->name == op;
  });
  if (rows.empty()) {
    const std::vector<std::string_view> names = OpNames(registry.rows());
    const std::string suggestion = DidYouMean(op, names);
    return "There is no op " + Quoted(op) + (suggestion.empty() ? "." : suggestion) +
           " The ops are: " + (names.empty() ? "none; call RegisterAll" : FirstOf(names)) + ".";
  }
  const std::span<const std::string_view> parameters = rows.front()->op->type_parameters;
  if (types.size() != parameters.size()) {
    return Shortened(op) + " has " + Counted(std::ssize(parameters), "type parameter") + " (" +
           Join(parameters) + "); got " + Counted(std::ssize(types), "type") + ".";
  }
  return "No row is " + Request(op, types, backend) + "." +
         NearestRows(std::move(rows), types, backend);
}

}  // namespace internal

std::string Registry::Explain(std::string_view op, std::span<const DataType> types, Backend backend)
    const {
  try {
    return internal::Explain(*this, op, types, backend);
  } catch (const std::bad_alloc&) {
    return "out of memory";  // so short that it needs none
  }
}

}  // namespace gradsmith
