// SPDX-License-Identifier: BSL-1.0
// expect: lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const
#include <hetplan/solve/lp.hpp>

struct my_solver {
  int solved = 0;
  hetplan::lp_solution solve(const hetplan::lp_problem&) {
    ++solved;
    return {};
  }
};
static_assert(hetplan::check_lp_solver<my_solver>());
