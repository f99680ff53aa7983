include_guard(GLOBAL)

# gradsmith_check_folder(<folder>)
#
# Stops where the folder's path holds what CMake or a build tool cannot take: a bracket without its other half, within
# which a semicolon divides no list; a colon, which divides PYTHONPATH and the rules of Make; what Make and Ninja read as
# a variable.
function(gradsmith_check_folder folder)
  string(REGEX REPLACE "[^][]" "" brackets "${folder}")
  while(brackets MATCHES "\\[\\]")
    string(REPLACE "[]" "" brackets "${brackets}")
  endwhile()
  set(fault "")
  if(NOT brackets STREQUAL "")
    set(fault "a bracket without its other half")
  elseif(folder MATCHES ":")
    set(fault "a colon")
  elseif(folder MATCHES "[$][({]")
    set(fault "'${CMAKE_MATCH_0}'")
  endif()
  if(fault)
    message(FATAL_ERROR "The path of the folder '${folder}' holds ${fault}, and CMake and the tools that it writes files "
                        "for do not take that as it is. Build gradsmith in a folder of another name.")
  endif()
endfunction()

# gradsmith_glob(<variable> <folder> <pattern>...)
#
# Sets the variable to the folder's files whose paths, relative to it, fit a pattern; each build looks for new ones. What
# would be a pattern in the folder's own path, such as "[1]", stands for itself. `**/` before a pattern finds files in
# all folders below.
function(gradsmith_glob result folder)
  string(REGEX REPLACE "([[*?])" "[\\1]" escaped "${folder}")
  set(found "")
  foreach(pattern IN LISTS ARGN)
    if(pattern MATCHES "^[*][*]/(.*)$")
      file(GLOB_RECURSE files CONFIGURE_DEPENDS "${escaped}/${CMAKE_MATCH_1}")
    else()
      file(GLOB files CONFIGURE_DEPENDS "${escaped}/${pattern}")
    endif()
    list(APPEND found ${files})
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# gradsmith_list_families(<header> <family>...)
#
# Writes a header by which a program calls what each family of kernels has for it and names none itself: in it
# GRADSMITH_FAMILIES(USE) is USE(family) for each.
function(gradsmith_list_families header)
  list(TRANSFORM ARGN REPLACE "(.+)" " USE(\\1)")
  list(JOIN ARGN "" uses)
  file(CONFIGURE OUTPUT "${header}" CONTENT "// Written by CMake.\n#define GRADSMITH_FAMILIES(USE)@uses@\n" @ONLY)
endfunction()
