// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Comparison of several planners on one problem.

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// A planner with a name for its row: a recipe, or any callable of problem and objective.
struct named_planner {
  using recipe = plan_result (*)(const planning_problem&, const any_objective&, int keep, const candidate_observer&);

  std::string name;
  std::function<plan_result(const planning_problem&, const any_objective&)> plan;

  named_planner(std::string n, recipe r) : name(std::move(n)) {
    if (r != nullptr) plan = [r](const planning_problem& p, const any_objective& o) { return r(p, o, 1, {}); };
  }
  template <class P>
  named_planner(std::string n, P p) : name(std::move(n)) {
    constexpr bool plans = std::is_invocable_r_v<plan_result, const P&, const planning_problem&, const any_objective&>;
    static_assert(plans,
                  "compare needs: hetplan::plan_result operator()(const hetplan::planning_problem&, const hetplan::any_objective&) const");
    if constexpr (plans) plan = std::move(p);
  }
};

/// Result of one planner, with its score.
struct comparison {
  std::string planner;
  plan_result result;
  double score = 0;  ///< score of the best plan; infinite without a plan
  double ratio = 0;  ///< score / least score of all; 1 for the best, NaN unless the least score is positive and finite
};

/// Returns every planner's result, in the given order.
///
///     const auto rows = recipes::compare(problem, minimize_latency{}, {{"pipeline", recipes::pipeline}, {"dora", recipes::dora}});
///     std::cout << recipes::to_table(rows);
///
/// Complexity   the sum of the planners'.
/// Throws       invalid_input (a planner is empty); invalid_model (a score is NaN); as the planners.
/// Determinism  as the planners, except for `elapsed`.
/// Source       our own.
[[nodiscard]] std::vector<comparison> compare(const planning_problem& problem, const any_objective& objective,
                                              const std::vector<named_planner>& planners);

/// Returns an aligned table with a line per planner: latency, energy, ratio, candidates, elapsed, or the reason for having no plan.
[[nodiscard]] std::string to_table(const std::vector<comparison>& rows);

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/compare.ipp>
#endif
