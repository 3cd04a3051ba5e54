# SPDX-License-Identifier: BSL-1.0
# Links asks.cpp and answers.cpp in all four combinations of builds, then against a library of another version, which the linker must
# reject by name.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

set(flags_header_only "")
set(flags_compiled -DHETPLAN_SEPARATE)
foreach(way IN ITEMS header_only compiled)
  foreach(source IN ITEMS asks answers)
    execute_process(
      COMMAND "${COMPILER}" -std=c++20 -O0 ${flags_${way}} ${INCLUDES} -c "${SOURCE_DIR}/${source}.cpp" -o
              "${WORK_DIR}/${source}.${way}.o"
      RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${source}.cpp does not compile ${way}")
    endif()
  endforeach()
endforeach()

# Stand-ins for the library: its symbol in this and in another version.
foreach(library IN ITEMS linkage other)
  set(version "")
  if(library STREQUAL "other")
    set(version "#include <hetplan/core/version.hpp>\n#undef HETPLAN_VERSION_MINOR\n#define HETPLAN_VERSION_MINOR 999\n")
  endif()
  file(WRITE "${WORK_DIR}/${library}.cpp" "${version}#include <hetplan/core/version.ipp>\n")
  execute_process(
    COMMAND "${COMPILER}" -std=c++20 -O0 -DHETPLAN_SEPARATE ${INCLUDES} -c "${WORK_DIR}/${library}.cpp" -o "${WORK_DIR}/${library}.o"
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${library}.cpp does not compile")
  endif()
endforeach()

foreach(asking IN ITEMS header_only compiled)
  foreach(answering IN ITEMS header_only compiled)
    set(library "")
    if(asking STREQUAL "compiled" OR answering STREQUAL "compiled")
      set(library "${WORK_DIR}/linkage.o")
    endif()
    execute_process(
      COMMAND "${COMPILER}" "${WORK_DIR}/asks.${asking}.o" "${WORK_DIR}/answers.${answering}.o" ${library} -o "${WORK_DIR}/program"
      RESULT_VARIABLE status
      OUTPUT_VARIABLE output
      ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
      message("${output}")
      message(FATAL_ERROR "asks.cpp ${asking} and answers.cpp ${answering}: must link")
    endif()
    execute_process(COMMAND "${WORK_DIR}/program" RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "asks.cpp ${asking} and answers.cpp ${answering}: an empty plan has ${status} stages")
    endif()
  endforeach()
endforeach()

# A library of another version.
execute_process(
  COMMAND "${COMPILER}" "${WORK_DIR}/asks.compiled.o" "${WORK_DIR}/answers.compiled.o" "${WORK_DIR}/other.o" -o "${WORK_DIR}/program"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "headers of this version and a library of another: must not link")
endif()
string(REGEX MATCH "hetplan::detail::library_[0-9]+_[0-9]+_[0-9]+" found "${output}")
if(NOT found)
  message("${output}")
  message(FATAL_ERROR "the linker does not say which version is missing")
endif()
