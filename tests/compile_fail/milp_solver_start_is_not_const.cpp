// SPDX-License-Identifier: BSL-1.0
// expect: a milp_solver's start is: hetplan::milp_solution solve(const hetplan::milp_problem&, const std::vector<double>&) const
#include <vector>

#include <hetplan/solve/lp.hpp>

struct my_solver {
  hetplan::milp_solution solve(const hetplan::milp_problem&) const { return {}; }
  hetplan::milp_solution solve(const hetplan::milp_problem&, std::vector<double>&) const { return {}; }
};
static_assert(hetplan::check_milp_solver<my_solver>());
