// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs: the problem, the answer, and the door for solvers.

#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan {

/// minimise objective . x  subject to  row.lower <= row . x <= row.upper,  lower <= x <= upper; sparse rows.
struct lp_problem {
  struct row {
    std::vector<std::pair<int, double>> terms;  ///< (column, coefficient), each column at most once
    double lower = -std::numeric_limits<double>::infinity();
    double upper = std::numeric_limits<double>::infinity();
  };
  std::vector<double> objective;
  std::vector<double> lower;  ///< by column
  std::vector<double> upper;
  std::vector<row> rows;

  /// Adds a column; its index.
  int add_column(double cost, double low = 0, double high = std::numeric_limits<double>::infinity()) {
    objective.push_back(cost);
    lower.push_back(low);
    upper.push_back(high);
    return static_cast<int>(objective.size()) - 1;
  }
};

/// `unsolved`: no answer within the solver's limits; x and duals, where present, are the last it had.
enum class lp_status { optimal, infeasible, unbounded, unsolved };

struct lp_solution {
  lp_status status = lp_status::unsolved;
  double objective = 0;
  std::vector<double> x;
  std::vector<double> row_duals;  ///< d objective / d row activity; <= 0 where an upper limit binds
};

template <class S>
concept solves_lp = requires(const S& s, const lp_problem& p) {
  { s.solve(p) } -> std::same_as<lp_solution>;  // deterministic
};
template <class S>
concept lp_solver = solves_lp<S>;

template <class S>
consteval bool check_lp_solver() {
  static_assert(solves_lp<S>, "lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const");
  return lp_solver<S>;
}

/// For those who link no solver: leaves every problem unsolved.
struct no_lp {
  [[nodiscard]] lp_solution solve(const lp_problem&) const { return {}; }
};
static_assert(check_lp_solver<no_lp>());

/// Throws invalid_input for what a solver would choke on: bad index, duplicate term, NaN, limits that no number keeps.
inline void check_lp_problem(const lp_problem& p) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t columns = p.objective.size();
  const auto fail = [](const std::string& what) { throw invalid_input("lp: " + what); };
  const auto possible = [](double low, double high) { return low <= high && low < inf && high > -inf; };
  if (p.lower.size() != columns || p.upper.size() != columns) fail("objective, lower and upper differ in length");
  for (std::size_t c = 0; c < columns; ++c) {
    if (!std::isfinite(p.objective[c])) fail("objective of column " + std::to_string(c) + " is not finite");
    if (!possible(p.lower[c], p.upper[c])) fail("no number keeps the limits of column " + std::to_string(c));
  }
  std::vector<std::size_t> seen(columns, 0);
  for (std::size_t r = 0; r < p.rows.size(); ++r) {
    if (!possible(p.rows[r].lower, p.rows[r].upper)) fail("no number keeps the limits of row " + std::to_string(r));
    for (const auto& [c, value] : p.rows[r].terms) {
      if (c < 0 || static_cast<std::size_t>(c) >= columns) fail("row " + std::to_string(r) + " names column " + std::to_string(c));
      if (!std::isfinite(value)) fail("row " + std::to_string(r) + ", column " + std::to_string(c) + " is not finite");
      if (std::exchange(seen[static_cast<std::size_t>(c)], r + 1) == r + 1) {
        fail("row " + std::to_string(r) + " names column " + std::to_string(c) + " twice");
      }
    }
  }
}

}  // namespace hetplan
