// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's largest batch is: double largest_batch(const hetplan::work&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  int largest_batch(const hetplan::work&, const hetplan::device&) const { return 8; }
};
static_assert(hetplan::check_cost_model<my_model>());
