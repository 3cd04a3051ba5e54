// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/solve/lp.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <hetplan/core/error.hpp>

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

}  // namespace hetplan
