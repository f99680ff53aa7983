# Operators of a project that finds the installed package. gradsmith-config.cmake includes this and says where the
# package's files are: GRADSMITH_CODEGEN_DIR, GRADSMITH_TEMPLATES_DIR, GRADSMITH_RUNTIME_DIR, GRADSMITH_TESTS_DIR,
# GRADSMITH_PYTHON_DIR.
include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithAddPython.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/GradsmithGenerate.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/GradsmithKernels.cmake")

# gradsmith_add_ops(<library> SCHEMA <file> [NAMESPACE <name>] [KERNELS <source>...] [ORACLES <source>...]
#                   [SHARDS <number>] [TESTS] [DOCS] [PYTHON])
#
# Adds a static library of the operators that a schema declares. It links gradsmith::gradsmith; programs link it and
# include <NAME/ops.h>.
#
# Arguments
#   SCHEMA     the operators, for example my_ops.yaml
#   NAMESPACE  C++ namespace of the operators, and folder of their headers; by default the library's name with what
#              cannot be part of an identifier replaced by '_'
#   KERNELS    sources of handwritten kernels, .cc and .cu. What a family of these takes is in <family>/kernels.h in the
#              calling folder. Where the library is built for CUDA as well, GRADSMITH_HAS_CUDA is defined
#   ORACLES    sources of what TESTS compare handwritten kernels with; declared in reference/<family>.h in the calling
#              folder
#   SHARDS     number of source files that the operators are spread over; 1 by default
#   TESTS      adds tests of every operator, <library>.cpu and <library>.cuda, for ctest; needs GoogleTest
#   DOCS       writes reference pages to gradsmith/<library>/docs in the build folder
#   PYTHON     adds a Python package of the operators, python/<NAMESPACE> in the build folder; needs Python's headers and
#              nanobind. gradsmith_install_python installs it
function(gradsmith_add_ops library)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TESTS;DOCS;PYTHON" "SCHEMA;NAMESPACE;SHARDS" "KERNELS;ORACLES")
  _gradsmith_check_ops_arguments("${library}")
  _gradsmith_check_ops_sources("${library}" KERNELS)
  _gradsmith_check_ops_sources("${library}" ORACLES)
  if(ARG_ORACLES AND NOT ARG_TESTS)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has ORACLES, which are for TESTS alone. Give TESTS as well, or leave "
                        "ORACLES out.")
  endif()
  _gradsmith_check_families()
  _gradsmith_find_cuda_for_ops(has_cuda)
  if(ARG_PYTHON)
    _gradsmith_need_nanobind(${library})
    _gradsmith_check_name_of_package(${library} "${ARG_NAMESPACE}")
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/gradsmith/${library}")
  _gradsmith_generate_ops(${library} "${folder}")
  set(handwritten "${ARG_KERNELS}")
  list(TRANSFORM handwritten PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  set(kernel_sources ${handwritten})
  list(FILTER kernel_sources INCLUDE REGEX "[.]cu$")
  list(FILTER handwritten EXCLUDE REGEX "[.]cu$")
  _gradsmith_add_images_of_ops("${has_cuda}" "${folder}" "${kernel_sources}" "${formula_sources}" images)

  add_library(${library} STATIC ${sources} ${images} ${handwritten})
  add_dependencies(${library} ${library}_generate)
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${library} PRIVATE -ffunction-sections -fdata-sections)
  target_include_directories(${library} PUBLIC "$<BUILD_INTERFACE:${folder}/include>")
  _gradsmith_include_runtime(${library} "${has_cuda}")
  target_include_directories(${library} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${folder}/kernels" "${folder}/src")
  target_link_libraries(${library} PUBLIC gradsmith::gradsmith)
  if(has_cuda)
    target_compile_definitions(${library} PRIVATE GRADSMITH_HAS_CUDA)
  endif()
  if(ARG_TESTS)
    _gradsmith_add_tests_of_ops(
      ${library} "${ARG_NAMESPACE}" "${ARG_SCHEMA}" "${has_cuda}" ${test_sources} ${ARG_ORACLES})
  endif()
  if(ARG_PYTHON)
    _gradsmith_add_python_of_ops(${library} "${ARG_NAMESPACE}" "${folder}/python/${ARG_NAMESPACE}")
  endif()
endfunction()

# Checks what gradsmith_add_ops was given, and sets what was left out.
macro(_gradsmith_check_ops_arguments library)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) does not take '${ARG_UNPARSED_ARGUMENTS}'; expected SCHEMA, "
                        "NAMESPACE, KERNELS, ORACLES, SHARDS, TESTS, DOCS, PYTHON.")
  endif()
  if(NOT ARG_SCHEMA)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has no SCHEMA; expected a file such as my_ops.yaml.")
  endif()
  cmake_path(ABSOLUTE_PATH ARG_SCHEMA BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${ARG_SCHEMA}")
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has SCHEMA '${ARG_SCHEMA}'; there is no such file.")
  endif()
  if(NOT ARG_NAMESPACE)
    string(MAKE_C_IDENTIFIER "${library}" ARG_NAMESPACE)
    string(TOLOWER "${ARG_NAMESPACE}" ARG_NAMESPACE)
  endif()
  if(NOT ARG_NAMESPACE MATCHES "^[a-z][a-z0-9]*(_[a-z0-9]+)*$" OR ARG_NAMESPACE MATCHES "^(gradsmith|std|testing)$")
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has the namespace '${ARG_NAMESPACE}'; expected lower-case words and "
                        "digits joined by '_', and none of gradsmith, std and testing. Give another as NAMESPACE.")
  endif()
  get_property(_gradsmith_other GLOBAL PROPERTY "GRADSMITH_LIBRARY_IN_${ARG_NAMESPACE}")
  if(_gradsmith_other)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has the namespace '${ARG_NAMESPACE}', which is that of library "
                        "${_gradsmith_other}. Give another as NAMESPACE.")
  endif()
  set_property(GLOBAL PROPERTY "GRADSMITH_LIBRARY_IN_${ARG_NAMESPACE}" "${library}")
  if(NOT DEFINED ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  if(NOT ARG_SHARDS MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "gradsmith_add_ops(${library}) has SHARDS '${ARG_SHARDS}'; expected a whole number, 1 or more.")
  endif()
endmacro()

# Checks that the sources that gradsmith_add_ops, the caller, was given are there, or are made by the build.
function(_gradsmith_check_ops_sources library argument)
  foreach(source IN LISTS ARG_${argument})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE file)
    get_source_file_property(is_generated "${source}" GENERATED)
    if(is_generated OR source MATCHES "^[$]<" OR (EXISTS "${file}" AND NOT IS_DIRECTORY "${file}"))
      continue()
    endif()
    set(words "")
    if(source MATCHES "^[A-Z]+$")
      set(words " The words it takes are SCHEMA, NAMESPACE, KERNELS, ORACLES, SHARDS, TESTS, DOCS and PYTHON.")
    endif()
    message(FATAL_ERROR "gradsmith_add_ops(${library}): ${argument} names '${source}', which is not there; expected a source, "
                        "by its path from ${CMAKE_CURRENT_SOURCE_DIR}.${words}")
  endforeach()
