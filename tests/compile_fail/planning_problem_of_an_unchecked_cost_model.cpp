// SPDX-License-Identifier: BSL-1.0
// expect: cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_model {
  double time(const work& w, const device&) const { return 1e-3 * w.batch; }
};
planning_problem wrong(const planning_graph& g, const cluster& c) { return {g, c, my_model{}, job{.batch = 16}}; }
