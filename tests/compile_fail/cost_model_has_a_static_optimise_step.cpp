// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's optional member is called optimizer_step; this model has one of nearly that name
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  static hetplan::seconds optimize_step(const hetplan::layer& l, const hetplan::device&) {
    return hetplan::seconds(1e-9 * l.weight.value());
  }
};
static_assert(hetplan::check_cost_model<my_model>());
