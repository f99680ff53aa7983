include_guard(GLOBAL)

# gradsmith_enable_warnings(<target>)
#
# Compiles the target with the warnings that the project is held to, as errors where GRADSMITH_WERROR is on.
function(gradsmith_enable_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in std::string's own operator+ (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(GRADSMITH_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
