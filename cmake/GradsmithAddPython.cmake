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
  set(links REGEX "${name}/(_ops|torch[.]pyi)$" EXCLUDE) # to what is generated
  foreach(from IN ITEMS package generated)
    install(DIRECTORY "${${from}}/" DESTINATION "${folder}" COMPONENT ${ARG_COMPONENT}
            FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE ${links})
    set(links "")
  endforeach()
endfunction()

# Finds what Python packages are built with, and says what is missing.
macro(_gradsmith_need_nanobind library)
  set(_gradsmith_or "name another interpreter with -DPython3_EXECUTABLE=<path>, or leave PYTHON out.")
  gradsmith_find_nanobind()
  if(NOT Python_FOUND)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) with PYTHON needs Python 3.11 or later with its headers, which were "
                        "not found. Install them (Debian, Ubuntu: python3-dev), ${_gradsmith_or}")
  endif()
  if(NOT nanobind_FOUND)
    message(FATAL_ERROR "gradsmith_add_ops(${library}) with PYTHON needs nanobind, which '${Python_EXECUTABLE}' does not have. "
                        "Install it ('${Python_EXECUTABLE}' -m pip install nanobind; where that refuses, in a virtual "
                        "environment: python3 -m venv .venv && .venv/bin/pip install nanobind PyYAML Jinja2, of which CMake "
                        "is told by -DPython3_EXECUTABLE=\$PWD/.venv/bin/python), ${_gradsmith_or}")
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

# What the modules of all libraries share, compiled once, in the way in which nanobind compiles the first of them.
function(_gradsmith_compile_binding module)
  if(TARGET gradsmith_python_binding)
    return()
  endif()
  gradsmith_glob(sources "${GRADSMITH_PYTHON_DIR}" src/*.cc)
  list(FILTER sources EXCLUDE REGEX "/(module|table)[.]cc$")
  add_library(gradsmith_python_binding OBJECT EXCLUDE_FROM_ALL ${sources})
  foreach(property IN ITEMS COMPILE_OPTIONS CXX_VISIBILITY_PRESET INCLUDE_DIRECTORIES LINK_LIBRARIES)
    get_target_property(value ${module} ${property})
    if(value)
      set_property(TARGET gradsmith_python_binding PROPERTY ${property} "${value}")
    endif()
  endforeach()
  get_target_property(definitions ${module} COMPILE_DEFINITIONS)
  list(FILTER definitions EXCLUDE REGEX "^(GRADSMITH|NB_DOMAIN)")
  set_target_properties(
    gradsmith_python_binding PROPERTIES COMPILE_DEFINITIONS "${definitions}" POSITION_INDEPENDENT_CODE ON)
  target_compile_features(gradsmith_python_binding PRIVATE cxx_std_20)
  target_link_libraries(gradsmith_python_binding PRIVATE gradsmith::gradsmith)
endfunction()

# _gradsmith_add_python_of_ops(<library> <namespace> <generated>)
#
# Adds the Python package of a library, whose generated part is in a folder, to python/ in the build folder. nanobind is
# known to the caller.
function(_gradsmith_add_python_of_ops library namespace generated)
  # Types of C++ are known to nanobind by their names, which are the same in each such module, so each has its domain.
  set(CMAKE_UNITY_BUILD ON) # a third of the time, for what nanobind has to be compiled of as well
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
  nanobind_add_module(
    ${library}_python STABLE_ABI NOMINSIZE NB_SUPPRESS_WARNINGS NB_DOMAIN ${namespace}
    "${GRADSMITH_PYTHON_DIR}/src/module.cc" "${GRADSMITH_PYTHON_DIR}/src/table.cc")
  set(package "${CMAKE_BINARY_DIR}/python/${namespace}")
  set_target_properties(
    ${library}_python
    PROPERTIES OUTPUT_NAME _core
               LIBRARY_OUTPUT_DIRECTORY "$<1:${package}>"
               GRADSMITH_PACKAGE "${package}"
               GRADSMITH_GENERATED "${generated}")
  target_compile_features(${library}_python PRIVATE cxx_std_20)
  target_compile_definitions(
    ${library}_python PRIVATE "GRADSMITH_PYTHON_OPS=\"${namespace}/ops.h\"" "GRADSMITH_PYTHON_NAMESPACE=${namespace}")
  target_include_directories(${library}_python PRIVATE "${GRADSMITH_RUNTIME_DIR}")
  _gradsmith_compile_binding(${library}_python)
  target_sources(${library}_python PRIVATE "$<TARGET_OBJECTS:gradsmith_python_binding>")
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
