# SPDX-License-Identifier: BSL-1.0
# The folder tree is the architecture: a file includes its own folder and those before it in this list. x.hpp declares, x.ipp
# defines what is no template and is included by x.hpp alone, at its end.
cmake_minimum_required(VERSION 3.21)

set(layers
    core
    solve
    graph
    cluster
    cost
    coarsen
    problem
    plan
    estimate
    partition
    place
    tasks
    simulate
    search
    schedule
    mix
    adapt
    serve
    recipes
    fit)
# Only programs include these, so the umbrella hetplan.hpp stands below them.
set(leaves zoo io exchange draw)

# What one plan does not need: no header that hetplan.hpp reaches, directly or not, lies there.
set(not_in_the_umbrella mix adapt serve fit)
# Where a header says what it is built after: a paper, or ours.
set(algorithms coarsen partition place schedule mix adapt serve recipes fit)
set(columns_allowed 140)

set(order ${layers} hetplan.hpp ${leaves})
set(faults 0)
function(fault text)
  message("${header}: ${text}")
  math(EXPR count "${faults} + 1")
  set(faults ${count} PARENT_SCOPE)
endfunction()

# Columns are characters, not bytes: without the continuation bytes of UTF-8 the two are the same.
string(ASCII 128 first)
string(ASCII 191 last)
set(continuation "[${first}-${last}]")
math(EXPR too_long "${columns_allowed} + 1")
string(REPEAT "[^\n]" ${too_long} too_long)

file(GLOB_RECURSE headers RELATIVE "${INCLUDE_DIR}" "${INCLUDE_DIR}/*.hpp" "${INCLUDE_DIR}/*.ipp")
set(parts ${headers})
list(FILTER headers EXCLUDE REGEX "^hetplan/define/")
list(FILTER parts INCLUDE REGEX "^hetplan/define/")
if(NOT headers)
  message(FATAL_ERROR "no header under ${INCLUDE_DIR}")
endif()

