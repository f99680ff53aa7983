#include "gradsmith/gradsmith.h"
#include "support/conv_grad_call.h"

/// A plug-in with the library in it, which programs load and unload.

namespace {

gradsmith::Context* kept = nullptr;

}  // namespace

/// Calls through a Context of so many threads, and destroys it, or keeps it for ever. Returns 0
/// where the result is right.
extern "C" [[gnu::visibility("default")]] int gradsmith_plugin_call(int threads, int keep) {
  auto* context = new gradsmith::Context({.threads = threads});
  gradsmith::support::ConvGradCall call;
  const bool is_right = call.IsRightOn(*context);
  if (keep != 0) {
    kept = context;
  } else {
    delete context;
  }
  return is_right ? 0 : 1;
}
