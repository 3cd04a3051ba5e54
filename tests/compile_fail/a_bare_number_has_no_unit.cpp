// SPDX-License-Identifier: BSL-1.0
// expect: conver
// expect: double
#include <hetplan/cluster/device.hpp>

const hetplan::device d{.name = "phone", .memory = 8e9};
