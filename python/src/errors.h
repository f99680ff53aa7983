#ifndef GRADSMITH_PYTHON_ERRORS_H_
#define GRADSMITH_PYTHON_ERRORS_H_

#include <nanobind/nanobind.h>

#include <string>

#include "gradsmith/status.h"

namespace gradsmith::python {

/// Raise throws the Python exception that fits a status that is not ok, with its sentence:
/// ValueError, NotImplementedError, MemoryError or RuntimeError.
[[noreturn]] void Raise(const Status& status);

[[noreturn]] void RaiseTypeError(const std::string& sentence);
[[noreturn]] void RaiseValueError(const std::string& sentence);

/// Check raises a status that is not ok.
inline void Check(const Status& status) {
  if (!status.ok()) {
    Raise(status);
  }
}

/// MustPass returns whether an error is not the business of who meets it: an interrupt, or memory
/// that ran out.
bool MustPass(const nanobind::python_error& error);

/// ClearError clears Python's error, and throws it where it must pass.
void ClearError();

/// TextOf returns a Python text in UTF-8, and what has no place there (lone surrogates) escaped.
std::string TextOf(nanobind::handle text);

/// TypeNameOf returns the name of an object's type, for sentences: "a numpy.ndarray".
std::string TypeNameOf(nanobind::handle object);

/// ReprOf returns an object's repr, cut where it is long.
std::string ReprOf(nanobind::handle object);

/// ShortTextOf returns a Python text as TextOf does, cut where it is longer than any name.
std::string ShortTextOf(nanobind::handle text);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_ERRORS_H_
