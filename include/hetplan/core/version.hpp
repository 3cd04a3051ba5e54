// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

// Single source of the version: CMakeLists.txt reads these three lines.
#define HETPLAN_VERSION_MAJOR 0
#define HETPLAN_VERSION_MINOR 2
#define HETPLAN_VERSION_PATCH 0

#define HETPLAN_DETAIL_TEXT_OF(x) #x
#define HETPLAN_DETAIL_TEXT(x) HETPLAN_DETAIL_TEXT_OF(x)

namespace hetplan {

/// Version as text, "major.minor.patch".
inline constexpr std::string_view version = HETPLAN_DETAIL_TEXT(HETPLAN_VERSION_MAJOR) "." HETPLAN_DETAIL_TEXT(
    HETPLAN_VERSION_MINOR) "." HETPLAN_DETAIL_TEXT(HETPLAN_VERSION_PATCH);

}  // namespace hetplan

#undef HETPLAN_DETAIL_TEXT
#undef HETPLAN_DETAIL_TEXT_OF

// Builds: header-only, or compiled. `x.hpp` declares; `x.ipp` defines what is not a template. `x.hpp` includes `x.ipp` at its
// end unless HETPLAN_SEPARATE is defined; then the library hetplan::compiled, which also sets the macro, holds the definitions.
//
// Build all parts of a program the same way and with the same flags: otherwise the same functions are there twice, and the linker keeps
// one of them. A compiled build refers to one symbol of the library, named after its version, so that headers of one version do not link
// with a library of another.

#ifdef HETPLAN_SEPARATE
/// Prefix of every definition in an .ipp file.
#define HETPLAN_INLINE

#define HETPLAN_DETAIL_JOINED(major, minor, patch) library_##major##_##minor##_##patch
#define HETPLAN_DETAIL_LIBRARY(major, minor, patch) HETPLAN_DETAIL_JOINED(major, minor, patch)
#define HETPLAN_DETAIL_THIS_LIBRARY HETPLAN_DETAIL_LIBRARY(HETPLAN_VERSION_MAJOR, HETPLAN_VERSION_MINOR, HETPLAN_VERSION_PATCH)

namespace hetplan::detail {
extern const char HETPLAN_DETAIL_THIS_LIBRARY;
[[gnu::used]] inline const char* const linked_library = &HETPLAN_DETAIL_THIS_LIBRARY;
}  // namespace hetplan::detail
#else
#define HETPLAN_INLINE inline
#endif

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/version.ipp>
#endif
