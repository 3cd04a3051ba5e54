// SPDX-License-Identifier: BSL-1.0
// expect: cell_policy needs: std::size_t capacity() const
#include <hetplan/partition/partial_store.hpp>

struct my_cells {
  int capacity() const { return 5; }
  bool covers(const hetplan::partition::partial_plan&, const hetplan::partition::partial_plan&) const { return false; }
};
static_assert(hetplan::partition::check_cell_policy<my_cells>());
