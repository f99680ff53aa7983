include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithFolders.cmake")

# Sets where the generator is and what it reads: what is installed where that is known, else the repository's, which has
# the folder of these modules. A function that is called where the repository is a subdirectory sets them for itself.
macro(_gradsmith_locate_generator modules)
  if(NOT GRADSMITH_CODEGEN_DIR)
    cmake_path(SET GRADSMITH_CODEGEN_DIR NORMALIZE "${modules}/../codegen")
    cmake_path(SET GRADSMITH_TEMPLATES_DIR NORMALIZE "${modules}/../templates")
    # Where the generator reads what each kernel takes.
    cmake_path(SET GRADSMITH_RUNTIME_DIR NORMALIZE "${modules}/../runtime")
  endif()
  gradsmith_glob(GRADSMITH_KERNEL_HEADERS "${GRADSMITH_RUNTIME_DIR}" */kernels.h)
  # Where it reads the shape rules that those of families may end in.
  set(GRADSMITH_SHARED_RULES "${GRADSMITH_RUNTIME_DIR}/core/shape_rules.h")
endmacro()
_gradsmith_locate_generator("${CMAKE_CURRENT_LIST_DIR}")

# gradsmith_generate(TARGET <name> SCHEMA <file> FOLDER <folder> [LIBRARY <name>] [KERNELS <folder>] SHARDS <number>
#                    [SELECTION <option>... DEPENDS <file>...] [WITHOUT <kind>...] LIBRARY_SOURCES <variable> [KERNEL_SOURCES <variable>] TEST_SOURCES <variable>)
#
# Generates the operators of a schema into a folder of the build tree.
#
# Arguments
#   TARGET           name of the custom target that runs the generator; what compiles the sources depends on it
#   SCHEMA           the operators, for example ops.yaml
#   FOLDER           where the generated files go
#   LIBRARY          namespace of the operators and of the kernels beside the library's; gradsmith by default
#   KERNELS          folder with the kernels of families beside the library's; none by default. What a family's sources
#                    include as <family>/operands.h and <family>/shape_rules.h is in FOLDER/src
#   SHARDS           number of source files that the operators are spread over
#   SELECTION        options of the generator that say which rows there are; all by default
#   DEPENDS          what these options are read from
#   WITHOUT          what is not written: docs, python, tests
#   LIBRARY_SOURCES  variable that receives the sources of the library
#   KERNEL_SOURCES   variable that receives the sources of its CUDA kernels, of which there are as many
#   TEST_SOURCES     variable that receives the sources of the tests
#
# The command's one output is a stamp, and the generator leaves alone the files whose content is as it should be: so
# an edit compiles what it changed, and a build after that runs nothing, with Ninja as with Make. The stamp lies in the
# folder, so that a build after the folder was deleted makes it anew.
function(gradsmith_generate)
  cmake_parse_arguments(
    PARSE_ARGV 0 ARG "" "TARGET;SCHEMA;FOLDER;LIBRARY;KERNELS;SHARDS;LIBRARY_SOURCES;KERNEL_SOURCES;TEST_SOURCES"
    "SELECTION;DEPENDS;WITHOUT")
  _gradsmith_check_what_is_generated("${ARG_SCHEMA}" "${ARG_SHARDS}")
  _gradsmith_find_python()
  _gradsmith_list_generated_sources("${ARG_FOLDER}" "${ARG_SHARDS}" "${ARG_WITHOUT}")
  set(kernel_headers "")
  if(ARG_KERNELS)
    gradsmith_glob(kernel_headers "${ARG_KERNELS}" */kernels.h)
  endif()
  _gradsmith_list_family_headers("${ARG_FOLDER}" "${ARG_LIBRARY}" "${kernel_headers}" family_headers)
  _gradsmith_list_generator_files("${kernel_headers}" generator_files)

  set(manifest "${ARG_FOLDER}/manifest.txt")
  set(included_list "${ARG_FOLDER}/included.txt")
  set(stamp "${ARG_FOLDER}/stamp")
  _gradsmith_read_included_files("${included_list}" "${stamp}" included)
  _gradsmith_generator_options(options)
  set(generate
      "${CMAKE_COMMAND}" -E env --modify "PYTHONPATH=path_list_prepend:${GRADSMITH_CODEGEN_DIR}"
      "PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache" -- "${Python3_EXECUTABLE}" -m gradsmith_codegen generate
      --schema "${ARG_SCHEMA}" --out "${ARG_FOLDER}" --shards "${ARG_SHARDS}" --included "${included_list}"
      --stamp "${stamp}" ${options})
  _gradsmith_list_headers_for_ninja("${ARG_SCHEMA}" "${ARG_FOLDER}" "${generate}" "${generator_files}" headers)

  # There is no depfile: all that the generator reads is among DEPENDS, and of the paths of a depfile Ninja and CMake
  # 3.25 read some otherwise than they are (with ' or & or $ in them), and CMake keeps with Make those that are gone.
  cmake_path(GET ARG_SCHEMA FILENAME schema_name)
  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS ${library_sources} ${formula_headers} ${family_headers} ${kernel_sources} ${test_sources} ${headers}
               "${manifest}" "${included_list}"
    COMMAND ${generate}
    DEPENDS "${ARG_SCHEMA}" ${included} ${ARG_DEPENDS} ${generator_files}
    COMMENT "Generating the operators of ${schema_name}"
    VERBATIM)
  add_custom_target(${ARG_TARGET} DEPENDS "${stamp}")

  foreach(kind IN ITEMS library kernel test)
    string(TOUPPER ${kind} argument)
    if(ARG_${argument}_SOURCES)
      set(${ARG_${argument}_SOURCES} "${${kind}_sources}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Stops where gradsmith_generate cannot do what it is asked.
function(_gradsmith_check_what_is_generated schema shards)
  if(NOT shards MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "GRADSMITH_SHARDS is '${shards}'; it must be a whole number, 1 or more.")
  endif()
  if(NOT EXISTS "${schema}")
    message(FATAL_ERROR "GRADSMITH_OPS_YAML is '${schema}'; there is no such file.")
  endif()
endfunction()

# Sets library_sources, formula_headers, kernel_sources and test_sources to the files that come with each shard, and that
# of the dispatch table. There are no tests where they are among what is not written.
function(_gradsmith_list_generated_sources folder shards without)
  set(library_sources "${folder}/src/dispatch_table.cc")
  set(formula_headers "")
  set(kernel_sources "")
  set(test_sources "")
  math(EXPR last_shard "${shards} - 1")
  foreach(shard RANGE ${last_shard})
    list(APPEND library_sources "${folder}/src/ops_shard_${shard}.cc")
    list(APPEND formula_headers "${folder}/src/formulas_${shard}.h")
    list(APPEND kernel_sources "${folder}/src/formulas_${shard}.cu")
    if(NOT tests IN_LIST without)
      list(APPEND test_sources "${folder}/tests/generated_tests_${shard}.cc")
    endif()
  endforeach()
  foreach(files IN ITEMS library_sources formula_headers kernel_sources test_sources)
    set(${files} "${${files}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Sets the variable to headers with the operands and the shape rules of each family whose kernels belong to the library.
function(_gradsmith_list_family_headers folder library kernel_headers result)
  set(families "")
  if(NOT library OR library STREQUAL "gradsmith")
    set(families ${GRADSMITH_KERNEL_HEADERS})
  endif()
  list(APPEND families ${kernel_headers})
  set(headers "")
  foreach(header IN LISTS families)
    cmake_path(GET header PARENT_PATH family)
    cmake_path(GET family FILENAME name)
    list(APPEND headers "${folder}/src/${name}/operands.h" "${folder}/src/${name}/shape_rules.h")
  endforeach()
  set(${result} "${headers}" PARENT_SCOPE)
endfunction()

# Sets the variable to what the generator is made of, and what it reads of all kernels.
function(_gradsmith_list_generator_files kernel_headers result)
  gradsmith_glob(modules "${GRADSMITH_CODEGEN_DIR}/gradsmith_codegen" **/*.py)
  gradsmith_glob(templates "${GRADSMITH_TEMPLATES_DIR}" **/*.jinja)
  set(${result} ${modules} ${templates} ${GRADSMITH_KERNEL_HEADERS} "${GRADSMITH_SHARED_RULES}" ${kernel_headers}
      PARENT_SCOPE)
endfunction()

# Sets the variable to the generator's options for those arguments of gradsmith_generate, its caller, that may be left out.
function(_gradsmith_generator_options result)
  set(options ${ARG_SELECTION})
  foreach(kind IN LISTS ARG_WITHOUT)
    list(APPEND options --without "${kind}")
  endforeach()
  if(ARG_LIBRARY)
    list(APPEND options --library "${ARG_LIBRARY}")
  endif()
  if(ARG_KERNELS)
    list(APPEND options --kernels "${ARG_KERNELS}")
  endif()
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

# Sets the variable to the files that the schema includes, which the list has, a path a line, as the generator left it.
# Where the list changes, CMake runs again. A file that is gone would stop the build before the generator could say so:
# the generator runs again in its place.
function(_gradsmith_read_included_files list stamp result)
  if(NOT EXISTS "${list}")
    file(WRITE "${list}" "")
  endif()
  file(STRINGS "${list}" included)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}" ${included})
  foreach(file IN LISTS included)
    if(NOT EXISTS "${file}")
      list(REMOVE_ITEM included "${file}")
      file(REMOVE "${stamp}")
    endif()
  endforeach()
  set(${result} "${included}" PARENT_SCOPE)
endfunction()

# Sets the variable to the headers that the generator writes: with Ninja, which must know them, or it looks at their age
# before they are written anew. Their names depend on the schema and stand in the manifest, so the build files depend on
# that: Ninja brings it up to date before all else, and runs CMake again where it changed. They depend on the generator's
# own files too, or Ninja would not put up with the removal of one.
function(_gradsmith_list_headers_for_ninja schema folder generate generator_files result)
  set(headers "")
  if(CMAKE_GENERATOR MATCHES "Ninja")
    if(NOT EXISTS "${folder}/manifest.txt")
      execute_process(COMMAND ${generate} RESULT_VARIABLE failed OUTPUT_QUIET)
      if(failed)
        message(FATAL_ERROR "gradsmith could not generate the operators of '${schema}'.")
      endif()
    endif()
    _gradsmith_read_manifest("${folder}" "^include/.*[.]h$" headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/manifest.txt" ${generator_files})
  endif()
  set(${result} "${headers}" PARENT_SCOPE)
endfunction()

# gradsmith_use_snapshot(FOLDER <folder> LIBRARY_SOURCES <variable> KERNEL_SOURCES <variable> TEST_SOURCES <variable>)
#
# Takes the generated files as they are in the folder and runs no generator. The variables are as for
# gradsmith_generate.
function(gradsmith_use_snapshot)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "FOLDER;LIBRARY_SOURCES;KERNEL_SOURCES;TEST_SOURCES" "")
  cmake_path(GET ARG_FOLDER PARENT_PATH source_dir)
  if(NOT GRADSMITH_OPS_YAML STREQUAL "${source_dir}/ops.yaml")
    message(FATAL_ERROR "GRADSMITH_USE_SNAPSHOT builds the operators in '${ARG_FOLDER}', but GRADSMITH_OPS_YAML asks for "
                        "those of '${GRADSMITH_OPS_YAML}'. Give one of the two.")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${ARG_FOLDER}/manifest.txt")
  _gradsmith_read_manifest("${ARG_FOLDER}" "^src/.*[.]cc$" library_sources)
  _gradsmith_read_manifest("${ARG_FOLDER}" "^src/.*[.]cu$" kernel_sources)
  _gradsmith_read_manifest("${ARG_FOLDER}" "^tests/.*[.]cc$" test_sources)
  if(NOT library_sources)
    message(FATAL_ERROR "GRADSMITH_USE_SNAPSHOT is on, but '${ARG_FOLDER}' holds no generated sources.")
  endif()
  set(${ARG_LIBRARY_SOURCES} "${library_sources}" PARENT_SCOPE)
  set(${ARG_KERNEL_SOURCES} "${kernel_sources}" PARENT_SCOPE)
  set(${ARG_TEST_SOURCES} "${test_sources}" PARENT_SCOPE)
endfunction()

# gradsmith_install_kernel_headers(<generator's folder> <option of install>...)
#
# Installs what an installed generator reads of the kernels.
function(gradsmith_install_kernel_headers folder)
  foreach(header IN LISTS GRADSMITH_KERNEL_HEADERS GRADSMITH_SHARED_RULES)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${GRADSMITH_RUNTIME_DIR}" OUTPUT_VARIABLE place)
    cmake_path(GET place PARENT_PATH family)
    install(FILES "${header}" DESTINATION "${folder}/runtime/${family}" ${ARGN})
  endforeach()
endfunction()

# The paths of the manifest that match; none where there is no manifest yet.
function(_gradsmith_read_manifest folder regex result)
  set(paths "")
  if(EXISTS "${folder}/manifest.txt")
    file(STRINGS "${folder}/manifest.txt" paths REGEX "${regex}")
    list(TRANSFORM paths PREPEND "${folder}/")
  endif()
  set(${result} "${paths}" PARENT_SCOPE)
endfunction()

# Sets Python3_EXECUTABLE to an interpreter that can run the generator.
function(_gradsmith_find_python)
  set(alternative "or configure with -DGRADSMITH_USE_SNAPSHOT=ON, which builds the committed sources and needs no Python.")
  if(COMMAND gradsmith_add_ops)
    set(alternative "or leave gradsmith_add_ops out.")
  endif()
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
  if(NOT Python3_Interpreter_FOUND)
    message(FATAL_ERROR "gradsmith generates its operators with Python 3.11 or later, which was not found. Install it "
                        "(Debian, Ubuntu: python3), name it with -DPython3_EXECUTABLE=<path>, ${alternative}")
  endif()
  set(modules yaml jinja2)
  set(packages PyYAML Jinja2)
  foreach(module package IN ZIP_LISTS modules packages)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c "import ${module}"
      RESULT_VARIABLE failed
      OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      message(FATAL_ERROR "gradsmith generates its operators with the Python package ${package}, which "
                          "'${Python3_EXECUTABLE}' does not have. Install it (Debian, Ubuntu: python3-${module}; elsewhere, "
                          "or in a virtual environment, which CMake finds in a new build folder: python3 -m pip install "
                          "${package}), name another interpreter with -DPython3_EXECUTABLE=<path>, "
                          "${alternative}")
    endif()
  endforeach()
  set(Python3_EXECUTABLE "${Python3_EXECUTABLE}" PARENT_SCOPE)
endfunction()
