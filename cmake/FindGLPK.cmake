# SPDX-License-Identifier: BSL-1.0
# GLPK ships neither a CMake package nor a .pc file. Defines GLPK::GLPK and GLPK_VERSION.

find_path(GLPK_INCLUDE_DIR glpk.h PATH_SUFFIXES glpk)
find_library(GLPK_LIBRARY glpk)
mark_as_advanced(GLPK_INCLUDE_DIR GLPK_LIBRARY)

if(GLPK_INCLUDE_DIR)
  file(STRINGS "${GLPK_INCLUDE_DIR}/glpk.h" glpk_version_lines REGEX "^#define GLP_(MAJOR|MINOR)_VERSION +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" GLPK_VERSION "${glpk_version_lines}")
  list(JOIN GLPK_VERSION "." GLPK_VERSION)
  unset(glpk_version_lines)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  GLPK
  REQUIRED_VARS GLPK_LIBRARY GLPK_INCLUDE_DIR
  VERSION_VAR GLPK_VERSION)

if(GLPK_FOUND AND NOT TARGET GLPK::GLPK)
  add_library(GLPK::GLPK UNKNOWN IMPORTED)
  set_target_properties(GLPK::GLPK PROPERTIES IMPORTED_LOCATION "${GLPK_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                  "${GLPK_INCLUDE_DIR}")
endif()
