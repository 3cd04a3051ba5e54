// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/solve/milp.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan {

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
