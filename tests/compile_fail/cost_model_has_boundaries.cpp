// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's optional member is called boundary; this model has one of nearly that name
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  hetplan::seconds boundaries(const hetplan::layer&, const hetplan::layer&, const hetplan::work_kind&, const hetplan::device&) const {
    return hetplan::seconds(1e-6);
  }
};
static_assert(hetplan::check_cost_model<my_model>());
