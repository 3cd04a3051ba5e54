// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/solve/lp.hpp>

#include <string>

namespace hetplan {

HETPLAN_INLINE int lp_problem::add_column(double cost, double low, double high) {
  objective.push_back(cost);
  lower.push_back(low);
  upper.push_back(high);
  return static_cast<int>(objective.size()) - 1;
}

HETPLAN_INLINE void check_lp_problem(const lp_problem& p) {
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

HETPLAN_INLINE bool could_be_basis(const lp_basis& b, const lp_problem& p) {
  const auto basic = std::ranges::count(b.columns, lp_position::basic) + std::ranges::count(b.rows, lp_position::basic);
  return b.columns.size() == p.objective.size() && b.rows.size() == p.rows.size() && static_cast<std::size_t>(basic) == p.rows.size();
}

HETPLAN_INLINE void check_milp_problem(const milp_problem& p) {
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

HETPLAN_INLINE bool round_limits(milp_problem& p) {
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

HETPLAN_INLINE milp_solution to_milp(lp_solution&& s) {
  switch (s.status) {
    case lp_status::optimal:
      return {.status = milp_status::optimal, .objective = s.objective, .bound = s.objective, .x = std::move(s.x), .nodes = 1};
    case lp_status::infeasible: return {.status = milp_status::infeasible};
    case lp_status::unbounded: return {.status = milp_status::unbounded};
    default: return {};
  }
}

HETPLAN_INLINE bool could_start(const milp_problem& p, const std::vector<double>& start) {
  if (p.integers.empty() || start.size() != p.relaxation.objective.size()) return false;
  return std::all_of(p.integers.begin(), p.integers.end(), [&](int column) {
    const auto c = static_cast<std::size_t>(column);
    const double x = std::round(start[c]);
    return std::isfinite(x) && p.relaxation.lower[c] <= x && x <= p.relaxation.upper[c];
  });
}

HETPLAN_INLINE milp_solution no_worse_than(milp_solution begun, milp_solution s) {
  if (begun.x.empty() || s.status == milp_status::unbounded) return s;
  const double rounding = s.status == milp_status::optimal ? 1e-6 * (1 + std::abs(begun.objective)) : 0;
  if (!s.x.empty() && s.objective <= begun.objective + rounding) return s;
  if (s.status != milp_status::infeasible) begun.bound = std::min(begun.objective, s.bound);
  begun.nodes = s.nodes;
  return begun;
}

HETPLAN_INLINE seconds time_left::operator()() const { return seconds(std::max(0.0, limit_.value() - clock_.elapsed_s())); }

}  // namespace detail

}  // namespace hetplan
