// SPDX-License-Identifier: BSL-1.0
// expect: device_ordering needs: std::vector<hetplan::partition::device_space> operator()(const hetplan::partition::search_tables&, int
// largest_group) const
#include <hetplan/partition/search_tables.hpp>

using namespace hetplan;

struct my_ordering {
  partition::device_space operator()(const partition::search_tables& t, int largest_group) const {
    return partition::by_memory(t, largest_group);
  }
};
const partition::any_device_ordering ordering = my_ordering{};
