# SPDX-License-Identifier: BSL-1.0
# Writes headers with one fault each, and some with none, and compares what the check says with what it must say.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")
set(start "// SPDX-License-Identifier: BSL-1.0\n#pragma once\n")
set(sourced "${start}/// Source  ours.\n")
string(REPEAT "ä" 137 wide)

function(write path text)
  file(WRITE "${WORK_DIR}/hetplan/${path}" "${text}")
endfunction()

# A header, with what ends one that has an .ipp, and that.
function(pair path text definitions)
  write(${path}.hpp "${text}\n#ifndef HETPLAN_SEPARATE\n#include <hetplan/${path}.ipp>\n#endif\n")
  write(${path}.ipp "${definitions}")
endfunction()

# Allowed: own folder, earlier folders, the leaves' freedom, each third-party header at home.
write(core/a.hpp "${start}#include <string>\n// not an include: #include <hetplan/io/a.hpp>\n")
write(graph/a.hpp "${start}#include <hetplan/core/a.hpp>\n#include <hetplan/graph/b.hpp>\n")
write(graph/b.hpp "${start}")
write(solve/glpk.hpp "${start}#include <glpk.h>\n")
write(solve/clp.hpp "${start}#include <coin/Clp_C_Interface.h>\n")
write(solve/cbc.hpp "${start}#include <hetplan/solve/clp.hpp>\n#include <coin/Cbc_C_Interface.h>\n")
write(zoo/a.hpp "${start}#include <hetplan/hetplan.hpp>\n#include <hetplan/recipes/a.hpp>\n")
string(CONCAT text "${start}#include <hetplan/io/a.hpp>\n#include <nlohmann/json.hpp>\n#include <yaml-cpp/yaml.h>\n")
pair(io/a "${start}#include <hetplan/zoo/a.hpp>\n" "${text}")
write(hetplan.hpp "${start}#include <hetplan/recipes/a.hpp>\n")
write(recipes/a.hpp "${sourced}#include <hetplan/mix/a.hpp>\n")
write(mix/a.hpp "${sourced}")
write(graph/bgl.hpp "${start}#include <boost/graph/graph_traits.hpp>\n")
write(io/json_text.hpp "${start}#include <nlohmann/json.hpp>\n")
write(exchange/pipeedge_yaml.hpp "${start}#include <yaml-cpp/yaml.h>\n")
string(CONCAT text "${start}#include <hetplan/cost/a.hpp>\n#include <boost/graph/graph_traits.hpp>\n"
              "#include <range/v3/view/zip.hpp>\n#include <hetplan/cost/b.hpp>\ninline constexpr int n = 3;\n")
pair(cost/a "${start}// ${wide}\n" "${text}")
write(cost/b.hpp "${start}")

write(core/upward.hpp "${start}#include <hetplan/graph/a.hpp>\n")
write(core/spaced.hpp "${start}  #  include <hetplan/graph/a.hpp>  // no\n")
write(recipes/leaf.hpp "${sourced}#include <hetplan/zoo/a.hpp>\n")
write(recipes/umbrella.hpp "${sourced}#include <hetplan/hetplan.hpp>\n")
write(zoo/reads_files.hpp "${start}#include <hetplan/io/a.hpp>\n")
write(io/solves.hpp "${start}#include <hetplan/solve/glpk.hpp>\n")
write(plan/gpl.hpp "${start}#include <glpk.h>\n")
write(plan/solves.hpp "${start}#include <hetplan/solve/cbc.hpp>\n")
write(plan/epl.hpp "${start}#include <coin/Clp_C_Interface.h>\n")
write(plan/json.hpp "${start}#include <nlohmann/json_fwd.hpp>\n")
write(plan/quoted.hpp "${start}#include \"job.hpp\"\n")
write(plan/nowhere.hpp "${start}#include <hetplan/nowhere/a.hpp>\n")
write(nowhere/a.hpp "${start}")
write(plan/no_licence.hpp "#pragma once\n#pragma once\n")
write(plan/no_guard.hpp "// SPDX-License-Identifier: BSL-1.0\n#include <string>\n#pragma once\n")
write(plan/wide.hpp "${start}\n// ä${wide}\n")
write(plan/csr.hpp "${start}#include <boost/graph/compressed_sparse_row_graph.hpp>\n")
write(plan/zipped.hpp "${start}#include <range/v3/view/zip.hpp>\n")
write(plan/matrix.hpp "${start}#include <Eigen/Dense>\n")
write(io/json.hpp "${start}#include <nlohmann/json.hpp>\n")
write(io/yaml.hpp "${start}#include <yaml-cpp/yaml.h>\n")
write(place/unsourced.hpp "${start}// Source  ours.\n/// Its Source is not told.\n")
pair(place/sourced "${sourced}" "${start}#include <hetplan/place/sourced.hpp>\n")