endfunction()

# Generates the operators of gradsmith_add_ops, its caller, into a folder. Sets sources, formula_sources and test_sources.
function(_gradsmith_generate_ops library folder)
  set(without "")
  foreach(kind IN ITEMS docs python tests)
    string(TOUPPER ${kind} argument)
    if(NOT ARG_${argument})
      list(APPEND without ${kind})
    endif()
  endforeach()
  # Make does not notice that a command has other options.
  file(CONFIGURE OUTPUT "${folder}/without.txt" CONTENT "${without}\n")
  gradsmith_generate(
    TARGET ${library}_generate
    SCHEMA "${ARG_SCHEMA}"
    FOLDER "${folder}"
    LIBRARY "${ARG_NAMESPACE}"
    KERNELS "${CMAKE_CURRENT_SOURCE_DIR}"
    SHARDS "${ARG_SHARDS}"
    DEPENDS "${folder}/without.txt"
    WITHOUT ${without}
    LIBRARY_SOURCES sources
    KERNEL_SOURCES formula_sources
    TEST_SOURCES test_sources)
  foreach(files IN ITEMS sources formula_sources test_sources)
    set(${files} "${${files}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Sets the variable to the sources by which a library of gradsmith_add_ops, the caller, holds the images of its CUDA kernels,
# or without CUDA says that there are none.
function(_gradsmith_add_images_of_ops has_cuda folder kernel_sources formula_sources result)
  if(has_cuda)
    gradsmith_compile_kernels(
      images
      FOLDER "${folder}/kernels"
      PREFIX "${ARG_NAMESPACE}_"
      INCLUDES "${CMAKE_CURRENT_SOURCE_DIR}"
      SOURCES ${kernel_sources}
      FORMULAS ${formula_sources})
  else()
    gradsmith_declare_kernels(
      images
      FOLDER "${folder}/kernels"
      PREFIX "${ARG_NAMESPACE}_"
      SOURCES ${kernel_sources} ${formula_sources})
  endif()
  set(${result} "${images}" PARENT_SCOPE)
endfunction()

# A family that is called like a folder of the runtime's would hide its headers, or be hidden.
function(_gradsmith_check_families)
  gradsmith_glob(headers "${CMAKE_CURRENT_SOURCE_DIR}" */kernels.h)
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH family)
    cmake_path(GET family FILENAME name)
    if(EXISTS "${GRADSMITH_RUNTIME_DIR}/${name}")
      message(FATAL_ERROR "gradsmith_add_ops: kernels in '${family}' would be mistaken for those of gradsmith's own "
                          "folder ${name}. Give the folder another name.")
    endif()
  endforeach()
