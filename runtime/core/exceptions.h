#ifndef GRADSMITH_CORE_EXCEPTIONS_H_
#define GRADSMITH_CORE_EXCEPTIONS_H_

#include <type_traits>
#include <utility>

#include "gradsmith/status.h"

/// Errors are values wherever the library is called: what is thrown within, by the standard library
/// or by a function of the caller's, ends at the public function.
namespace gradsmith::internal {

/// StatusOfException is the exception that is being handled, as a Status: what memory was not there
/// for is out of memory, all else an internal error with the exception's text. It needs no memory.
/// That a thread is being ended is thrown on.
Status StatusOfException();

/// CatchExceptions calls what a public function does, and returns its Status or Result.
template <typename Call>
std::invoke_result_t<Call> CatchExceptions(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return StatusOfException();
  }
}

/// CallOr is CatchExceptions for a function that returns no Status: where something is thrown,
/// `otherwise` is returned.
template <typename Call>
std::invoke_result_t<Call> CallOr(Call&& call, std::invoke_result_t<Call> otherwise) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    static_cast<void>(StatusOfException());  // throws on that a thread is being ended
    return otherwise;
  }
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_EXCEPTIONS_H_
