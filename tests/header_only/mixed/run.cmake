# SPDX-License-Identifier: BSL-1.0
# Links asks.cpp and answers.cpp in the four ways of building them: alike they make a program, mixed the linker names the
# function that has two names.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

set(includes "-I${OWN_INCLUDE_DIR}")
foreach(dir IN LISTS INCLUDE_DIRS)
  if(NOT dir STREQUAL OWN_INCLUDE_DIR AND NOT dir IN_LIST IMPLICIT_DIRS)
    list(APPEND includes -isystem "${dir}")
  endif()
endforeach()

set(flags_header_only "")
set(flags_compiled -DHETPLAN_COMPILED)
foreach(way IN ITEMS header_only compiled)
  foreach(source IN ITEMS asks answers)
    execute_process(
      COMMAND "${COMPILER}" -std=c++20 -O0 ${flags_${way}} ${includes} -c "${SOURCE_DIR}/${source}.cpp" -o
              "${WORK_DIR}/${source}.${way}.o"
      RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${source}.cpp does not compile ${way}")
    endif()
  endforeach()
endforeach()

foreach(asking IN ITEMS header_only compiled)
  foreach(answering IN ITEMS header_only compiled)
    execute_process(
      COMMAND "${COMPILER}" "${WORK_DIR}/asks.${asking}.o" "${WORK_DIR}/answers.${answering}.o" -o "${WORK_DIR}/program"
      RESULT_VARIABLE status
      OUTPUT_VARIABLE output
      ERROR_VARIABLE output)
    if(asking STREQUAL answering)
      if(NOT status EQUAL 0)
        message("${output}")
        message(FATAL_ERROR "both ${asking}: must link")
      endif()
      execute_process(COMMAND "${WORK_DIR}/program" RESULT_VARIABLE status)
      if(NOT status EQUAL 0)
        message(FATAL_ERROR "both ${asking}: an empty plan has ${status} stages")
      endif()
      continue()
    endif()

    if(status EQUAL 0)
      message(FATAL_ERROR "asks.cpp ${asking} and answers.cpp ${answering}: must not link")
    endif()
    set(asked "stages_of(hetplan::plan const&)")
    if(asking STREQUAL "compiled")
      set(asked "stages_of(hetplan::compiled::plan const&)")
    endif()
    string(FIND "${output}" "${asked}" found)
    if(found LESS 0)
      message("${output}")
      message(FATAL_ERROR "asks.cpp ${asking} and answers.cpp ${answering}: the linker does not name ${asked}")
    endif()
  endforeach()
endforeach()
