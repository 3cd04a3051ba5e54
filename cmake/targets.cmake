# SPDX-License-Identifier: BSL-1.0
# Usage requirements only: include path, language level, dependencies. No flags: those are the user's.

add_library(hetplan_hetplan INTERFACE)
target_include_directories(
  hetplan_hetplan INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>")
target_compile_features(hetplan_hetplan INTERFACE cxx_std_20)
target_link_libraries(hetplan_hetplan INTERFACE Boost::headers range-v3::range-v3 Threads::Threads)

# These exist even where their dependency does not, so that the installed package can offer them on a machine
# that has it; the names with :: appear only where they can be used.
add_library(hetplan_io INTERFACE)
target_link_libraries(hetplan_io INTERFACE hetplan_hetplan nlohmann_json::nlohmann_json)

add_library(hetplan_yaml INTERFACE)
target_link_libraries(hetplan_yaml INTERFACE hetplan_io yaml-cpp::yaml-cpp)

add_library(hetplan_glpk INTERFACE)
target_link_libraries(hetplan_glpk INTERFACE hetplan_hetplan GLPK::GLPK)

add_library(hetplan_clp INTERFACE)
target_link_libraries(hetplan_clp INTERFACE hetplan_hetplan Clp::Clp)

add_library(hetplan_cbc INTERFACE)
target_link_libraries(hetplan_cbc INTERFACE hetplan_clp Cbc::Cbc)

add_library(hetplan_fit INTERFACE)
target_link_libraries(hetplan_fit INTERFACE hetplan_hetplan Eigen3::Eigen)

add_library(hetplan_onnx INTERFACE)
target_link_libraries(hetplan_onnx INTERFACE hetplan_io Onnx::Onnx)

set_target_properties(hetplan_hetplan PROPERTIES EXPORT_NAME hetplan)
set_target_properties(hetplan_io PROPERTIES EXPORT_NAME io)
set_target_properties(hetplan_yaml PROPERTIES EXPORT_NAME yaml)
set_target_properties(hetplan_glpk PROPERTIES EXPORT_NAME glpk)
set_target_properties(hetplan_clp PROPERTIES EXPORT_NAME clp)
set_target_properties(hetplan_cbc PROPERTIES EXPORT_NAME cbc)
set_target_properties(hetplan_fit PROPERTIES EXPORT_NAME fit)
set_target_properties(hetplan_onnx PROPERTIES EXPORT_NAME onnx)

add_library(hetplan::hetplan ALIAS hetplan_hetplan)
if(TARGET nlohmann_json::nlohmann_json)
  add_library(hetplan::io ALIAS hetplan_io)
endif()
if(TARGET nlohmann_json::nlohmann_json AND TARGET yaml-cpp::yaml-cpp)
  add_library(hetplan::yaml ALIAS hetplan_yaml)
endif()
if(TARGET GLPK::GLPK)
  add_library(hetplan::glpk ALIAS hetplan_glpk)
endif()
if(TARGET Clp::Clp)
  add_library(hetplan::clp ALIAS hetplan_clp)
endif()
if(TARGET Cbc::Cbc)
  add_library(hetplan::cbc ALIAS hetplan_cbc)
endif()
if(TARGET Eigen3::Eigen)
  add_library(hetplan::fit ALIAS hetplan_fit)
endif()
if(TARGET nlohmann_json::nlohmann_json AND TARGET Onnx::Onnx)
  add_library(hetplan::onnx ALIAS hetplan_onnx)
endif()
