# SPDX-License-Identifier: BSL-1.0
# An overlay port, of the checkout that it stands in: vcpkg install hetplan --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

if("files" IN_LIST FEATURES)
  set(without_files OFF)
else()
  set(without_files ON)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DHETPLAN_BUILD_COMMAND=OFF "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=${without_files}"
          "-DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=${without_files}" -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON
          -DCMAKE_DISABLE_FIND_PACKAGE_Onnx=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME hetplan CONFIG_PATH lib/cmake/hetplan)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
