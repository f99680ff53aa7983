#include "core/call_recorder.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "core/exceptions.h"
#include "core/origin_process.h"
#include "core/problem_file.h"
#include "core/problem_words.h"
#include "core/warning.h"

namespace gradsmith::internal {

namespace {

std::string Path() {
  // A program that runs for another user than the one who started it hears nothing of that one.
  const char* path = secure_getenv("GRADSMITH_RECORD");  // NOLINT(concurrency-mt-unsafe): read once
  return path == nullptr ? "" : path;
}

}  // namespace

/// A child of a fork opens the file anew: a thread of its parent may have held the lock.
struct CallRecorder::OpenFile {
  OriginProcess origin;
  std::unique_ptr<ProblemFile> file;
};

std::atomic<bool> CallRecorder::may_record_ = true;
std::atomic<CallRecorder::OpenFile*> CallRecorder::open_file_ = nullptr;

Result<ProblemFile*> CallRecorder::File() {
  OpenFile* opened = open_file_.load(std::memory_order_acquire);
  if (opened != nullptr && opened->origin.IsCurrent()) {
    return opened->file.get();
  }
  const std::string path = Path();
  if (path.empty()) {
    return nullptr;
  }
  Result<std::unique_ptr<ProblemFile>> file = ProblemFile::Open(path);
  if (!file.ok()) {
    return file.status();
  }
  auto made = std::make_unique<OpenFile>();
  made->file = std::move(*file);
  if (open_file_.compare_exchange_strong(opened, made.get(), std::memory_order_acq_rel)) {
    opened = made.release();
  }
  return opened->file.get();
}

void CallRecorder::Record(
    const Row& row,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const Status status = CatchExceptions([&]() -> Status {
    const Result<ProblemFile*> file = File();
    if (!file.ok()) {
      return file.status();
    }
    if (*file == nullptr) {
      may_record_.store(false, std::memory_order_relaxed);
      return {};
    }
    const std::string line = ProblemWords(row, attributes, inputs, outputs);
    return line.empty() ? Status() : (*file)->Add(line);
  });
  if (!status.ok() && may_record_.exchange(false)) {
    static_cast<void>(CatchExceptions([&]() -> Status {
      Warn("calls are not recorded any more: " + std::string(status.message()));
      return {};
    }));
  }
}

}  // namespace gradsmith::internal