endfunction()

# Sets the variable to whether operators are built for CUDA: where the installed library is, and nvcc is here.
macro(_gradsmith_find_cuda_for_ops result)
  set(${result} OFF)
  if(GRADSMITH_PACKAGE_HAS_CUDA)
    find_package(CUDAToolkit 12.4 QUIET)
    if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
      set(${result} ON)
      if(NOT GRADSMITH_CUDA_ARCHITECTURES)
        set(GRADSMITH_CUDA_ARCHITECTURES "${GRADSMITH_PACKAGE_CUDA_ARCHITECTURES}")
      endif()
      find_path(
        GRADSMITH_CUDNN_INCLUDE_DIR cudnn_graph.h
        HINTS "${GRADSMITH_CUDNN_ROOT}" ${CUDAToolkit_INCLUDE_DIRS}
        PATH_SUFFIXES include)
    else()
      message(STATUS "gradsmith: no CUDA Toolkit 12.4 or later with nvcc was found: operators are built for the CPU alone")
    endif()
  endif()
endmacro()

# Lets a target include what is the runtime's own.
function(_gradsmith_include_runtime target has_cuda)
  target_include_directories(${target} PRIVATE "${GRADSMITH_RUNTIME_DIR}")
  if(has_cuda)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    if(GRADSMITH_CUDNN_INCLUDE_DIR)
      target_include_directories(${target} SYSTEM PRIVATE "${GRADSMITH_CUDNN_INCLUDE_DIR}")
    endif()
  endif()
endfunction()

