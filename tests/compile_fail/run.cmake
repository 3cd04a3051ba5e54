# SPDX-License-Identifier: BSL-1.0
# Compiles SOURCE, which says in a comment what must happen:
#   // expect: words      it fails, and the words appear in the first error or the 15 lines after it (may be repeated)
#   // expect-ok          it compiles: the twin that shows that the error above it comes from the fault alone
cmake_minimum_required(VERSION 3.21)

set(lines_allowed 15)

file(STRINGS "${SOURCE}" expected REGEX "^// expect: ")
list(TRANSFORM expected REPLACE "^// expect: " "")
file(STRINGS "${SOURCE}" expect_ok REGEX "^// expect-ok")
if((expected AND expect_ok) OR NOT (expected OR expect_ok))
  message(FATAL_ERROR "${SOURCE} needs either a line '// expect: words' or a line '// expect-ok'")
endif()

set(includes "-I${OWN_INCLUDE_DIR}")
foreach(dir IN LISTS INCLUDE_DIRS)
  if(NOT dir STREQUAL OWN_INCLUDE_DIR AND NOT dir IN_LIST IMPLICIT_DIRS)
    list(APPEND includes -isystem "${dir}")
  endif()
endforeach()

execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -fdiagnostics-color=never ${includes} "${SOURCE}"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

if(expect_ok)
  if(NOT status EQUAL 0)
    message("${output}")
    message(FATAL_ERROR "${SOURCE} must compile")
  endif()
  return()
endif()
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiled, but must not")
endif()

# Cut by position, not into a list: compiler output is full of semicolons and brackets. Printed by itself, not in the
# fatal error, which would wrap it.
string(FIND "${output}" "error:" at)
if(at LESS 0)
  message("${output}")
  message(FATAL_ERROR "${SOURCE} failed without an error message")
endif()
string(SUBSTRING "${output}" 0 ${at} before)
string(FIND "${before}" "\n" line_start REVERSE)
math(EXPR line_start "${line_start} + 1")
string(SUBSTRING "${output}" ${line_start} -1 rest)

set(window "")
foreach(line RANGE ${lines_allowed})
  string(FIND "${rest}" "\n" end)
  if(end LESS 0)
    string(APPEND window "${rest}")
    break()
  endif()
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" 0 ${end} text)
  string(APPEND window "${text}")
  string(SUBSTRING "${rest}" ${end} -1 rest)
endforeach()

foreach(words IN LISTS expected)
  string(FIND "${window}" "${words}" found)
  if(found LESS 0)
    message("${window}")
    message(FATAL_ERROR "${SOURCE}: '${words}' is not in the first error or the ${lines_allowed} lines after it")
  endif()
endforeach()
