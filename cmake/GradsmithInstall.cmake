# What `cmake --install` installs. The prefix may be moved afterwards: no installed file holds a path of the build's, but
# with CUDA where cuDNN was found, which programs try last.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
if(SKBUILD)
  # In a wheel the prefix is a folder of the Python package, which gradsmith.get_cmake_dir() knows.
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME python)
  set(CMAKE_INSTALL_LIBDIR "gradsmith/_prefix/lib")
  set(CMAKE_INSTALL_FULL_LIBDIR "${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}")
  set(CMAKE_INSTALL_INCLUDEDIR "gradsmith/_prefix/include")
  set(CMAKE_INSTALL_DATADIR "gradsmith/_prefix/share")
endif()

set(gradsmith_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gradsmith")
set(gradsmith_data_dir "${CMAKE_INSTALL_DATADIR}/gradsmith")

install(TARGETS gradsmith EXPORT gradsmith-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/runtime/include/" "${GRADSMITH_GENERATED_DIR}/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

foreach(tool gradsmith-tune gradsmith-support)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endforeach()

install(EXPORT gradsmith-targets NAMESPACE gradsmith:: DESTINATION "${gradsmith_package_dir}")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/gradsmith-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/gradsmith-config.cmake"
  INSTALL_DESTINATION "${gradsmith_package_dir}"
  PATH_VARS gradsmith_data_dir CMAKE_INSTALL_INCLUDEDIR
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/gradsmith-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
if(GRADSMITH_HAS_ONEDNN)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/GradsmithFindOnednn.cmake" DESTINATION "${gradsmith_package_dir}")
endif()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gradsmith-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/gradsmith-config-version.cmake" DESTINATION "${gradsmith_package_dir}")

# pkg-config finds the prefix from where the file lies; a folder that is given as an absolute path is not below it.
set(gradsmith_pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(gradsmith_pkgconfig_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
             OUTPUT_VARIABLE gradsmith_prefix_from_pkgconfig)
  set(gradsmith_pkgconfig_prefix "\${pcfiledir}/${gradsmith_prefix_from_pkgconfig}")
endif()
foreach(kind LIBDIR INCLUDEDIR)
  cmake_path(APPEND gradsmith_pkgconfig_${kind} "\${prefix}" "${CMAKE_INSTALL_${kind}}") # an absolute path alone
endforeach()
set(gradsmith_pkgconfig_libs "")
if(GRADSMITH_HAS_ONEDNN)
  set(gradsmith_pkgconfig_libs " -ldnnl")
  if(GRADSMITH_ONEDNN_RUNTIME STREQUAL "OMP")
    string(APPEND gradsmith_pkgconfig_libs " ${OpenMP_CXX_FLAGS}")
  endif()
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/gradsmith.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/gradsmith.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gradsmith.pc" DESTINATION "${gradsmith_pkgconfig_dir}")

# The generator, its templates, the kernels that it knows and the operators that this library was built from.
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/codegen/gradsmith_codegen" DESTINATION "${gradsmith_data_dir}/codegen"
        FILES_MATCHING PATTERN "*.py" PATTERN "*cache*" EXCLUDE PATTERN "templates" EXCLUDE PATTERN "runtime" EXCLUDE)
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/templates/"
        DESTINATION "${gradsmith_data_dir}/codegen/gradsmith_codegen/templates" FILES_MATCHING PATTERN "*.jinja")

# What gradsmith_add_ops needs besides: the headers that generated sources and kernels include, which are no part of the
# interface, and what generated tests are linked with. The generator reads there what each kernel takes.
foreach(module AddOps AddPython Folders Generate Kernels Python Select)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/Gradsmith${module}.cmake" DESTINATION "${gradsmith_package_dir}")
endforeach()
install(FILES "${CMAKE_CURRENT_LIST_DIR}/kernel_images.cc.in" "${CMAKE_CURRENT_LIST_DIR}/kernel_images.h.in"
        DESTINATION "${gradsmith_package_dir}")
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/runtime/" DESTINATION "${gradsmith_data_dir}/runtime"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "include" EXCLUDE)
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/tests/support" "${CMAKE_CURRENT_SOURCE_DIR}/tests/reference"
        DESTINATION "${gradsmith_data_dir}/tests" FILES_MATCHING PATTERN "*.h" PATTERN "*.cc" PATTERN "*_test.cc" EXCLUDE
        PATTERN "fake_op.*" EXCLUDE PATTERN "allocations.*" EXCLUDE)
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/python/src" DESTINATION "${gradsmith_data_dir}/python"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cc")
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/tools/problem_line.cc" "${CMAKE_CURRENT_SOURCE_DIR}/tools/problem_line.h"
        DESTINATION "${gradsmith_data_dir}/python/src")
# Of the modules those that have to do with operators, and none that has to do with the package gradsmith itself.
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/python/gradsmith/" DESTINATION "${gradsmith_data_dir}/python/package"
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE
        PATTERN "__*__.py" EXCLUDE PATTERN "_bench.py" EXCLUDE PATTERN "_cli.py" EXCLUDE PATTERN "_prefix_of_wheel.py" EXCLUDE)
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/python/own/__init__.py.in" DESTINATION "${gradsmith_data_dir}/python/package")
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/tests/generated_tests_main.cc" DESTINATION "${gradsmith_data_dir}/tests")
install(FILES "${GRADSMITH_OPS_YAML}" DESTINATION "${gradsmith_data_dir}" RENAME ops.yaml)
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/ops.schema.json" DESTINATION "${gradsmith_data_dir}") # to which ops.yaml points
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/LICENSE" DESTINATION "${gradsmith_data_dir}")
