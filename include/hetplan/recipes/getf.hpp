// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GETF: a group of devices for each operator by a relaxed program, then the earliest start within it.

#include <hetplan/place/getf.hpp>
#include <hetplan/recipes/plan_placement.hpp>

namespace hetplan::recipes {

/// One inference, operator by operator; see place::getf.
///
/// Source  Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020.
///         Deviations: see place/getf.hpp.
[[nodiscard]] inline plan_result getf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  const auto search = [&problem](const place::placement_table& t, const place::placement_rules& r, long long,
                                 const place::operator_schedule&) { return place::getf(t, r, problem.lp); };
  return plan_placement(problem, objective, "getf", view, search, observer);
}

}  // namespace hetplan::recipes
