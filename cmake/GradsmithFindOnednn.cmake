# Finds oneDNN, for this build and, installed, for programs that link a library built with it.
include_guard(GLOBAL)

# gradsmith_import_onednn(<variable>)
#
# Makes the target DNNL::dnnl, and OpenMP::OpenMP_CXX where oneDNN's threads are OpenMP's; they are global, since libraries
# of gradsmith_select in other folders link them too. Sets GRADSMITH_ONEDNN_VERSION
# and GRADSMITH_ONEDNN_RUNTIME, and the variable to what is missing, or to "".
#
# A shared library is taken as it is, unless dnnl_DIR or dnnl_ROOT names a package: Debian's ends with an error where there
# are no headers of OpenCL, which it does not bring and nothing here needs.
macro(gradsmith_import_onednn missing)
  set(${missing} "")
  find_path(GRADSMITH_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(GRADSMITH_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(GRADSMITH_ONEDNN_INCLUDE_DIR GRADSMITH_ONEDNN_LIBRARY)
  if(NOT TARGET DNNL::dnnl)
    if(GRADSMITH_ONEDNN_INCLUDE_DIR
       AND GRADSMITH_ONEDNN_LIBRARY
       AND NOT GRADSMITH_ONEDNN_LIBRARY MATCHES "\\.a$"
       AND NOT dnnl_DIR
       AND NOT dnnl_ROOT)
      add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
      set_target_properties(
        DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${GRADSMITH_ONEDNN_LIBRARY}"
                              INTERFACE_INCLUDE_DIRECTORIES "${GRADSMITH_ONEDNN_INCLUDE_DIR}")
    else()
      find_package(dnnl CONFIG QUIET GLOBAL)
    endif()
  endif()
  if(NOT TARGET DNNL::dnnl)
    set(${missing} "oneDNN was not found")
  else()
    _gradsmith_read_onednn(${missing})
  endif()
endmacro()

# By the headers: what threads oneDNN has decides what must be linked.
function(_gradsmith_read_onednn missing)
  get_target_property(folders DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
  # NO_CACHE: another oneDNN may be found the next time.
  find_path(folder oneapi/dnnl/dnnl_config.h HINTS ${folders} NO_CACHE)
  if(NOT folder)
    set(${missing} "oneDNN's header oneapi/dnnl/dnnl_config.h was not found" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS "${folder}/oneapi/dnnl/dnnl_version.h" numbers REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM numbers REPLACE ".* ([0-9]+).*" "\\1")
  list(JOIN numbers "." version)
  file(STRINGS "${folder}/oneapi/dnnl/dnnl_config.h" runtime REGEX "#define DNNL_CPU_THREADING_RUNTIME ")
  string(REGEX REPLACE ".*DNNL_RUNTIME_" "" runtime "${runtime}")
  if(version VERSION_LESS 2.6)
    set(${missing} "oneDNN in ${folder} is ${version}, and 2.6 or later is needed" PARENT_SCOPE)
    return()
  endif()
  if(NOT runtime MATCHES "^(OMP|SEQ)$")
    set(${missing} "oneDNN in ${folder} has threads of ${runtime}, and OpenMP's (or none) are needed" PARENT_SCOPE)
    return()
  endif()
  if(runtime STREQUAL "OMP")
    find_package(OpenMP QUIET COMPONENTS CXX GLOBAL)
    if(NOT TARGET OpenMP::OpenMP_CXX)
      set(${missing} "the compiler's OpenMP, whose threads oneDNN has, was not found" PARENT_SCOPE)
      return()
    endif()
  endif()
  set(GRADSMITH_ONEDNN_VERSION "${version}" PARENT_SCOPE)
  set(GRADSMITH_ONEDNN_RUNTIME "${runtime}" PARENT_SCOPE)
endfunction()
