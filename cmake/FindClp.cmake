# SPDX-License-Identifier: BSL-1.0
# COIN-OR's Clp ships a .pc file, but not everywhere pkg-config. Defines Clp::Clp and Clp_VERSION.

find_path(Clp_INCLUDE_DIR coin/Clp_C_Interface.h)
find_library(Clp_LIBRARY Clp)
mark_as_advanced(Clp_INCLUDE_DIR Clp_LIBRARY)

if(Clp_INCLUDE_DIR AND EXISTS "${Clp_INCLUDE_DIR}/coin/ClpConfig.h")
  file(STRINGS "${Clp_INCLUDE_DIR}/coin/ClpConfig.h" Clp_VERSION REGEX "^#define CLP_VERSION \"[0-9.]+\"" LIMIT_COUNT 1)
  string(REGEX REPLACE "[^0-9.]" "" Clp_VERSION "${Clp_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Clp
  REQUIRED_VARS Clp_LIBRARY Clp_INCLUDE_DIR
  VERSION_VAR Clp_VERSION)

if(Clp_FOUND AND NOT TARGET Clp::Clp)
  add_library(Clp::Clp UNKNOWN IMPORTED)
  set_target_properties(Clp::Clp PROPERTIES IMPORTED_LOCATION "${Clp_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                "${Clp_INCLUDE_DIR}")
endif()
