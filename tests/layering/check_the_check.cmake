# SPDX-License-Identifier: BSL-1.0
# Writes headers with one fault each, and some with none, and compares what the check says with what it must say.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK_DIR}")
set(start "// SPDX-License-Identifier: BSL-1.0\n#pragma once\n")
string(REPEAT "// line\n" 349 many_lines)

function(write path text)
  file(WRITE "${WORK_DIR}/hetplan/${path}" "${text}")
endfunction()

# Allowed: own folder, earlier folders, the leaves' freedom, each third-party header at home.
write(core/a.hpp "${start}#include <string>\n// not an include: #include <hetplan/io/a.hpp>\n")
write(graph/a.hpp "${start}#include <hetplan/core/a.hpp>\n#include <hetplan/graph/b.hpp>\n")
write(graph/b.hpp "${start}")
write(solve/glpk.hpp "${start}#include <glpk.h>\n")
write(solve/clp.hpp "${start}#include <coin/Clp_C_Interface.h>\n")
write(solve/cbc.hpp "${start}#include <hetplan/solve/clp.hpp>\n#include <coin/Cbc_C_Interface.h>\n")
write(zoo/a.hpp "${start}#include <hetplan/hetplan.hpp>\n#include <hetplan/recipes/a.hpp>\n")
write(io/a.hpp "${start}#include <hetplan/zoo/a.hpp>\n#include <nlohmann/json.hpp>\n")
write(hetplan.hpp "${start}#include <hetplan/recipes/a.hpp>\n")
write(recipes/a.hpp "${start}")

write(core/upward.hpp "${start}#include <hetplan/graph/a.hpp>\n")
write(core/spaced.hpp "${start}  #  include <hetplan/graph/a.hpp>  // no\n")
write(recipes/leaf.hpp "${start}#include <hetplan/zoo/a.hpp>\n")
write(recipes/umbrella.hpp "${start}#include <hetplan/hetplan.hpp>\n")
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
write(plan/long.hpp "${start}${many_lines}")

set(expected
    "core/upward.hpp: <hetplan/graph/a.hpp> comes after core"
    "core/spaced.hpp: <hetplan/graph/a.hpp> comes after core"
    "recipes/leaf.hpp: <hetplan/zoo/a.hpp> comes after recipes"
    "recipes/umbrella.hpp: <hetplan/hetplan.hpp> comes after recipes"
    "zoo/reads_files.hpp: <hetplan/io/a.hpp> comes after zoo"
    "io/solves.hpp: no header includes solve/glpk.hpp"
    "plan/gpl.hpp: <glpk.h> belongs to solve/glpk.hpp alone"
    "plan/solves.hpp: no header includes <hetplan/solve/cbc.hpp>"
    "plan/epl.hpp: <coin/Clp_C_Interface.h> belongs to solve/clp.hpp and solve/cbc.hpp alone"
    "plan/json.hpp: <nlohmann/json_fwd.hpp> belongs to io/ alone"
    "plan/quoted.hpp: \"job.hpp\": write the whole path"
    "plan/nowhere.hpp: <hetplan/nowhere/a.hpp> is in no layer"
    "nowhere/a.hpp: the folder nowhere is not in the list of layers"
    "plan/no_licence.hpp: the first line is not"
    "plan/no_guard.hpp: the first directive is not"
    "plan/long.hpp: 351 lines, more than 350")
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
