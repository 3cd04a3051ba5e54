# SPDX-License-Identifier: BSL-1.0
# The folder tree is the architecture: a header includes its own folder and those before it in this list.
cmake_minimum_required(VERSION 3.21)

set(layers
    core
    solve
    graph
    cluster
    cost
    coarsen
    decompose
    problem
    plan
    partition
    place
    tasks
    simulate
    schedule
    mix
    adapt
    serve
    recipes)
# Only programs include these, so the umbrella hetplan.hpp stands below them.
set(leaves zoo io exchange draw)
set(lines_allowed 350)

set(order ${layers} hetplan.hpp ${leaves})
set(faults 0)
function(fault text)
  message("${header}: ${text}")
  math(EXPR count "${faults} + 1")
  set(faults ${count} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE headers RELATIVE "${INCLUDE_DIR}" "${INCLUDE_DIR}/*.hpp")
if(NOT headers)
  message(FATAL_ERROR "no header under ${INCLUDE_DIR}")
endif()

foreach(header IN LISTS headers)
  # hetplan/problem/job.hpp stands at problem, hetplan/hetplan.hpp at hetplan.hpp.
  string(REGEX REPLACE "^hetplan/([^/]+).*" "\\1" own "${header}")
  list(FIND order "${own}" own_rank)
  if(own_rank LESS 0)
    fault("the folder ${own} is not in the list of layers")
    continue()
  endif()

  file(READ "${INCLUDE_DIR}/${header}" text)
  if(NOT text MATCHES "^// SPDX-License-Identifier: BSL-1.0\n")
    fault("the first line is not '// SPDX-License-Identifier: BSL-1.0'")
  endif()
  string(REGEX MATCH "\n#[^\n]*" first_directive "${text}")
  if(NOT first_directive STREQUAL "\n#pragma once")
    fault("the first directive is not '#pragma once'")
  endif()
  string(REGEX MATCHALL "\n" lines "${text}")
  list(LENGTH lines lines)
  if(lines GREATER lines_allowed)
    fault("${lines} lines, more than ${lines_allowed}")
  endif()

  string(REGEX MATCHALL "\n[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"]" includes "\n${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^.*([<\"])([^>\"]+)[>\"]$" "\\1;\\2" include "${include}")
    list(GET include 0 mark)
    list(GET include 1 name)
    if(mark STREQUAL "\"")
      fault("\"${name}\": write the whole path, <hetplan/...>")
    endif()
    if(name STREQUAL "glpk.h" AND NOT header STREQUAL "hetplan/solve/glpk.hpp")
      fault("<glpk.h> belongs to solve/glpk.hpp alone: it is under GPL-3")
    elseif(name STREQUAL "hetplan/solve/glpk.hpp")
      fault("no header includes solve/glpk.hpp: take an lp_solver as a parameter")
    elseif(name MATCHES "^coin/" AND NOT header MATCHES "^hetplan/solve/(clp|cbc).hpp$")
      fault("<${name}> belongs to solve/clp.hpp and solve/cbc.hpp alone")
    elseif(name MATCHES "^hetplan/solve/(clp|cbc).hpp$" AND NOT header STREQUAL "hetplan/solve/cbc.hpp")
      fault("no header includes <${name}>: take a solver as a parameter")
    elseif(name MATCHES "^nlohmann/" AND NOT own STREQUAL "io")
      fault("<${name}> belongs to io/ alone")
    elseif(name MATCHES "^hetplan/([^/]+)")
      set(theirs "${CMAKE_MATCH_1}")
      list(FIND order "${theirs}" their_rank)
      if(their_rank LESS 0)
        fault("<${name}> is in no layer")
      elseif(their_rank GREATER own_rank)
        fault("<${name}> comes after ${own} in the list of layers")
      endif()
    endif()
  endforeach()
endforeach()

if(faults GREATER 0)
  message(FATAL_ERROR "${faults} faults")
endif()
