// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A linear program as COIN-OR's libraries take it: by column, in arrays.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/solve/lp.hpp>

namespace hetplan::detail {

/// Column c has the terms start[c] up to start[c + 1]; no limit is the largest double.
template <class Index>
struct by_columns {
  std::vector<Index> start;
  std::vector<int> row;
  std::vector<double> value, column_lower, column_upper, row_lower, row_upper;

  explicit by_columns(const lp_problem& p) : start(p.objective.size() + 1, 0) {
    for (const lp_problem::row& r : p.rows) {
      for (const auto& term : r.terms) ++start[static_cast<std::size_t>(term.first) + 1];
    }
    for (std::size_t c = 0; c < p.objective.size(); ++c) start[c + 1] += start[c];
    row.resize(static_cast<std::size_t>(start.back()));
    value.resize(row.size());
    std::vector<Index> next = start;
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      for (const auto& [c, v] : p.rows[r].terms) {
        const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(c)]++);
        row[at] = static_cast<int>(r);
        value[at] = v;
      }
      row_lower.push_back(finite(p.rows[r].lower));
      row_upper.push_back(finite(p.rows[r].upper));
    }
    for (const double v : p.lower) column_lower.push_back(finite(v));
    for (const double v : p.upper) column_upper.push_back(finite(v));
  }

 private:
  static double finite(double v) {
    constexpr double most = std::numeric_limits<double>::max();
    return std::clamp(v, -most, most);
  }
};

}  // namespace hetplan::detail
