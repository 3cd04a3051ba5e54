# SPDX-License-Identifier: BSL-1.0
# Every definition in a header is inline (HETPLAN_INLINE): a second source that includes it must link. The object of a program that
# includes all headers defines nothing of ours that the linker would find twice.
#   cmake -DNM=nm -DOBJECT=header_only.cpp.o -P symbols.cmake
cmake_minimum_required(VERSION 3.21)

execute_process(COMMAND "${NM}" -C --defined-only --extern-only "${OBJECT}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES " T main\n" OR NOT symbols MATCHES " [VWu] hetplan::")
  message(FATAL_ERROR "${OBJECT}: neither main nor an inline definition of ours; is it an object of the program?")
endif()
string(REGEX MATCHALL "[^\n]* [A-TX-Z] hetplan::[^\n]*" strong "${symbols}")
if(strong)
  list(JOIN strong "\n" strong)
  message(FATAL_ERROR "not inline:\n${strong}")
endif()
