// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/version.hpp>

#ifdef HETPLAN_SEPARATE
namespace hetplan::detail {
const char HETPLAN_DETAIL_THIS_LIBRARY = 0;
}  // namespace hetplan::detail
#endif
