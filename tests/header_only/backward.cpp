// SPDX-License-Identifier: BSL-1.0
#include "all_backward.hpp"

#include <hetplan/hetplan.hpp>

const void* version_seen_backward();
const void* version_seen_backward() { return &hetplan::version; }
