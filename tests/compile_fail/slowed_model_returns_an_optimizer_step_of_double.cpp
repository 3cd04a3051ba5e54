// SPDX-License-Identifier: BSL-1.0
// expect: a cost_model's optimizer step is: hetplan::seconds optimizer_step(const hetplan::layer&, const hetplan::device&) const
#include <hetplan/cost/cost_model.hpp>

struct my_model {
  hetplan::seconds time(const hetplan::work& w, const hetplan::device&) const { return hetplan::seconds(1e-3 * w.batch); }
  double optimizer_step(const hetplan::layer& l, const hetplan::device&) const { return 1e-9 * l.weight.value(); }
};
const auto half = hetplan::slow_down(my_model{}, {0.5});
