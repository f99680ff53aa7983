#ifndef GRADSMITH_PYTHON_LOCK_H_
#define GRADSMITH_PYTHON_LOCK_H_

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace gradsmith::python {

/// StayForever puts the calling thread to sleep until the process ends.
[[noreturn]] void StayForever();

/// EndOfThread keeps a thread where it is when Python ends it. Before 3.14 CPython ends a daemon
/// thread that wants the interpreter's lock while the interpreter goes: it unwinds the thread's
/// stack, through functions that must not be unwound and past destructors that need the lock.
/// Later versions put such threads to sleep, and so does this in all of them.
class EndOfThread {
 public:
  EndOfThread() = default;
  EndOfThread(const EndOfThread&) = delete;
  EndOfThread& operator=(const EndOfThread&) = delete;
  ~EndOfThread() {
    if (!has_come_back_) {
      StayForever();
    }
  }
  void ComeBack() { has_come_back_ = true; }

 private:
  bool has_come_back_ = false;
};

/// InPython returns what `call` returns, which runs Python's code or waits for the interpreter's
/// lock. `call` is to be of functions in C alone: what it throws does not get out.
template <typename Call>
auto InPython(const Call& call) {
  EndOfThread end;
  auto result = call();
  end.ComeBack();
  return result;
}

/// WithoutLock returns what `work` returns, and lets other threads run Python's code meanwhile.
template <typename Work>
auto WithoutLock(const Work& work) {
  PyThreadState* const state = PyEval_SaveThread();
  std::optional<decltype(work())> result;
  std::exception_ptr thrown;
  try {
    result = work();
  } catch (...) {
    thrown = std::current_exception();
  }
  // Not in a destructor: those that throw nothing end the process when they are unwound.
  InPython([state] {
    PyEval_RestoreThread(state);
    return true;
  });
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  return std::move(*result);
}

/// WithLock runs `work` on a thread that does not have the interpreter's lock.
template <typename Work>
void WithLock(const Work& work) {
  class Acquired {
   public:
    Acquired() : state_(InPython([] { return PyGILState_Ensure(); })) {}
    Acquired(const Acquired&) = delete;
    Acquired& operator=(const Acquired&) = delete;
    ~Acquired() { PyGILState_Release(state_); }

   private:
    PyGILState_STATE state_;
  };
  const Acquired acquired;
  work();
}

/// CallPython calls an object of Python, and raises what it raises.
template <typename... Arguments>
nanobind::object CallPython(nanobind::handle callable, const Arguments&... arguments) {
  // The first place is the callee's to use.
  PyObject* stack[] = {nullptr, arguments.ptr()...};
  PyObject* const result = InPython([&] {
    return PyObject_Vectorcall(
        callable.ptr(), stack + 1, sizeof...(arguments) | NB_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  });
  if (result == nullptr) {
    throw nanobind::python_error();
  }
  return nanobind::steal(result);
}

/// PackageName is the name of the Python package that this module is in, known once the module is
/// imported: gradsmith, or that of a library of own operators.
std::string& PackageName();

/// ImportPython returns an attribute of one of the package's modules, such as "_text".
nanobind::object ImportPython(const char* module, const char* name);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_LOCK_H_
