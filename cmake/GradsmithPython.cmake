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
