// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's boundary is: hetplan::seconds boundary(const hetplan::layer&, const hetplan::layer&,
// expect: const hetplan::work_kind&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  double boundary(const hetplan::layer&, const hetplan::layer&, const hetplan::work_kind& k, const hetplan::device&) const {
    return k.batch;
  }
  double boundary(const hetplan::layer&, const hetplan::layer&, const hetplan::device&, const hetplan::work_kind& k) const {
    return 2 * k.batch;
  }
};
static_assert(hetplan::check_cost_model<my_model>());
