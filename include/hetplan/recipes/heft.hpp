// SPDX-License-Identifier: BSL-1.0
#pragma once
/// HEFT: operators by upward rank, each on the device where it ends first.

#include <hetplan/place/heft.hpp>
#include <hetplan/recipes/plan_placement.hpp>

namespace hetplan::recipes {

/// One inference, operator by operator; see place::heft.
///
/// Source  Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling", TPDS 2002. Deviations: memory, and
///         transfers that contend.
[[nodiscard]] inline plan_result heft(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  const auto search = [](const place::placement_table& t, const place::placement_rules& r, long long, const place::operator_schedule&) {
    return place::heft(t, r);
  };
  return plan_placement(problem, objective, "heft", view, search, observer);
}

}  // namespace hetplan::recipes
