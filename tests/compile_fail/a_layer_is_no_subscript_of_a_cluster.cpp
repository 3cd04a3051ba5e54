// SPDX-License-Identifier: BSL-1.0
// expect: operator[]
#include <hetplan/cluster/cluster.hpp>

const hetplan::device& wrong(const hetplan::cluster& c) { return c[hetplan::layer_id(0)]; }
