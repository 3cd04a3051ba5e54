// SPDX-License-Identifier: BSL-1.0
// expect: operand
#include <hetplan/core/quantity.hpp>

using namespace hetplan;
const auto sum = 5_ms + 3_GiB;
