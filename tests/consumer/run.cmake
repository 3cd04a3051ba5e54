# SPDX-License-Identifier: BSL-1.0
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message("${output}")
    message(FATAL_ERROR "failed: ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(configure ${CMAKE_COMMAND} -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
              "-DBARE=${BARE}" "-DCOMPILED=${COMPILED}")
if(BARE)
  foreach(optional IN ITEMS Cbc Eigen3 Clp GLPK Onnx nlohmann_json yaml-cpp)
    list(APPEND configure -DCMAKE_DISABLE_FIND_PACKAGE_${optional}=ON)
  endforeach()
endif()

if(WAY STREQUAL "installed")
  run(${configure} -S "${SOURCE_DIR}" -B "${WORK_DIR}/library" -DHETPLAN_BUILD_TESTS=OFF -DHETPLAN_BUILD_EXAMPLES=OFF
      -DHETPLAN_BUILD_BENCH=OFF)
  run(${CMAKE_COMMAND} --install "${WORK_DIR}/library" --prefix "${WORK_DIR}/prefix")
  # The installed package must not lean on where it was built.
  file(REMOVE_RECURSE "${WORK_DIR}/library")
endif()

run(${configure} -S "${CMAKE_CURRENT_LIST_DIR}/${WAY}" -B "${WORK_DIR}/build"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DHETPLAN=${SOURCE_DIR}")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
set(expected "${VERSION} header-only 2")
run("${WORK_DIR}/build/consumer")
if(COMPILED)
  set(first "${output}")
  string(APPEND expected "\n${VERSION} compiled 2")
  run("${WORK_DIR}/build/consumer_compiled")
  string(PREPEND output "${first}")
endif()
if(NOT output STREQUAL "${expected}\n")
  message(FATAL_ERROR "expected '${expected}', it was '${output}'")
endif()