set(definitions ${headers})
list(FILTER definitions INCLUDE REGEX "\\.ipp$")
foreach(header IN LISTS headers)
  # hetplan/problem/planning_problem.hpp stands at problem, hetplan/hetplan.hpp at hetplan.hpp.
  string(REGEX REPLACE "^hetplan/([^/]+).*" "\\1" own "${header}")
  list(FIND order "${own}" own_rank)
  if(own_rank LESS 0)
    fault("the folder ${own} is not in the list of layers")
    continue()
  endif()
  # x.hpp and x.ipp are one unit, x: who includes x.hpp depends on both.
  string(REGEX REPLACE "\\.[hi]pp$" "" unit "${header}")
  string(REGEX MATCH "[hi]pp$" kind "${header}")

  file(READ "${INCLUDE_DIR}/${header}" text)
  if(NOT text MATCHES "^// SPDX-License-Identifier: BSL-1.0\n")
    fault("the first line is not '// SPDX-License-Identifier: BSL-1.0'")
  endif()
  string(REGEX MATCH "\n#[^\n]*" first_directive "${text}")
  if(NOT first_directive STREQUAL "\n#pragma once")
    fault("the first directive is not '#pragma once'")
  endif()
  if(kind STREQUAL "hpp" AND own IN_LIST algorithms AND NOT text MATCHES "///[^\n]* Source(  |:)")
    fault("no docstring names its Source")
  endif()
  string(REGEX REPLACE "${continuation}" "" characters "${text}")
  if("\n${characters}" MATCHES "\n${too_long}")
    set(line "${CMAKE_MATCH_0}")
    string(FIND "\n${characters}" "${line}" at)
    string(SUBSTRING "${characters}" 0 ${at} before)
    string(REGEX MATCHALL "\n" before "${before}")
    list(LENGTH before number)
    math(EXPR number "${number} + 1")
    fault("line ${number} has more than ${columns_allowed} columns")
  endif()

  string(REGEX MATCHALL "\n[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"]" includes "\n${text}")
  list(TRANSFORM includes REPLACE "^.*([<\"][^>\"]+[>\"])$" "\\1")
  if(kind STREQUAL "ipp")
    list(FIND headers "${unit}.hpp" beside)
    list(POP_FRONT includes first_include)
    if(beside LESS 0)
      fault("no header of that name beside it")
    elseif(NOT first_include STREQUAL "<${unit}.hpp>")
      fault("the first include is not <${unit}.hpp>")
    endif()
    list(PREPEND includes "${first_include}")
    # Header-only, such a function is defined in every source that includes the header: the header_only test finds the macro missing.
    # Compiled, `inline` leaves it out of the library.
    string(REGEX REPLACE "\ninline constexpr " "\n" without_constants "${text}")
    if(without_constants MATCHES "\n(inline [^(\n]*)")
      fault("'${CMAKE_MATCH_1}': HETPLAN_INLINE, not inline, begins a definition in an .ipp")
    endif()
  elseif("${unit}.ipp" IN_LIST headers)
    set(end "\n#ifndef HETPLAN_SEPARATE\n#include <${unit}.ipp>\n#endif\n")
    string(LENGTH "${end}" length)
    string(FIND "${text}" "${end}" at REVERSE)
    string(LENGTH "${text}" whole)
    math(EXPR rest "${whole} - ${length}")
    if(at LESS 0 OR NOT at EQUAL rest)
      fault("does not end with '#ifndef HETPLAN_SEPARATE', '#include <${unit}.ipp>', '#endif'")
    endif()
  endif()

  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^([<\"])([^>\"]+)[>\"]$" "\\1;\\2" include "${include}")
    list(GET include 0 mark)
    list(GET include 1 name)
    if(mark STREQUAL "\"")
      fault("\"${name}\": write the whole path, <hetplan/...>")
    endif()
    if(name MATCHES "\\.ipp$" AND NOT name STREQUAL "${unit}.ipp")
      fault("<${name}> is included by its own header alone")
    elseif(name STREQUAL "glpk.h" AND NOT header STREQUAL "hetplan/solve/glpk.hpp")
      fault("<glpk.h> belongs to solve/glpk.hpp alone: it is under GPL-3")
    elseif(name STREQUAL "hetplan/solve/glpk.hpp")
      fault("no header includes solve/glpk.hpp: take an lp_solver as a parameter")
    elseif(name MATCHES "^coin/" AND NOT header MATCHES "^hetplan/solve/(clp|cbc).hpp$")
      fault("<${name}> belongs to solve/clp.hpp and solve/cbc.hpp alone")
    elseif(name MATCHES "^hetplan/solve/(clp|cbc).hpp$" AND NOT header STREQUAL "hetplan/solve/cbc.hpp")
      fault("no header includes <${name}>: take a solver as a parameter")
    elseif(name MATCHES "^boost/graph/" AND NOT header MATCHES "(/bgl\\.hpp|\\.ipp)$")
      fault("<${name}> belongs into an .ipp or a bgl.hpp: whoever includes a noun need not parse it")
    elseif(name MATCHES "^range/v3/" AND NOT kind STREQUAL "ipp")
      fault("<${name}> belongs into an .ipp: whoever includes a noun need not parse it")
    elseif(name MATCHES "^range/v3/[^/]*$")
      fault("<${name}>: include one view at a time, <range/v3/view/zip.hpp>")
    elseif(name MATCHES "^Eigen/" AND NOT header MATCHES "^hetplan/fit/[^/]*\\.ipp$")
      fault("<${name}> belongs into an .ipp of fit/: only hetplan::fit brings Eigen")
    elseif(name MATCHES "^(nlohmann|yaml-cpp)/" AND NOT own MATCHES "^(io|exchange|draw)$")
      fault("<${name}> belongs to files and pictures alone")
    elseif(name MATCHES "^nlohmann/" AND NOT name STREQUAL "nlohmann/json_fwd.hpp" AND NOT header MATCHES "(/json_text\\.hpp|\\.ipp)$")
      fault("<${name}> belongs into an .ipp; io/json_text.hpp names the type that writers build")
    elseif(name MATCHES "^yaml-cpp/" AND NOT header MATCHES "(/pipeedge_yaml\\.hpp|\\.ipp)$")
      fault("<${name}> belongs into an .ipp; pipeedge_yaml.hpp holds the node that readers of YAML walk over")
    elseif(name MATCHES "^hetplan/([^/]+)")
      set(theirs "${CMAKE_MATCH_1}")
      list(FIND order "${theirs}" their_rank)
      if(their_rank LESS 0)
        fault("<${name}> is in no layer")
      elseif(their_rank GREATER own_rank)
        fault("<${name}> comes after ${own} in the list of layers")
      elseif(name MATCHES "^(.*)\\.hpp$" AND NOT CMAKE_MATCH_1 STREQUAL unit)
        set_property(GLOBAL APPEND PROPERTY "needs ${unit}" "${CMAKE_MATCH_1}")
      endif()
    endif()
  endforeach()
  list(APPEND units "${unit}")
endforeach()

# No circles: header-only, x.ipp is read where x.hpp ends, so nothing that it uses may be waiting for x itself. `#pragma once`
# hides a circle until somebody includes its headers in another order.
function(visit unit)
  get_property(state GLOBAL PROPERTY "state of ${unit}")
  if(state STREQUAL "done")
    return()
  endif()
  if(state STREQUAL "open")
    list(FIND ARGN "${unit}" start)
    list(SUBLIST ARGN ${start} -1 circle)
    list(JOIN circle " -> " circle)
    set(header "${unit}")
    fault("a circle: ${circle} -> ${unit}")
    set(faults ${faults} PARENT_SCOPE)
    return()
  endif()
  set_property(GLOBAL PROPERTY "state of ${unit}" open)
  get_property(needs GLOBAL PROPERTY "needs ${unit}")
  foreach(need IN LISTS needs)
    visit("${need}" ${ARGN} "${unit}")
  endforeach()
  set_property(GLOBAL PROPERTY "state of ${unit}" done)
  set(faults ${faults} PARENT_SCOPE)
endfunction()
list(REMOVE_DUPLICATES units)
foreach(unit IN LISTS units)
  visit("${unit}")
endforeach()

# Who includes the umbrella pays for all that it reaches.
function(reach unit)
  get_property(reached GLOBAL PROPERTY "reached ${unit}")
  if(reached)
    return()
  endif()
  set_property(GLOBAL PROPERTY "reached ${unit}" TRUE)
  string(REGEX REPLACE "^hetplan/([^/]+).*" "\\1" own "${unit}")
  if(own IN_LIST not_in_the_umbrella)
    list(JOIN ARGN " -> " way)
    set(header "hetplan/hetplan.hpp")
    fault("reaches ${own}: ${way} -> ${unit}")
  endif()
  get_property(needs GLOBAL PROPERTY "needs ${unit}")
  foreach(need IN LISTS needs)
    reach("${need}" ${ARGN} "${unit}")
  endforeach()
  set(faults ${faults} PARENT_SCOPE)
endfunction()
reach("hetplan/hetplan")

# Whoever compiles the definitions once includes each of define/*.hpp in one source: every .ipp stands in one of them.
set(defined "")
foreach(header IN LISTS parts)
  file(STRINGS "${INCLUDE_DIR}/${header}" lines REGEX "^#include ")
  list(TRANSFORM lines REPLACE "^#include <(.*)>$" "\\1")
  foreach(definition IN LISTS lines)
    if(definition IN_LIST defined)
      fault("<${definition}> is in another file of define/, too")
    elseif(NOT definition IN_LIST definitions)
      fault("<${definition}> is no .ipp")
    endif()
    list(APPEND defined "${definition}")
  endforeach()
endforeach()
foreach(header IN LISTS definitions)
  if(parts AND NOT header IN_LIST defined)
    fault("is in no file of hetplan/define/")
  endif()
endforeach()

if(faults GREATER 0)
  message(FATAL_ERROR "${faults} faults")
endif()
