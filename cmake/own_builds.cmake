# SPDX-License-Identifier: BSL-1.0
# What only this project's own library and programs are built with; nothing here reaches a user of the headers.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endif()

# Presets that build everything at once (CMAKE_UNITY_BUILD) compile a program's sources as one: they instantiate the same
# planners, and two thirds of what a test costs is to generate and optimize those. g++, seconds of CPU: tests/adapt 185
# apart, 54 together; the command line program 193 and 67. Up to 2.5 GB each.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
if(need STREQUAL "QUIET" AND NOT DEFINED CMAKE_UNITY_BUILD) # who only installs
  set(CMAKE_UNITY_BUILD ON)
endif()

find_program(HETPLAN_CCACHE ccache)
mark_as_advanced(HETPLAN_CCACHE)
if(HETPLAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HETPLAN_CCACHE}")
endif()

if(HETPLAN_TIDY)
  find_program(HETPLAN_CLANG_TIDY NAMES clang-tidy-16 clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY "${HETPLAN_CLANG_TIDY}")
endif()

add_library(hetplan_own_flags INTERFACE)
# Without contraction g++ and clang++ round alike, so the same input gives the same plan with both.
target_compile_options(hetplan_own_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collects garbage only beyond 512 MB: a fifteenth of what our sources cost to compile, for a tenth more memory.
  target_compile_options(hetplan_own_flags INTERFACE --param=ggc-min-heapsize=512000)
  # g++ 12 reports std::string's own "text" + string as overlapping (GCC bug 105329).
  target_compile_options(hetplan_own_flags INTERFACE -Wno-restrict)
  # These depend on what the optimizer inlined and fire inside the standard library: still shown, never an error.
  foreach(warning IN ITEMS array-bounds dangling-pointer maybe-uninitialized stringop-overflow stringop-overread)
    target_compile_options(hetplan_own_flags INTERFACE -Wno-error=${warning})
  endforeach()
endif()
