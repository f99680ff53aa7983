include_guard(GLOBAL)

# Where the runtime's own headers are, the repository's or those that are installed.
if(NOT GRADSMITH_RUNTIME_DIR)
  cmake_path(SET GRADSMITH_RUNTIME_DIR NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../runtime")
endif()

# gradsmith_compile_kernels(<variable> [FOLDER <folder>] [PREFIX <text>] [INCLUDES <folder>...] [SOURCES <source>...]
#                           [FORMULAS <source>...])
#
# Compiles each CUDA source into an image that holds the code of every architecture, and sets the variable to a C++
# source that holds the images as constants; FOLDER, by default `<build folder>/kernels`, is where cuda/kernel_images.h,
# which declares these, is included from. Their names begin with PREFIX, which tells those of two libraries apart. The
# driver loads them, so there is no CUDA runtime to link and nothing that registers itself at start-up. Sources include
# from the runtime and from the folders that are named. FORMULAS are those that the generator wrote.
function(gradsmith_compile_kernels result)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "FOLDER;PREFIX" "INCLUDES;SOURCES;FORMULAS")
  # Products of warpgroups are of 9.0a alone, and there is no other 9.x.
  _gradsmith_nvcc_architectures(architectures_of_sources OF_90 90a)
  # Formulas have nothing that is not in 8.0. Their code for 8.x and 9.0 is made of one PTX, which takes the most time to
  # make and which later devices are given; on 9.0 it is as quick as code of PTX for 9.0.
  _gradsmith_nvcc_architectures(architectures_of_formulas PTX_OF_8_AND_9 80)
  list(TRANSFORM ARG_INCLUDES PREPEND "-I" OUTPUT_VARIABLE includes)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/kernels")
  if(ARG_FOLDER)
    set(folder "${ARG_FOLDER}")
  endif()
  set(flags --fatbin -std=c++17 -O3 --Werror all-warnings "-ccbin=${CMAKE_CXX_COMPILER}"
            "-I${GRADSMITH_RUNTIME_DIR}" ${includes})
  execute_process(COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" --help OUTPUT_VARIABLE help)
  if(GRADSMITH_CUDA_FAST_COMPILE)
    if(help MATCHES "--Ofast-compile")
      list(APPEND flags --Ofast-compile=max)
      # The code that it leaves of formulas is so long that ptxas takes three times as long as what comes before it.
      _gradsmith_nvcc_architectures(architectures_of_formulas PTX_ALONE PTX_OF_8_AND_9 80)
    endif()
  elseif(help MATCHES "--compress-mode")
    list(APPEND flags --compress-mode=size) # to a seventh; drivers for CUDA 12.4 and later decompress it as they load it
  endif()
  set(images "")
  set(GRADSMITH_KERNEL_IMAGES "")
  foreach(source IN LISTS ARG_SOURCES ARG_FORMULAS)
    set(architectures ${architectures_of_sources})
    if(source IN_LIST ARG_FORMULAS)
      set(architectures ${architectures_of_formulas})
    endif()
    cmake_path(GET source STEM name)
    set(image "${folder}/${name}.fatbin")
    if(image IN_LIST images)
      message(FATAL_ERROR "gradsmith: two files of CUDA kernels are called ${name}.cu; one of them is ${source}")
    endif()
    add_custom_command(
      OUTPUT "${image}"
      COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" ${flags} ${architectures} -MD -MF "${image}.d" -MT "${image}"
              -o "${image}" "${source}"
      DEPENDS "${source}"
      DEPFILE "${image}.d"
      COMMENT "Compiling the CUDA kernels of ${name}.cu"
      VERBATIM)
    list(APPEND images "${image}")
    string(APPEND GRADSMITH_KERNEL_IMAGES "  X(${ARG_PREFIX}${name}, \"${image}\") \\\n")
  endforeach()
  file(MAKE_DIRECTORY "${folder}")
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_images.cc.in" "${folder}/kernel_images.cc" @ONLY)
  _gradsmith_declare_images("${folder}" "${ARG_PREFIX}" ${ARG_SOURCES} ${ARG_FORMULAS})
  set_source_files_properties("${folder}/kernel_images.cc" PROPERTIES OBJECT_DEPENDS "${images}")
  set(${result} "${folder}/kernel_images.cc" PARENT_SCOPE)
endfunction()

# gradsmith_declare_kernels(<variable> [FOLDER <folder>] [PREFIX <text>] SOURCES <source>...)
#
# The same where there is no nvcc: images without code, so that sources need not ask whether there are any.
function(gradsmith_declare_kernels result)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "FOLDER;PREFIX" "SOURCES")
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER "${CMAKE_CURRENT_BINARY_DIR}/kernels")
  endif()
  set(definitions "")
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(GET source STEM name)
    string(APPEND definitions
           "constinit const gradsmith::cuda::KernelImage gradsmith::cuda::kImage_${ARG_PREFIX}${name} = "
           "{\"${ARG_PREFIX}${name}\", nullptr};\n")
  endforeach()
  _gradsmith_declare_images("${ARG_FOLDER}" "${ARG_PREFIX}" ${ARG_SOURCES})
  file(CONFIGURE OUTPUT "${ARG_FOLDER}/kernel_images.cc" @ONLY
       CONTENT "#include \"cuda/kernel_images.h\"\n\n${definitions}")
  set(${result} "${ARG_FOLDER}/kernel_images.cc" PARENT_SCOPE)
