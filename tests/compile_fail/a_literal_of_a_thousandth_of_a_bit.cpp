// SPDX-License-Identifier: BSL-1.0
// expect: operator""_mbit_per_s
#include <hetplan/core/quantity.hpp>

using namespace hetplan;

const bytes_per_second slow = 600_mbit_per_s;
