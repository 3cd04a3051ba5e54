// SPDX-License-Identifier: BSL-1.0
// expect: lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_solver {
  lp_solution solve(const lp_problem&) { return {}; }
};
planning_problem wrong(const planning_graph& g, const cluster& c, const any_cost_model& m) { return {g, c, m, {}, {}, my_solver{}}; }
