// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's optimizer step is: hetplan::seconds optimizer_step(const hetplan::layer&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  hetplan::seconds optimizer_step(hetplan::bytes b) const { return hetplan::seconds(1e-9 * b.value()); }
  hetplan::seconds optimizer_step(double b) const { return hetplan::seconds(1e-9 * b); }
};
static_assert(hetplan::check_cost_model<my_model>());
