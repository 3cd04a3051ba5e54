// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/compare.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/describe.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE std::vector<comparison> compare(const planning_problem& problem, const any_objective& objective,
                                               const std::vector<named_planner>& compared) {
  for (const named_planner& p : compared)
    require_function(p.plan, "compare: planner \"" + escaped(p.name) + "\"", "a planner, such as recipes::dora");
  std::vector<comparison> rows;
  double least = std::numeric_limits<double>::infinity();
  for (const named_planner& p : compared) {
    comparison row{.planner = p.name, .result = p.plan(problem, objective), .score = std::numeric_limits<double>::infinity()};
    if (!row.result.plans.empty()) row.score = hetplan::score(objective, row.result.plans.front().evaluation);
    if (std::isnan(row.score)) throw invalid_model("objective: score(the plan of " + p.name + ") = nan; expected a number");
    least = std::min(least, row.score);
    rows.push_back(std::move(row));
  }
  for (comparison& row : rows) row.ratio = least > 0 ? row.score / least : std::numeric_limits<double>::quiet_NaN();
  return rows;
}

HETPLAN_INLINE std::string to_table(const std::vector<comparison>& rows) {
  constexpr std::size_t columns = 6;
  std::vector<std::array<std::string, columns>> cells{{"planner", "latency", "energy", "ratio", "candidates", "elapsed"}};
  for (const comparison& row : rows) {
    std::array<std::string, columns>& c = cells.emplace_back();
    c[0] = escaped(row.planner);
    if (row.result.plans.empty()) continue;
    const evaluation& e = row.result.plans.front().evaluation;
    std::array<char, 32> ratio{};
    std::snprintf(ratio.data(), ratio.size(), "%.3f", row.ratio);
    c = {
        c[0], readable(e.latency), readable(e.energy()), ratio.data(), std::to_string(row.result.candidates), readable(row.result.elapsed)};
  }
  std::array<std::size_t, columns> width{};
  for (const auto& line : cells) {
    for (auto&& [w, cell] : ranges::views::zip(width, line)) w = std::max(w, cell.size());
  }
  std::string text;
  for (std::size_t l = 0; l < cells.size(); ++l) {
    const auto& line = cells[l];
    text += line[0] + std::string(width[0] - line[0].size(), ' ');
    if (l > 0 && line[1].empty()) {
      const status& s = rows[l - 1].result.status;
      text += "  " + std::string(to_string(s.result)) + ": " + escaped(s.reason);
    } else {
      for (const auto& [w, cell] : ranges::views::zip(width, line) | ranges::views::drop(1))
        text += "  " + std::string(w - cell.size(), ' ') + cell;
    }
    text += "\n";
  }
  return text;
}

}  // namespace hetplan::recipes
