include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithKernels.cmake")

set(GRADSMITH_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO (where the CUDA Toolkit and cuDNN 9 are found), ON or OFF")
set_property(CACHE GRADSMITH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GRADSMITH_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING
    "Compute capabilities that the CUDA kernels are compiled for: 75 or more, as 90, 90-real or 90-virtual; not native or all")
option(GRADSMITH_CUDA_FAST_COMPILE
       "Compile the CUDA kernels in a fifth of the time, where nvcc can, into slow ones: for builds that run none of them" OFF)
set(GRADSMITH_CUDNN_ROOT "" CACHE PATH "Where cuDNN 9 is installed; empty: searched")

# gradsmith_find_cuda(<variable>)
#
# Sets the variable to whether the CUDA backend is built, and says why not. Where it is, sets
#   CUDAToolkit_NVCC_EXECUTABLE, CUDAToolkit_INCLUDE_DIRS
#   GRADSMITH_CUDNN_INCLUDE_DIR, GRADSMITH_CUDNN_VERSION   what is compiled against
#   GRADSMITH_CUDNN_LIBRARY                                what the tests load, and programs try last; empty where there are only headers
macro(gradsmith_find_cuda result)
  string(TOUPPER "${GRADSMITH_CUDA}" _gradsmith_cuda)
  set(_gradsmith_missing "")
  if(NOT _gradsmith_cuda MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "GRADSMITH_CUDA is '${GRADSMITH_CUDA}'; it must be AUTO, ON or OFF.")
  elseif(_gradsmith_cuda STREQUAL "OFF")
    set(_gradsmith_missing "GRADSMITH_CUDA is OFF")
  else()
    find_package(CUDAToolkit 12.4 QUIET)
    if(CUDAToolkit_FOUND OR GRADSMITH_CUDNN_ROOT)
      _gradsmith_find_cudnn(_gradsmith_missing)
    endif()
    if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
      set(_gradsmith_missing "no CUDA Toolkit 12.4 or later was found")
    endif()
  endif()
  if(_gradsmith_missing STREQUAL "")
    set(${result} ON)
  elseif(NOT _gradsmith_cuda STREQUAL "ON")
    set(${result} OFF)
    set(GRADSMITH_CUDA_MISSING "${_gradsmith_missing}")
  else()
    message(FATAL_ERROR "GRADSMITH_CUDA is ${GRADSMITH_CUDA}, but ${_gradsmith_missing}. Name the toolkit with "
                        "-DCUDAToolkit_ROOT=<path> and cuDNN with -DGRADSMITH_CUDNN_ROOT=<path>, or configure with "
                        "-DGRADSMITH_CUDA=OFF.")
  endif()
endmacro()

# What was found is cached, and find_path would not look again.
function(_gradsmith_forget_cudnn_of_another_root)
  if(NOT "${GRADSMITH_CUDNN_ROOT}" STREQUAL "${GRADSMITH_CUDNN_SOUGHT_IN}")
    unset(GRADSMITH_CUDNN_INCLUDE_DIR CACHE)
    unset(GRADSMITH_CUDNN_LIBRARY CACHE)
  endif()
  set(GRADSMITH_CUDNN_SOUGHT_IN "${GRADSMITH_CUDNN_ROOT}" CACHE INTERNAL "The root that was last searched")
endfunction()

# An error where a root was said: another cuDNN, or none, is not what was asked for.
function(_gradsmith_refuse_cudnn_root reason)
  if(GRADSMITH_CUDNN_ROOT)
    message(FATAL_ERROR "GRADSMITH_CUDNN_ROOT is '${GRADSMITH_CUDNN_ROOT}', but ${reason}. Name the folder that holds the "
                        "folders include and lib of cuDNN 9; empty, it is searched for.")
  endif()
endfunction()

# Finds cuDNN 9: where GRADSMITH_CUDNN_ROOT says, beside the toolkit, in the system, or in pip's package. That comes
# first for a wheel, which loads it first as well. A root that is said and holds none is an error.
function(_gradsmith_find_cudnn missing)
  _gradsmith_forget_cudnn_of_another_root()
  if(GRADSMITH_CUDNN_ROOT)
    set(roots "${GRADSMITH_CUDNN_ROOT}")
    set(only NO_DEFAULT_PATH)
  else()
    set(roots ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_LIBRARY_ROOT}" "${CUDAToolkit_TARGET_DIR}")
    find_package(Python3 QUIET COMPONENTS Interpreter)
    if(Python3_Interpreter_FOUND)
      execute_process(
        COMMAND "${Python3_EXECUTABLE}" -c "import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])"
        OUTPUT_VARIABLE pip_root
        OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET)
      if(SKBUILD)
        list(PREPEND roots ${pip_root})
      else()
        list(APPEND roots ${pip_root})
      endif()
    endif()
    set(only "")
  endif()
  find_path(GRADSMITH_CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${roots} PATH_SUFFIXES include ${only})
  if(NOT GRADSMITH_CUDNN_INCLUDE_DIR)
    _gradsmith_refuse_cudnn_root("cuDNN's header cudnn_graph.h is not there, nor in its folder include")
    set(${missing} "cuDNN's header cudnn_graph.h was not found" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS "${GRADSMITH_CUDNN_INCLUDE_DIR}/cudnn_version.h" lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  list(TRANSFORM lines REPLACE ".* ([0-9]+).*" "\\1")
  list(JOIN lines "." version)
  if(version VERSION_LESS 9 OR NOT version VERSION_LESS 10)
    _gradsmith_refuse_cudnn_root("cuDNN in ${GRADSMITH_CUDNN_INCLUDE_DIR} is ${version}, and 9 is needed")
    set(${missing} "cuDNN in ${GRADSMITH_CUDNN_INCLUDE_DIR} is ${version}, and 9 is needed" PARENT_SCOPE)
    return()
  endif()
  # The library that belongs to the headers; it is loaded at run time, not linked.
  cmake_path(GET GRADSMITH_CUDNN_INCLUDE_DIR PARENT_PATH root)
  find_file(GRADSMITH_CUDNN_LIBRARY libcudnn.so.9 HINTS "${root}" ${roots} PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu
                                                                                       lib/aarch64-linux-gnu ${only})
  set(GRADSMITH_CUDNN_VERSION "${version}" PARENT_SCOPE)
endfunction()
