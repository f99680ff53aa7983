#ifndef GRADSMITH_ONEDNN_LIBRARY_H_
#define GRADSMITH_ONEDNN_LIBRARY_H_

#include <cstdint>
#include <dnnl.hpp>
#include <string>
#include <utility>

#include "gradsmith/status.h"

/// What all of oneDNN's kernels need: its engine, its version, and its errors as values.
namespace gradsmith::onednn {

/// Engine returns the one engine of the CPU, which threads share.
const dnnl::engine& Engine();

/// Version returns, for example, "oneDNN 2.6.3": of the library that is loaded.
std::string Version();

/// Fingerprint is a number made of all that a choice depends on besides problem, policy and
/// threads: the processor, what oneDNN uses of it, and oneDNN's version.
std::int64_t Fingerprint();

/// StatusOf returns one of oneDNN's errors with the library's version.
Status StatusOf(const dnnl::error& error);

/// Guarded calls oneDNN and returns its exceptions as a Status.
template <typename Call>
Status Guarded(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const dnnl::error& error) {
    return StatusOf(error);
  }
  return {};
}

}  // namespace gradsmith::onednn

#endif  // GRADSMITH_ONEDNN_LIBRARY_H_
