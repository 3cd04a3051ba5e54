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
