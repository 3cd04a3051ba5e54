# SPDX-License-Identifier: BSL-1.0
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hetplan")

install(DIRECTORY include/hetplan DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp"
        PATTERN "*.ipp")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/hetplan")

# One export per component: a file may name only targets that its reader has.
set(components hetplan io yaml glpk clp cbc fit onnx)
if(HETPLAN_BUILD_COMPILED)
  list(APPEND components compiled)
endif()
foreach(component IN LISTS components)
  install(TARGETS hetplan_${component} EXPORT hetplan-${component})
  install(
    EXPORT hetplan-${component}
    NAMESPACE hetplan::
    DESTINATION "${package_dir}")
endforeach()
if(TARGET hetplan_cli)
  install(TARGETS hetplan_cli)
  install(PROGRAMS examples/torch/export_torch.py TYPE BIN) # a module for the user's own Python, too
endif()

# While the major version is 0, a new minor version may break its users.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
configure_package_config_file(cmake/hetplanConfig.cmake.in "${PROJECT_BINARY_DIR}/hetplanConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/hetplanConfigVersion.cmake" COMPATIBILITY ${compatibility})
install(FILES "${PROJECT_BINARY_DIR}/hetplanConfig.cmake" "${PROJECT_BINARY_DIR}/hetplanConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindGLPK.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindClp.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindCbc.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindOnnx.cmake"
        DESTINATION "${package_dir}")
