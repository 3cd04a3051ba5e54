# SPDX-License-Identifier: BSL-1.0
# Runs an example built both ways, each in an empty folder of its own, and compares their output and files. The argument names a
# picture for examples that write one; the others ignore it.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")
foreach(way IN ITEMS header_only compiled)
  set(command "${COMPILED}")
  if(way STREQUAL "header_only")
    set(command "${HEADER_ONLY}" "${NAME}")
  endif()
  file(MAKE_DIRECTORY "${WORK_DIR}/${way}")
  execute_process(
    COMMAND ${command} picture.svg
    WORKING_DIRECTORY "${WORK_DIR}/${way}"
    OUTPUT_FILE standard_output
    ERROR_FILE standard_error
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${way}: exit status ${status}, see ${WORK_DIR}/${way}")
  endif()
  file(SIZE "${WORK_DIR}/${way}/standard_output" size)
  if(size EQUAL 0)
    message(FATAL_ERROR "${way}: printed nothing")
  endif()
  file(GLOB_RECURSE files_${way} RELATIVE "${WORK_DIR}/${way}" "${WORK_DIR}/${way}/*")
endforeach()

if(NOT files_header_only STREQUAL files_compiled)
  message(FATAL_ERROR "files written header-only: ${files_header_only}, compiled: ${files_compiled}")
endif()
foreach(file IN LISTS files_compiled)
  file(SHA256 "${WORK_DIR}/header_only/${file}" one)
  file(SHA256 "${WORK_DIR}/compiled/${file}" other)
  if(NOT one STREQUAL other)
    message(FATAL_ERROR "${file} differs between ${WORK_DIR}/header_only and ${WORK_DIR}/compiled")
  endif()
endforeach()
