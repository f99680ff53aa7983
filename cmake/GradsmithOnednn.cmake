include_guard(GLOBAL)

set(GRADSMITH_ONEDNN OFF CACHE STRING
    "Offer oneDNN's convolutions on the CPU: AUTO (where oneDNN is found), ON or OFF")
set_property(CACHE GRADSMITH_ONEDNN PROPERTY STRINGS AUTO ON OFF)

include("${CMAKE_CURRENT_LIST_DIR}/GradsmithFindOnednn.cmake")

# gradsmith_find_onednn(<variable>)
#
# Sets the variable to whether oneDNN's kernels are candidates, and where they are not GRADSMITH_ONEDNN_MISSING to why.
# Where they are, there are the target DNNL::dnnl, GRADSMITH_ONEDNN_VERSION and GRADSMITH_ONEDNN_RUNTIME: OMP or SEQ.
macro(gradsmith_find_onednn result)
  string(TOUPPER "${GRADSMITH_ONEDNN}" _gradsmith_onednn)
  set(GRADSMITH_ONEDNN_MISSING "")
  if(NOT _gradsmith_onednn MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "GRADSMITH_ONEDNN is '${GRADSMITH_ONEDNN}'; it must be AUTO, ON or OFF.")
  elseif(_gradsmith_onednn STREQUAL "OFF")
    set(GRADSMITH_ONEDNN_MISSING "GRADSMITH_ONEDNN is OFF")
  else()
    gradsmith_import_onednn(GRADSMITH_ONEDNN_MISSING)
  endif()
  if(GRADSMITH_ONEDNN_MISSING STREQUAL "")
    set(${result} ON)
  elseif(NOT _gradsmith_onednn STREQUAL "ON")
    set(${result} OFF)
  else()
    message(FATAL_ERROR "GRADSMITH_ONEDNN is ${GRADSMITH_ONEDNN}, but ${GRADSMITH_ONEDNN_MISSING}. Install oneDNN "
                        "(Debian, Ubuntu: libdnnl-dev), point CMAKE_PREFIX_PATH at it, or configure with "
                        "-DGRADSMITH_ONEDNN=OFF.")
  endif()
endmacro()

# gradsmith_link_onednn(<target>)
#
# OpenMP is linked alone: compiled with it, Eigen would start its threads.
function(gradsmith_link_onednn target)
  target_link_libraries(${target} PRIVATE DNNL::dnnl)
  if(GRADSMITH_ONEDNN_RUNTIME STREQUAL "OMP")
    target_link_libraries(${target} PRIVATE $<LINK_ONLY:OpenMP::OpenMP_CXX>)
  endif()
endfunction()
