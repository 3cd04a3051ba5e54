// SPDX-License-Identifier: BSL-1.0
// expect: the boundary of a model in assume_si is: double boundary(const hetplan::layer&, const hetplan::layer&,
// expect: const hetplan::work_kind&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  double time(const hetplan::work& w, const hetplan::device&) const { return 1e-3 * w.batch; }
  hetplan::seconds boundary(const hetplan::layer&, const hetplan::layer&, const hetplan::work_kind&, const hetplan::device&) const {
    return {};
  }
};
const hetplan::any_cost_model chosen = hetplan::assume_si<my_model>{};
