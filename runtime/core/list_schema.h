#ifndef GRADSMITH_CORE_LIST_SCHEMA_H_
#define GRADSMITH_CORE_LIST_SCHEMA_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "gradsmith/schema.h"
#include "gradsmith/status.h"

/// Ops whose arguments are lists of tensors (OpSchema::has_lists), as what they are once a call has
/// chosen the length of its lists: ops of single tensors, which all else of the runtime knows.
namespace gradsmith::internal {

/// The most tensors that a list may have: with as many, 16 symbols for each can still be counted.
inline constexpr int kMaxListLength = 2000;

/// ListLength returns the length of an op's lists for which there are so many inputs and outputs,
/// or says what was expected.
Result<int> ListLength(const OpSchema& op, std::size_t inputs, std::size_t outputs);

/// ListLengthOf is ListLength by the arguments of one role, "input" or "output": 0 where it has no
/// lists, which tells nothing.
Result<int>
ListLengthOf(std::string_view role, std::span<const TensorSpec> specs, std::size_t count);

/// SpellOut returns the op for lists of `length` tensors, from 1 to kMaxListLength: in the place of
/// a list W it has the tensors W[0], W[1] and so on, in that of a symbol of each (SymbolSpec) D[0],
/// D[1] and so on. It is made once for each length and kept while calls go on to use that.
std::shared_ptr<const OpSchema> SpellOut(const OpSchema& op, int length);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_LIST_SCHEMA_H_
