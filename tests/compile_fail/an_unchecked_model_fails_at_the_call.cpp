// SPDX-License-Identifier: BSL-1.0
// expect: cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const
#include <hetplan/simulate/evaluate.hpp>

struct my_model {
  double time(const hetplan::work& w, const hetplan::device&) const { return 1e-3 * w.batch; }
};
hetplan::judgement wrong(const hetplan::plan& p, const hetplan::planning_graph& g, const hetplan::cluster& c) {
  return hetplan::evaluate(p, g, c, my_model{});
}