# Definitions: one fault per pair of files.
write(core/alone.ipp "${start}#include <hetplan/core/a.hpp>\n")
write(core/endless.hpp "${start}")
write(core/endless.ipp "${start}#include <hetplan/core/endless.hpp>\n")
pair(core/early "${start}" "${start}#include <hetplan/core/early.hpp>\n")
file(APPEND "${WORK_DIR}/hetplan/core/early.hpp" "\n")
pair(core/foreign "${start}#include <hetplan/core/early.ipp>\n" "${start}#include <hetplan/core/foreign.hpp>\n")
pair(core/second "${start}" "${start}#include <string>\n#include <hetplan/core/second.hpp>\n")
pair(core/bare "${start}" "#pragma once\n#pragma once\n#include <hetplan/core/bare.hpp>\n")
pair(core/twice "${start}" "// SPDX-License-Identifier: BSL-1.0\n#include <hetplan/core/twice.hpp>\n#pragma once\n")
pair(core/up "${start}" "${start}#include <hetplan/core/up.hpp>\n#include <hetplan/plan/b.hpp>\n")
pair(core/all_views "${start}" "${start}#include <hetplan/core/all_views.hpp>\n#include <range/v3/all.hpp>\n")
pair(core/inlined "${start}" "${start}#include <hetplan/core/inlined.hpp>\ninline int f() { return 3; }\n")
# A circle that needs the definitions: headers alone have none.
pair(core/chicken "${start}" "${start}#include <hetplan/core/chicken.hpp>\n#include <hetplan/core/egg.hpp>\n")
write(core/egg.hpp "${start}#include <hetplan/core/chicken.hpp>\n")
write(plan/b.hpp "${start}")

# All definitions but one, which is in no file, and one that is in two.
file(GLOB_RECURSE definitions RELATIVE "${WORK_DIR}" "${WORK_DIR}/*.ipp")
list(REMOVE_ITEM definitions hetplan/cost/a.ipp)
list(TRANSFORM definitions REPLACE "(.+)" "#include <\\1>\n")
list(JOIN definitions "" all)
write(define/a.hpp "${start}${all}")
write(define/b.hpp "${start}#include <hetplan/io/a.ipp>\n#include <hetplan/cost/b.hpp>\n")

set(expected
    "define/b.hpp: <hetplan/io/a.ipp> is in another file of define/, too"
    "define/b.hpp: <hetplan/cost/b.hpp> is no .ipp"
    "cost/a.ipp: is in no file of hetplan/define/"
    "core/upward.hpp: <hetplan/graph/a.hpp> comes after core"
    "core/spaced.hpp: <hetplan/graph/a.hpp> comes after core"
    "recipes/leaf.hpp: <hetplan/zoo/a.hpp> comes after recipes"
    "recipes/umbrella.hpp: <hetplan/hetplan.hpp> comes after recipes"
    "zoo/reads_files.hpp: <hetplan/io/a.hpp> comes after zoo"
    "io/solves.hpp: no header includes solve/glpk.hpp"
    "plan/gpl.hpp: <glpk.h> belongs to solve/glpk.hpp alone"
    "plan/solves.hpp: no header includes <hetplan/solve/cbc.hpp>"
    "plan/epl.hpp: <coin/Clp_C_Interface.h> belongs to solve/clp.hpp and solve/cbc.hpp alone"
    "plan/json.hpp: <nlohmann/json_fwd.hpp> belongs to files and pictures alone"
    "plan/quoted.hpp: \"job.hpp\": write the whole path"
    "plan/nowhere.hpp: <hetplan/nowhere/a.hpp> is in no layer"
    "nowhere/a.hpp: the folder nowhere is not in the list of layers"
    "plan/no_licence.hpp: the first line is not"
    "plan/no_guard.hpp: the first directive is not"
    "plan/wide.hpp: line 4 has more than 140 columns"
    "plan/csr.hpp: <boost/graph/compressed_sparse_row_graph.hpp> belongs into an .ipp or a bgl.hpp"
    "plan/zipped.hpp: <range/v3/view/zip.hpp> belongs into an .ipp"
    "plan/matrix.hpp: <Eigen/Dense> belongs into an .ipp of fit/"
    "io/json.hpp: <nlohmann/json.hpp> belongs into an .ipp"
    "io/yaml.hpp: <yaml-cpp/yaml.h> belongs into an .ipp"
    "place/unsourced.hpp: no docstring names its Source"
    "core/alone.ipp: no header of that name beside it"
    "core/endless.hpp: does not end with '#ifndef HETPLAN_SEPARATE', '#include <hetplan/core/endless.ipp>', '#endif'"
    "core/early.hpp: does not end with '#ifndef HETPLAN_SEPARATE', '#include <hetplan/core/early.ipp>', '#endif'"
    "core/foreign.hpp: <hetplan/core/early.ipp> is included by its own header alone"
    "core/second.ipp: the first include is not <hetplan/core/second.hpp>"
    "core/bare.ipp: the first line is not"
    "core/twice.ipp: the first directive is not"
    "core/up.ipp: <hetplan/plan/b.hpp> comes after core"
    "core/all_views.ipp: <range/v3/all.hpp>: include one view at a time"
    "core/inlined.ipp: 'inline int f': HETPLAN_INLINE, not inline"
    "hetplan.hpp: reaches mix: hetplan/hetplan -> hetplan/recipes/a -> hetplan/mix/a"
    "core/chicken: a circle: hetplan/core/chicken -> hetplan/core/egg -> hetplan/core/chicken")
list(LENGTH expected count)

execute_process(
  COMMAND "${CMAKE_COMMAND}" "-DINCLUDE_DIR=${WORK_DIR}" -P "${CMAKE_CURRENT_LIST_DIR}/check.cmake"
  RESULT_VARIABLE status
  ERROR_VARIABLE said)
foreach(words IN LISTS expected ITEMS "\n  ${count} faults\n")
  string(FIND "${said}" "${words}" found)
  if(found LESS 0)
    message(FATAL_ERROR "expected '${words}' in:\n${said}")
  endif()
endforeach()
if(status EQUAL 0)
  message(FATAL_ERROR "faults were found, but the check passed")
endif()