# What tests of all libraries share, compiled once.
function(_gradsmith_add_test_support has_cuda)
  if(TARGET gradsmith_test_support)
    return()
  endif()
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "gradsmith_add_ops with TESTS needs GoogleTest. Install it (Debian, Ubuntu: libgtest-dev), or "
                        "leave TESTS out.")
  endif()
  gradsmith_glob(sources "${GRADSMITH_TESTS_DIR}" support/*.cc)
  gradsmith_glob(oracles "${GRADSMITH_TESTS_DIR}" reference/*.cc)
  _gradsmith_list_families(families)
  foreach(family IN LISTS families)
    list(REMOVE_ITEM oracles "${GRADSMITH_TESTS_DIR}/reference/${family}.cc")
  endforeach()
  if(has_cuda AND GRADSMITH_CUDNN_INCLUDE_DIR)
    list(APPEND sources "${GRADSMITH_TESTS_DIR}/support/cuda/device_allocation.cc")
  else()
    list(APPEND sources "${GRADSMITH_TESTS_DIR}/support/no_cuda/device_allocation.cc")
  endif()
  # Compiled together they take a fraction of the time; not those two, which declare the same.
  set_source_files_properties(${sources} PROPERTIES UNITY_GROUP support)
  set_source_files_properties(${oracles} PROPERTIES UNITY_GROUP oracles)
  set_source_files_properties(
    "${GRADSMITH_TESTS_DIR}/support/check_neighbours.cc" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(gradsmith_test_support STATIC EXCLUDE_FROM_ALL ${sources} ${oracles})
  set_target_properties(gradsmith_test_support PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_include_directories(gradsmith_test_support SYSTEM PUBLIC "${GRADSMITH_TESTS_DIR}")
  _gradsmith_include_runtime(gradsmith_test_support "${has_cuda}")
  target_compile_options(gradsmith_test_support PRIVATE "$<$<CONFIG:Release>:-O1>")
  target_link_libraries(gradsmith_test_support PUBLIC gradsmith::gradsmith GTest::gtest)
endfunction()

# Sets the variable to the library's own families of kernels.
function(_gradsmith_list_families result)
  gradsmith_glob(headers "${GRADSMITH_RUNTIME_DIR}" */kernels.h)
  set(families "")
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    cmake_path(GET folder FILENAME family)
    list(APPEND families "${family}")
  endforeach()
  set(${result} "${families}" PARENT_SCOPE)
endfunction()

# _gradsmith_add_tests_of_ops(<library> <namespace> <schema> <has CUDA> <source>...)
function(_gradsmith_add_tests_of_ops library namespace schema has_cuda)
  _gradsmith_add_test_support("${has_cuda}")
  # The tests need the library's own oracles of the families that the schema names.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${schema}")
  file(READ "${schema}" text)
  _gradsmith_list_families(families)
  foreach(family IN LISTS families)
    if(text MATCHES "[^a-z_]${family}::")
      list(APPEND ARGN "${GRADSMITH_TESTS_DIR}/reference/${family}.cc")
    endif()
  endforeach()
  add_executable(${library}_tests "${GRADSMITH_TESTS_DIR}/generated_tests_main.cc" ${ARGN})
  target_compile_definitions(
    ${library}_tests PRIVATE "GRADSMITH_TESTED_OPS=\"${namespace}/ops.h\"" "GRADSMITH_TESTED_NAMESPACE=${namespace}")
  target_include_directories(${library}_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${library}_tests PRIVATE ${library} gradsmith_test_support)
  # The tests take longer to optimise than to run.
  target_compile_options(${library}_tests PRIVATE "$<$<CONFIG:Release>:-O0>")
  set(backends cpu)
  if(has_cuda AND GRADSMITH_CUDNN_INCLUDE_DIR)
    list(APPEND backends cuda)
  endif()
  foreach(backend IN LISTS backends)
    add_test(NAME ${library}.${backend} COMMAND ${library}_tests --backend=${backend} --gtest_brief=1)
    set_tests_properties(
      ${library}.${backend} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 ENVIRONMENT "GRADSMITH_CACHE=off")
  endforeach()
endfunction()
