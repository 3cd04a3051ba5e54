# SPDX-License-Identifier: BSL-1.0
# Every definition in a header is inline (HETPLAN_INLINE), so that two sources may include it: in the object of a program that includes
# all headers, the linker would reject a second main and second examples, and nothing else.
#   cmake -DNM=nm -DOBJECT=header_only.cpp.o -P symbols.cmake
cmake_minimum_required(VERSION 3.21)

execute_process(COMMAND "${NM}" --defined-only --extern-only "${OBJECT}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [A-TX-Z] [^\n]+" strong "${symbols}")
if(NOT " T main" IN_LIST strong)
  message(FATAL_ERROR "${OBJECT}: no main; is it the object of a program?")
endif()
list(REMOVE_ITEM strong " T main")
list(FILTER strong EXCLUDE REGEX "^ T _ZN[0-9]+example_[0-9]")
if(strong)
  list(JOIN strong "\n" strong)
  message(FATAL_ERROR "not inline:\n${strong}")
endif()
