// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Mixed-integer linear programs: the problem, the answer, and the door for solvers.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// The relaxation's problem, where the columns of `integers` take integers only.
struct milp_problem {
  lp_problem relaxation;
  std::vector<int> integers;  ///< columns, each at most once
};

/// `feasible`: a limit was hit, x is the best found so far. `unsolved`: a limit was hit and nothing found.
/// `unbounded`: the relaxation is; whether an integer solution exists at all is then left open.
enum class milp_status { optimal, feasible, infeasible, unbounded, unsolved };

struct milp_solution {
  milp_status status = milp_status::unsolved;
  double objective = 0;                                     ///< of x
  double bound = -std::numeric_limits<double>::infinity();  ///< no solution is below it; the objective where optimal
  std::vector<double> x;                                    ///< empty unless optimal or feasible; `integers` exactly so
  long long nodes = 0;                                      ///< of the search tree
};

template <class S>
concept solves_milp = requires(const S& s, const milp_problem& p) {
  { s.solve(p) } -> std::same_as<milp_solution>;  // deterministic
};
template <class S>
concept milp_solver = solves_milp<S>;

template <class S>
consteval bool check_milp_solver() {
  static_assert(solves_milp<S>, "milp_solver needs: hetplan::milp_solution solve(const hetplan::milp_problem&) const");
  return milp_solver<S>;
}

/// For those who link no solver: leaves every problem unsolved.
struct no_milp {
  [[nodiscard]] milp_solution solve(const milp_problem&) const { return {}; }
};
static_assert(check_milp_solver<no_milp>());

/// Throws invalid_input for what a solver would choke on: all that check_lp_problem finds, and integer columns that do
/// not exist or are named twice.
inline void check_milp_problem(const milp_problem& p) {
  check_lp_problem(p.relaxation);
  const std::size_t columns = p.relaxation.objective.size();
  std::vector<bool> seen(columns, false);
  for (const int c : p.integers) {
    if (c < 0 || static_cast<std::size_t>(c) >= columns) throw invalid_input("milp: integers name column " + std::to_string(c));
    if (seen[static_cast<std::size_t>(c)]) throw invalid_input("milp: integers name column " + std::to_string(c) + " twice");
    seen[static_cast<std::size_t>(c)] = true;
  }
}

namespace detail {

/// Moves the limits of integer columns inward to integers; false if that leaves one of them none. A limit that misses an
/// integer by no more than rounding counts as it.
[[nodiscard]] inline bool round_limits(milp_problem& p) {
  constexpr double rounding = 1e-9;
  bool possible = true;
  for (const int column : p.integers) {
    const auto c = static_cast<std::size_t>(column);
    double &low = p.relaxation.lower[c], &high = p.relaxation.upper[c];
    low = std::ceil(low - rounding * (1 + std::abs(low)));
    high = std::floor(high + rounding * (1 + std::abs(high)));
    possible = possible && low <= high;
  }
  return possible;
}

}  // namespace detail
}  // namespace hetplan
