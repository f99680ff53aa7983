#ifndef GRADSMITH_CORE_CALL_RECORDER_H_
#define GRADSMITH_CORE_CALL_RECORDER_H_

#include <atomic>
#include <span>

#include "core/problem_file.h"
#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// CallRecorder writes the problem of each call, once, to the file that the environment variable
/// GRADSMITH_RECORD names when the process makes its first call. Where it names none, a call costs
/// one branch more.
class CallRecorder {
 public:
  /// Note takes in a call that has succeeded. What goes wrong with the file is a warning, after
  /// which nothing is recorded.
  static void Note(
      const Row& row,
      const void* attributes,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs) {
    if (may_record_.load(std::memory_order_relaxed)) {
      Record(row, attributes, inputs, outputs);
    }
  }

 private:
  struct OpenFile;

  /// Null where no file is named.
  static Result<ProblemFile*> File();
  static void Record(
      const Row& row,
      const void* attributes,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs);

  /// False once it is known that nothing is recorded.
  static std::atomic<bool> may_record_;
  /// The file of this process, which lives as long as the process.
  static std::atomic<OpenFile*> open_file_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CALL_RECORDER_H_
