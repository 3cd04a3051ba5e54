// SPDX-License-Identifier: BSL-1.0
// expect: cell_policy needs: bool covers(const partial_plan& kept, const partial_plan& other) const
#include <hetplan/partition/partial_store.hpp>

struct my_cells {
  std::size_t capacity() const { return 5; }
  int covers(const hetplan::partition::partial_plan&, const hetplan::partition::partial_plan&) const { return 0; }
};
static_assert(hetplan::partition::check_cell_policy<my_cells>());
