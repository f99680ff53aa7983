# Targets whose sources nobody has grouped have none that are compiled together.
set(GRADSMITH_UNITY_BUILD "${CMAKE_UNITY_BUILD}")
set(CMAKE_UNITY_BUILD OFF)

# gradsmith_group_sources(<target> <folder> <subfolder>...)
#
# Makes the target one of CMAKE_UNITY_BUILD, where that is on: the sources of each subfolder are compiled together, which
# takes less time as a whole. Those with SKIP_UNITY_BUILD_INCLUSION or definitions of their own stay alone.
function(gradsmith_group_sources target folder)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${GRADSMITH_UNITY_BUILD}" UNITY_BUILD_MODE GROUP)
  foreach(subfolder IN LISTS ARGN)
    gradsmith_glob(sources "${folder}" ${subfolder}/*.cc)
    set_source_files_properties(${sources} PROPERTIES UNITY_GROUP "${subfolder}")
  endforeach()
endfunction()
