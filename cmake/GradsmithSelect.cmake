# A library of some of Gradsmith's operators.
include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithGenerate.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/GradsmithKernels.cmake")

# gradsmith_select(<library> [OPS <op>[:<row>]...] [PROBLEMS <file>...] [TYPES <type>...] [BACKENDS <backend>...]
#                  [ARCHITECTURES <architecture>...])
#
# Adds a static library that programs link in place of gradsmith::gradsmith: it has the selected rows, what they need and
# the interface, and no other kernel. Nothing of the library is compiled anew but the selected rows' own code, and the
# CUDA kernels of those that have formulas.
#
# Arguments
#   OPS            operators, or single rows of these, such as ConvGrad:float; all by default
#   PROBLEMS       files of problems, in lines as gradsmith-tune reads them, whose rows are selected as well
#   TYPES          element types of those operators whose rows are not named
#   BACKENDS       cpu, cuda; those of the library by default
#   ARCHITECTURES  compute capabilities that CUDA kernels are kept for, of the library's, such as 90 or 90-real
function(gradsmith_select library)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "OPS;PROBLEMS;TYPES;BACKENDS;ARCHITECTURES")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gradsmith_select(${library}) does not take '${ARG_UNPARSED_ARGUMENTS}'; expected OPS, PROBLEMS, "
                        "TYPES, BACKENDS, ARCHITECTURES.")
  endif()
  _gradsmith_find_python()
  _gradsmith_find_package_of_selection()
  _gradsmith_selection_options(selection)
  _gradsmith_check_selection("${library}" "${selection}" has_cuda has_formulas)

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/gradsmith/${library}")
  # Make does not notice that a command has other options.
  file(CONFIGURE OUTPUT "${folder}/selection.txt" CONTENT "${selection};${ARG_ARCHITECTURES}\n")
  gradsmith_generate(
    TARGET ${library}_generate
    SCHEMA "${schema}"
    FOLDER "${folder}"
    SELECTION ${selection}
    DEPENDS ${ARG_PROBLEMS} "${folder}/selection.txt"
    SHARDS 1
    WITHOUT docs tests python
    LIBRARY_SOURCES sources
    KERNEL_SOURCES kernel_sources
    TEST_SOURCES test_sources)
  add_library(${library}_rows OBJECT EXCLUDE_FROM_ALL ${sources})
  add_dependencies(${library}_rows ${library}_generate)
  set_target_properties(${library}_rows PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${library}_rows PRIVATE cxx_std_20)
  target_compile_options(${library}_rows PRIVATE -ffunction-sections -fdata-sections)
  target_include_directories(${library}_rows PRIVATE "${folder}/include" "${GRADSMITH_RUNTIME_DIR}")
  if(has_cuda)
    target_compile_definitions(${library}_rows PRIVATE GRADSMITH_HAS_CUDA)
    _gradsmith_compile_selected_formulas()
  endif()

  _gradsmith_link_selection()
  # The headers of the selected operators, and the runtime's; not those of other operators, which lie beside these.
  gradsmith_glob(headers "${GRADSMITH_INCLUDE_DIR}" gradsmith/*.h)
  list(FILTER headers EXCLUDE REGEX "/ops[.]h$")
  file(MAKE_DIRECTORY "${folder}/include/gradsmith")
  foreach(header IN LISTS headers)
    cmake_path(GET header FILENAME name)
    file(CREATE_LINK "${header}" "${folder}/include/gradsmith/${name}" COPY_ON_ERROR SYMBOLIC)
  endforeach()
  add_library(${library} STATIC "${object}")
  add_dependencies(${library} ${library}_rows)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_include_directories(${library} INTERFACE "$<BUILD_INTERFACE:${folder}/include>")
  find_package(Threads REQUIRED)
  get_target_property(libraries gradsmith::gradsmith INTERFACE_LINK_LIBRARIES)
  list(FILTER libraries EXCLUDE REGEX "Eigen|<LINK_ONLY:>") # there are headers of Eigen alone
  target_link_libraries(${library} INTERFACE ${libraries})
endfunction()

# Sets what is known of the library: installed, or in the build that this is part of.
macro(_gradsmith_find_package_of_selection)
  if(GRADSMITH_PACKAGE_SCHEMA)
    set(schema "${GRADSMITH_PACKAGE_SCHEMA}")
  else()
    set(schema "${GRADSMITH_OPS_YAML}")
    _gradsmith_locate_generator("${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
    set(GRADSMITH_INCLUDE_DIR "${GRADSMITH_RUNTIME_DIR}/include")
    get_property(GRADSMITH_PACKAGE_HAS_CUDA GLOBAL PROPERTY GRADSMITH_HAS_CUDA)
    set(GRADSMITH_PACKAGE_CUDA_ARCHITECTURES "${GRADSMITH_CUDA_ARCHITECTURES}")
  endif()
endmacro()

# The generator's options for what is selected.
macro(_gradsmith_selection_options result)
  set(${result} "")
  foreach(word IN LISTS ARG_OPS)
    list(APPEND ${result} --only "${word}")
  endforeach()
  foreach(word IN LISTS ARG_TYPES)
    list(APPEND ${result} --type "${word}")
  endforeach()
  if(NOT ARG_BACKENDS)
    set(ARG_BACKENDS cpu)
    if(GRADSMITH_PACKAGE_HAS_CUDA)
      list(APPEND ARG_BACKENDS cuda)
    endif()
  elseif("cuda" IN_LIST ARG_BACKENDS AND NOT GRADSMITH_PACKAGE_HAS_CUDA)
    message(FATAL_ERROR "gradsmith_select(${library}) has the backend cuda, which gradsmith was built without.")
  endif()
  if(ARG_ARCHITECTURES AND NOT GRADSMITH_PACKAGE_HAS_CUDA)
    message(FATAL_ERROR "gradsmith_select(${library}) has ARCHITECTURES of the backend cuda, which gradsmith was built without.")
  endif()
  foreach(word IN LISTS ARG_BACKENDS)
    list(APPEND ${result} --backend "${word}")
  endforeach()
  list(TRANSFORM ARG_PROBLEMS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARG_PROBLEMS})
  foreach(file IN LISTS ARG_PROBLEMS)
    list(APPEND ${result} --problems "${file}")
  endforeach()
endmacro()

# Says now what is wrong with a selection, and tells what of the library it needs.
function(_gradsmith_check_selection library selection has_cuda has_formulas)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${GRADSMITH_CODEGEN_DIR}"
            "PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache" -- "${Python3_EXECUTABLE}" -m gradsmith_codegen list
            --schema "${schema}" --json ${selection}
    OUTPUT_VARIABLE rows
    ERROR_VARIABLE problem
    RESULT_VARIABLE failed)
  if(failed)
    string(STRIP "${problem}" problem)
    string(REPLACE "gradsmith-codegen: " "" problem "${problem}")
    message(FATAL_ERROR "gradsmith_select(${library}): ${problem}")
  endif()
  string(FIND "${rows}" "\"backend\": \"cuda\"" cuda)
  string(FIND "${rows}" "\"kernel\": \"formulas::" formulas)
  foreach(kind IN ITEMS cuda formulas)
    set(found OFF)
    if(NOT ${kind} EQUAL -1)
      set(found ON)
    endif()
    set(${has_${kind}} ${found} PARENT_SCOPE)
  endforeach()
endfunction()

# CUDA kernels of formulas lie together in the library's images; those of the selected ones are compiled anew.
macro(_gradsmith_compile_selected_formulas)
  find_package(CUDAToolkit 12.4 QUIET)
  if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
    message(FATAL_ERROR "gradsmith_select(${library}) has rows on the backend cuda, and no CUDA Toolkit 12.4 or later with "
                        "nvcc was found. Name it with -DCUDAToolkit_ROOT=<path>, or select BACKENDS cpu.")
  endif()
  target_include_directories(${library}_rows SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  if(has_formulas)
    set(GRADSMITH_CUDA_ARCHITECTURES "${GRADSMITH_PACKAGE_CUDA_ARCHITECTURES}")
    if(ARG_ARCHITECTURES)
      set(GRADSMITH_CUDA_ARCHITECTURES "${ARG_ARCHITECTURES}")
    endif()
    gradsmith_compile_kernels(images FOLDER "${folder}/kernels" PREFIX selected_ FORMULAS ${kernel_sources})
    target_sources(${library}_rows PRIVATE "${images}")
    target_include_directories(${library}_rows PRIVATE "${folder}/kernels")
  endif()
endmacro()

# Sets `object` to what is linked of the selected rows and of the library.
macro(_gradsmith_link_selection)
  find_program(GRADSMITH_BFD_LINKER NAMES ld.bfd ld DOC "GNU ld, which can leave sections out of what it links in part")
  if(NOT GRADSMITH_BFD_LINKER)
    message(FATAL_ERROR "gradsmith_select(${library}) links with GNU ld, which was not found (Debian, Ubuntu: binutils).")
  endif()
  set(options --name "${library}" --ld "${GRADSMITH_BFD_LINKER}" --nm "${CMAKE_NM}" --objcopy "${CMAKE_OBJCOPY}" --objdump
              "${CMAKE_OBJDUMP}")
  foreach(architecture IN LISTS ARG_ARCHITECTURES)
    list(APPEND options --architecture "${architecture}")
  endforeach()
  set(object "${folder}/${library}.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND
      "${CMAKE_COMMAND}" -E env "PYTHONPATH=${GRADSMITH_CODEGEN_DIR}" "PYTHONPYCACHEPREFIX=${CMAKE_CURRENT_BINARY_DIR}/pycache"
      -- "${Python3_EXECUTABLE}" -m gradsmith_codegen.select_archive ${options} --archive
      "$<TARGET_FILE:gradsmith::gradsmith>" --output "${object}" "$<TARGET_OBJECTS:${library}_rows>"
    DEPENDS "$<TARGET_OBJECTS:${library}_rows>" "$<TARGET_FILE:gradsmith::gradsmith>" gradsmith::gradsmith
            "${folder}/selection.txt" "${GRADSMITH_CODEGEN_DIR}/gradsmith_codegen/select_archive.py" "${GRADSMITH_CODEGEN_DIR}/gradsmith_codegen/images.py"
    COMMAND_EXPAND_LISTS
    VERBATIM
    COMMENT "Linking what ${library} needs of gradsmith")
endmacro()