endfunction()

# Writes cuda/kernel_images.h below the folder.
function(_gradsmith_declare_images folder prefix)
  set(GRADSMITH_KERNEL_IMAGE_DECLARATIONS "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    string(APPEND GRADSMITH_KERNEL_IMAGE_DECLARATIONS "extern const KernelImage kImage_${prefix}${name};\n")
  endforeach()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_images.h.in" "${folder}/cuda/kernel_images.h" @ONLY)
endfunction()

# nvcc's options for GRADSMITH_CUDA_ARCHITECTURES. Given may be OF_90, the architecture of machine code for 9.0, or
# PTX_OF_8_AND_9, that of the PTX of which code for 8.x and 9.0 is made and that devices after them are given. With
# PTX_ALONE no machine code is made: the driver makes it as it loads a kernel.
function(_gradsmith_nvcc_architectures result)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "PTX_ALONE" "OF_90;PTX_OF_8_AND_9" "")
  set(options "")
  foreach(architecture IN LISTS GRADSMITH_CUDA_ARCHITECTURES)
    if(NOT architecture MATCHES "^([0-9]+)([af]?)(-real|-virtual)?$")
      message(FATAL_ERROR "GRADSMITH_CUDA_ARCHITECTURES has '${architecture}'; expected compute capabilities such as 90, "
                          "90-real or 90-virtual. CMake's native, all and all-major are not taken.")
    endif()
    set(number "${CMAKE_MATCH_1}")
    set(ptx "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
    set(kind "${CMAKE_MATCH_3}")
    set(real "${ptx}")
    if(real STREQUAL "90" AND ARG_OF_90)
      set(real "${ARG_OF_90}")
    endif()
    set(ptx_of_real "${real}")
    if(ARG_PTX_OF_8_AND_9 AND number GREATER_EQUAL 80 AND number LESS_EQUAL 90)
      set(real "${number}")
      set(ptx "${ARG_PTX_OF_8_AND_9}")
      set(ptx_of_real "${ptx}")
    endif()
    if(number LESS 75)
      message(FATAL_ERROR "GRADSMITH_CUDA_ARCHITECTURES has '${architecture}'; expected 75 or more, the oldest compute "
                          "capability (7.5) that the kernels run on.")
    endif()
    if(ARG_PTX_ALONE)
      set(kind "-virtual")
      set(ptx "${ptx_of_real}")
    endif()
    if(NOT kind STREQUAL "-virtual")
      list(APPEND options "-gencode=arch=compute_${ptx_of_real},code=sm_${real}")
    endif()
    if(NOT kind STREQUAL "-real")
      list(APPEND options "-gencode=arch=compute_${ptx},code=compute_${ptx}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES options)
  set(${result} "${options}" PARENT_SCOPE)
endfunction()
