// SPDX-License-Identifier: BSL-1.0
// expect: milp_solver needs: hetplan::milp_solution solve(const hetplan::milp_problem&) const
#include <vector>

#include <hetplan/solve/lp.hpp>

struct my_solver {
  std::vector<double> solve(const hetplan::milp_problem& p) const { return p.relaxation.lower; }
};
static_assert(hetplan::check_milp_solver<my_solver>());
