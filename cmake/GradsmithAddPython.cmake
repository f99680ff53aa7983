# Python packages of the libraries of gradsmith_add_ops. gradsmith-config.cmake says where the sources of these are:
# GRADSMITH_PYTHON_DIR, GRADSMITH_RUNTIME_DIR.
include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithFolders.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/GradsmithPython.cmake")

# gradsmith_install_python(<library> [DESTINATION <folder>] [COMPONENT <name>])
#
# Installs the Python package of a library that gradsmith_add_ops was given PYTHON for.
#
# Arguments
#   DESTINATION  where the package's folder goes, below the prefix; the prefix itself by default, which in a wheel that
#                scikit-build-core makes is the folder that Python imports from
#   COMPONENT    the component of the installation; python by default
function(gradsmith_install_python library)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "DESTINATION;COMPONENT" "")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gradsmith_install_python(${library}) does not take '${ARG_UNPARSED_ARGUMENTS}'; expected "
                        "DESTINATION, COMPONENT.")
  endif()
  if(NOT TARGET ${library}_python)
    message(FATAL_ERROR "gradsmith_install_python(${library}) finds no Python package of that library; expected "
                        "gradsmith_add_ops(${library} ... PYTHON) before it.")
  endif()
  if(NOT DEFINED ARG_DESTINATION)
    set(ARG_DESTINATION .)
  endif()
  if(NOT DEFINED ARG_COMPONENT)
    set(ARG_COMPONENT python)
  endif()
  get_target_property(package ${library}_python GRADSMITH_PACKAGE)
  get_target_property(generated ${library}_python GRADSMITH_GENERATED)
  cmake_path(GET package FILENAME name)
  set(folder "${ARG_DESTINATION}/${name}")
  install(TARGETS ${library}_python LIBRARY DESTINATION "${folder}" COMPONENT ${ARG_COMPONENT})
  foreach(kind IN ITEMS package generated)
    install(DIRECTORY "${${kind}}/" DESTINATION "${folder}" COMPONENT ${ARG_COMPONENT}
            FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
  endforeach()
endfunction()

# Finds what Python packages are built with, and says what is missing.
macro(_gradsmith_find_nanobind library)
  set(_gradsmith_or "name another interpreter with -DPython3_EXECUTABLE=<path>, or leave PYTHON out.")
  gradsmith_find_python()
  if(NOT Python_FOUND)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) with PYTHON needs Python 3.11 or later with its headers, which were "
                        "not found. Install them (Debian, Ubuntu: python3-dev), ${_gradsmith_or}")
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE _gradsmith_nanobind_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET HINTS "${_gradsmith_nanobind_dir}")
  if(NOT nanobind_FOUND)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) with PYTHON needs nanobind, which '${Python_EXECUTABLE}' does not have. "
                        "Install it ('${Python_EXECUTABLE}' -m pip install nanobind), ${_gradsmith_or}")
  endif()
endmacro()

# A package of the name must not hide another that it imports itself, or that programs expect.
function(_gradsmith_check_name_of_package library namespace)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import keyword, sys; print(keyword.iskeyword(sys.argv[1]) or sys.argv[1] in sys.stdlib_module_names)"
            "${namespace}"
    OUTPUT_VARIABLE is_taken
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT is_taken STREQUAL "False" OR namespace MATCHES "^(cupy|jax|numpy|nvidia|torch)$")
    message(FATAL_ERROR "gradsmith_add_ops(${library}) with PYTHON has the namespace '${namespace}', which is a keyword of "
                        "Python or a module that others import. Give another as NAMESPACE.")
  endif()
endfunction()

# _gradsmith_add_python_of_ops(<library> <namespace> <generated>)
#
# Adds the Python package of a library, whose generated part is in a folder, to python/ in the build folder.
function(_gradsmith_add_python_of_ops library namespace generated)
  _gradsmith_find_nanobind(${library})
  _gradsmith_check_name_of_package(${library} "${namespace}")

  gradsmith_glob(sources "${GRADSMITH_PYTHON_DIR}" src/*.cc)
  # Types of C++ are known to nanobind by their names, which are the same in each such module, so each has its domain.
  nanobind_add_module(
    ${library}_python STABLE_ABI NOMINSIZE NB_SUPPRESS_WARNINGS NB_DOMAIN ${namespace} ${sources})
  set(package "${CMAKE_BINARY_DIR}/python/${namespace}")
  set_target_properties(
    ${library}_python
    PROPERTIES OUTPUT_NAME _core
               LIBRARY_OUTPUT_DIRECTORY "$<1:${package}>"
               UNITY_BUILD ON
               UNITY_BUILD_BATCH_SIZE 0
               GRADSMITH_PACKAGE "${package}"
               GRADSMITH_GENERATED "${generated}")
  target_compile_features(${library}_python PRIVATE cxx_std_20)
  target_compile_definitions(
    ${library}_python PRIVATE "GRADSMITH_PYTHON_OPS=\"${namespace}/ops.h\"" "GRADSMITH_PYTHON_NAMESPACE=${namespace}")
  target_include_directories(${library}_python PRIVATE "${GRADSMITH_RUNTIME_DIR}")
  target_link_libraries(${library}_python PRIVATE ${library})
  # Such modules share a process: none is to find another's variables in place of its own.
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT APPLE)
    target_link_options(${library}_python PRIVATE "LINKER:--exclude-libs,ALL")
  endif()

  gradsmith_glob(modules "${GRADSMITH_PYTHON_DIR}" package/*.py package/*.pyi package/py.typed)
  foreach(module IN LISTS modules)
    cmake_path(GET module FILENAME name)
    configure_file("${module}" "${package}/${name}" COPYONLY)
  endforeach()
  set(GRADSMITH_NAMESPACE "${namespace}")
  configure_file("${GRADSMITH_PYTHON_DIR}/package/__init__.py.in" "${package}/__init__.py" @ONLY)
  foreach(name IN ITEMS _ops torch.pyi)
    file(CREATE_LINK "${generated}/${name}" "${package}/${name}" SYMBOLIC)
  endforeach()
endfunction()
