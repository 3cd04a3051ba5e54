// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Header-only, or compiled. `x.hpp` declares; what is no template is defined in `x.ipp`, which `x.hpp` includes at its end
/// unless HETPLAN_COMPILED is defined: then the library hetplan::compiled holds those definitions (it also sets the macro).
///
/// All parts of a program are built the same way, with the same flags. Compiled, each refers to one symbol of the library that is
/// named after its version: headers of one version and a library of another do not link.

#include <hetplan/core/version.hpp>

#ifdef HETPLAN_COMPILED
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

#ifndef HETPLAN_COMPILED
#include <hetplan/core/linkage.ipp>
#endif
