// SPDX-License-Identifier: BSL-1.0
// expect: the optimizer step of a model in assume_si is: double optimizer_step(const hetplan::layer&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  double time(const hetplan::work& w, const hetplan::device&) const { return 1e-3 * w.batch; }
  float optimizer_step(const hetplan::layer&, const hetplan::device&) const { return 1e-3F; }
  double optimizer_step(const hetplan::layer&) const { return 1e-3; }
};
const hetplan::any_cost_model chosen = hetplan::assume_si<my_model>{};
