#ifndef GRADSMITH_CORE_TENSOR_MEMORY_H_
#define GRADSMITH_CORE_TENSOR_MEMORY_H_

#include <cstddef>
#include <string_view>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// What a call checks of the memory that its tensors lie in, whoever calls. The names are the
/// tensors', for the sentences.
namespace gradsmith::internal {

/// CheckMemory checks strides, how far they reach, and data: that there is some, unless it may be
/// null, aligned to the elements.
Status CheckMemory(std::string_view name, const ConstTensorRef& tensor, bool may_be_null = false);

/// CheckNotShared refuses an output of which two elements share memory.
Status CheckNotShared(std::string_view name, const ConstTensorRef& output);

/// SpanBytes returns how many bytes of memory a tensor reaches over, gaps among them.
std::size_t SpanBytes(const ConstTensorRef& tensor);

/// RoleAndName is, for example, "input" and "X".
struct RoleAndName {
  std::string_view role;
  std::string_view name;
};

/// CheckDisjoint refuses an output that shares memory with another tensor.
Status CheckDisjoint(
    std::string_view name,
    const ConstTensorRef& output,
    const RoleAndName& other_name,
    const ConstTensorRef& other);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_TENSOR_MEMORY_H_
