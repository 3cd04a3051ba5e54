# SPDX-License-Identifier: BSL-1.0
# COIN-OR's Cbc ships a .pc file, but not everywhere pkg-config. Defines Cbc::Cbc and Cbc_VERSION. Find Clp first: Cbc
# counts as absent without.

find_path(Cbc_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_library(Cbc_LIBRARY CbcSolver)  # where the C interface is
mark_as_advanced(Cbc_INCLUDE_DIR Cbc_LIBRARY)

if(Cbc_INCLUDE_DIR AND EXISTS "${Cbc_INCLUDE_DIR}/coin/CbcConfig.h")
  file(STRINGS "${Cbc_INCLUDE_DIR}/coin/CbcConfig.h" Cbc_VERSION REGEX "^#define CBC_VERSION \"[0-9.]+\"" LIMIT_COUNT 1)
  string(REGEX REPLACE "[^0-9.]" "" Cbc_VERSION "${Cbc_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Cbc
  REQUIRED_VARS Cbc_LIBRARY Cbc_INCLUDE_DIR Clp_FOUND
  VERSION_VAR Cbc_VERSION)

if(Cbc_FOUND AND NOT TARGET Cbc::Cbc)
  add_library(Cbc::Cbc UNKNOWN IMPORTED)
  set_target_properties(
    Cbc::Cbc PROPERTIES IMPORTED_LOCATION "${Cbc_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Cbc_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES Clp::Clp)
endif()
