// SPDX-License-Identifier: BSL-1.0
// expect: cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  int asked = 0;
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) { return hetplan::seconds(++asked * w.batch); }
};
static_assert(hetplan::check_cost_model<my_model>());
