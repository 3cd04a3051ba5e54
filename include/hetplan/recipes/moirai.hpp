// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Moirai: placement of the operators of one inference on unequal devices, coarsened by a backend's fusions.

#include <utility>

#include <hetplan/place/series_schedule.hpp>
#include <hetplan/recipes/placers.hpp>

namespace hetplan::recipes {

/// Moirai: places operators that the backend fuses together first (GCOF), then single operators; the better plan is the answer (see
/// plan_placement). The search minimises the makespan by list schedules, by branch and bound over the parts between operators that all
/// others depend on or precede, and by re-placing windows. The answer includes a lower bound for schedules of single operators; if the
/// parts are small, it is mostly proven optimal.
///
/// @param given  without fusion rules, TensorRT's apply; coarsen::no_fusion() places single operators only. A linear-program solver in the
///               problem tightens the bound.
/// Source        Moirai (Zhang et al., 2023), section III and Algorithm 1. Deviations: our own searches in place of Gurobi, see
///               place::find_schedule; fused operators may be separated if that is faster; transfers share the network of the cluster,
///               where the ports of eq. 8 are contention::one_port.
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
