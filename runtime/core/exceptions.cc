#include "core/exceptions.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace gradsmith::internal {

namespace {

Status FromText(const char* text) noexcept {
  try {
    return Internal(text);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

// The end of a thread is no object: the reference that it is caught by binds to null.
__attribute__((no_sanitize("null"))) Status StatusOfException() {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {  // pthread_exit and pthread_cancel: it must reach the end
    throw;
#endif
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::length_error&) {  // a container of more elements than any memory has
    return OutOfMemory();
  } catch (const std::exception& error) {
    return FromText(error.what());
  } catch (...) {
    return FromText("an exception of an unknown type was thrown");
  }
}

}  // namespace gradsmith::internal
