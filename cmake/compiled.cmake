# SPDX-License-Identifier: BSL-1.0
# hetplan::compiled: the same headers, with the definitions of what is no template in a static library instead of in every
# program. Who adds this project as a folder compiles it with flags of their own, and only if something links it.

# A source for each of include/hetplan/define; what reads JSON, YAML or ONNX only where its library is found.
set(needs_of_files nlohmann_json::nlohmann_json)
set(needs_of_pictures nlohmann_json::nlohmann_json)
set(needs_of_yaml nlohmann_json::nlohmann_json yaml-cpp::yaml-cpp)
set(needs_of_fit Eigen3::Eigen)
set(needs_of_onnx nlohmann_json::nlohmann_json Onnx::Onnx)
set(sources "")
foreach(part IN ITEMS plan schedules planners serving files pictures yaml fit onnx)
  set(missing ${needs_of_${part}})
  foreach(library IN LISTS needs_of_${part})
    if(TARGET ${library})
      list(REMOVE_ITEM missing ${library})
    endif()
  endforeach()
  if(NOT missing)
    set(source "${PROJECT_BINARY_DIR}/hetplan_compiled/${part}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <hetplan/define/${part}.hpp>\n" @ONLY)
    list(APPEND sources "${source}")
  endif()
endforeach()
set(on_demand EXCLUDE_FROM_ALL)
if(HETPLAN_BUILD_COMPILED)
  set(on_demand "")
endif()
add_library(hetplan_compiled STATIC ${on_demand} ${sources})
# Position independent: shared libraries and Python modules link it, too.
set_target_properties(hetplan_compiled PROPERTIES UNITY_BUILD OFF CXX_EXTENSIONS OFF EXPORT_NAME compiled
                                                  POSITION_INDEPENDENT_CODE ON)
# As clang does by default: functions of one source may be inlined into each other nevertheless.
target_compile_options(hetplan_compiled PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
target_compile_definitions(hetplan_compiled PUBLIC HETPLAN_SEPARATE)
target_link_libraries(hetplan_compiled PUBLIC hetplan_hetplan PRIVATE $<BUILD_INTERFACE:$<TARGET_NAME_IF_EXISTS:nlohmann_json::nlohmann_json>>)
# An installed library is linked to what its user has of these; what is not there is not used either.
foreach(library IN ITEMS yaml-cpp::yaml-cpp Eigen3::Eigen Onnx::Onnx)
  if(TARGET ${library})
    target_link_libraries(hetplan_compiled PRIVATE $<BUILD_INTERFACE:${library}>
                                                   $<INSTALL_INTERFACE:$<TARGET_NAME_IF_EXISTS:${library}>>)
  endif()
endforeach()
add_library(hetplan::compiled ALIAS hetplan_compiled)

if(TARGET hetplan_own_flags)
  target_link_libraries(hetplan_compiled PRIVATE $<BUILD_INTERFACE:hetplan_own_flags>)
  # Optimized for the sanitizers too: there its tests, which plan with every planner, cost more than compiling it.
  target_compile_options(hetplan_compiled PRIVATE $<$<BOOL:${HETPLAN_LEAN}>:-O1>)
  # Files and pictures wait for the disk or the reader: with -O3 they cost half again as much to compile, for nothing to be felt.
  foreach(source IN LISTS sources)
    if(source MATCHES "/(files|pictures|yaml|onnx)[.]cpp$")
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
    endif()
  endforeach()
endif()
