// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Moirai: the operators of one inference on unlike devices, coarsened by a backend's fusions.

#include <utility>

#include <hetplan/place/series_schedule.hpp>
#include <hetplan/recipes/placers.hpp>

namespace hetplan::recipes {

/// Operators that the backend fuses are placed together at first (GCOF), then every operator alone; the better plan is the answer (see
/// plan_placement). A placement is searched for the smallest makespan by list schedules, by branch and bound over the parts between
/// operators that everything waits for, and by windows that are placed anew. The answer says what no schedule of single operators
/// can beat; where the parts are small, it is mostly proven optimal.
///
/// @param given  where it says nothing of fusion, TensorRT's rules hold; coarsen::no_fusion() is every operator alone. A linear-program
///               solver in the problem tightens the bound.
/// Source        Moirai (Zhang et al., 2023), section III and Algorithm 1. Deviations: Gurobi's place is taken by our own searches, see
///               place::find_schedule. Operators that were fused may be parted where that is faster. Transfers share the network of the
///               cluster; eq. 8's ports are contention::one_port.
[[nodiscard]] inline plan_result moirai(const planning_problem& problem, const any_objective& objective, const placement_view& given = {},
                                        const candidate_observer& observer = {}) {
  placement_view view = given;
  if (!view.fusion) view.fusion = coarsen::tensorrt_like();
  const auto progress = [&observer](const place::schedule_improved&) { return observer({.judged = 0, .total = 1}); };
  const auto search = [&](const place::placement_table& t, const place::placement_rules& r, long long steps,
                          place::operator_schedule known) {
    return place::find_schedule(t, r, {.steps = steps, .lp = problem.lp, .known = std::move(known)}, progress);
  };
  return plan_placement(problem, objective, "moirai", view, search, observer);
}

}  // namespace hetplan::recipes
