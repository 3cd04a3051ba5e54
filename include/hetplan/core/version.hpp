// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

// The one source of the version: CMakeLists.txt reads these three lines.
#define HETPLAN_VERSION_MAJOR 0
#define HETPLAN_VERSION_MINOR 2
#define HETPLAN_VERSION_PATCH 0

#define HETPLAN_DETAIL_TEXT_OF(x) #x
#define HETPLAN_DETAIL_TEXT(x) HETPLAN_DETAIL_TEXT_OF(x)

namespace hetplan {

/// The version as text, "major.minor.patch".
inline constexpr std::string_view version = HETPLAN_DETAIL_TEXT(HETPLAN_VERSION_MAJOR) "." HETPLAN_DETAIL_TEXT(
    HETPLAN_VERSION_MINOR) "." HETPLAN_DETAIL_TEXT(HETPLAN_VERSION_PATCH);

}  // namespace hetplan

#undef HETPLAN_DETAIL_TEXT
#undef HETPLAN_DETAIL_TEXT_OF

// Header-only, or compiled. `x.hpp` declares; what is no template is defined in `x.ipp`, which `x.hpp` includes at its end
// unless HETPLAN_SEPARATE is defined: then the library hetplan::compiled holds those definitions (it also sets the macro).
//
// All parts of a program are built the same way, with the same flags. Compiled, each refers to one symbol of the library that is
// named after its version: headers of one version and a library of another do not link.

#ifdef HETPLAN_SEPARATE
/// In front of every definition in an .ipp file.
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
