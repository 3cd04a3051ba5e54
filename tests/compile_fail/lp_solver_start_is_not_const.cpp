// SPDX-License-Identifier: BSL-1.0
// expect: an lp_solver's warm start is: hetplan::lp_solution solve(const hetplan::lp_problem&, const hetplan::lp_basis&) const
#include <hetplan/solve/lp.hpp>

struct my_solver {
  hetplan::lp_solution solve(const hetplan::lp_problem&) const { return {}; }
  hetplan::lp_solution solve(const hetplan::lp_problem&, hetplan::lp_basis&) const { return {}; }
};
static_assert(hetplan::check_lp_solver<my_solver>());
