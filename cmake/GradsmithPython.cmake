# What the Python packages are built with.

# gradsmith_find_python()
#
# Finds Python with its headers, the same one that runs the generator where that is named: sets Python_FOUND and the
# other variables of CMake's module FindPython in the caller's scope, where nanobind looks for them.
macro(gradsmith_find_python)
  if(Python3_EXECUTABLE AND NOT Python_EXECUTABLE)
    set(Python_EXECUTABLE "${Python3_EXECUTABLE}")
  endif()
  find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
endmacro()

# gradsmith_find_nanobind()
#
# Finds Python as gradsmith_find_python does, and the nanobind that it has: sets nanobind_FOUND in the caller's scope.
macro(gradsmith_find_nanobind)
  gradsmith_find_python()
  if(Python_FOUND)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
      OUTPUT_VARIABLE _gradsmith_nanobind_dir
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind CONFIG QUIET HINTS "${_gradsmith_nanobind_dir}")
  endif()
endmacro()
