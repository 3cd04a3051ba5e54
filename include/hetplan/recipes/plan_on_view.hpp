// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What planners that do not ask the judge have in common: they search a view, believe their own estimate, and have one answer.

#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// How a planner searches.
struct view_search {
  std::optional<any_step_law> law = {};                     ///< what its search minimises; none: the dominant step's
  std::vector<warmup_rule> warmups = {warmup_rule::depth};  ///< the next one only where nothing fitted under those before
  schedule_kind schedule = schedule_kind::one_f_one_b;
  int largest_group = std::numeric_limits<int>::max();  ///< devices of a stage
  bool memory_first = false;                            ///< devices by memory, largest first, instead of all orders
  int k = 100;                                          ///< partial plans per cell; exact where no cell has more that matter
};

namespace detail {

/// Every layer by itself; where there are so many layers and devices that looking at each cut for each group takes more than a budget of
/// steps, or memory for what a billion stages cost, at least 60 blocks between light boundaries.
[[nodiscard]] layer_sequence affordable_row(const planning_graph& model, std::size_t devices, int largest_group, long long steps);

/// Infinite where a plan has too many tasks to be judged.
[[nodiscard]] seconds estimated_latency(const planning_problem& problem, const plan& p, const planning_graph& model,
                                        const cluster& devices);

}  // namespace detail

/// The best plan of a view by the planner's own search: exact for its estimate where k and the orders allow. Among
/// microbatch sizes it takes the one whose iteration is shortest by the dominant-step estimate, still on the view.
///
/// @param model    as the planner sees it: layers keep their numbers.
/// @param devices  as the planner sees them: devices keep theirs.
/// @param budget   is spent; when it is, the best so far is the answer.
/// @return         where nothing fits the view, what comes nearest to fitting, with the last of the planner's warm-ups.
/// Complexity      sizes x orders x partition::two_substate_dp without energy.
/// Throws          as two_substate_dp.
/// Source          ours; the planners' own papers stand in their recipes. Deviations for all of them: devices may be left out,
///                 every microbatch size of the job competes.
[[nodiscard]] plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how, step_budget& budget);

[[nodiscard]] plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how);

/// A planner's one answer, judged on the cluster as it is: none found where it breaks a limit there, memory first of all, or
/// needs a route that is missing. A device that has fewer accelerators than in the view, or a profile, which is of one
/// accelerator, splits tensors as far as it can.
///
/// @param budget  of which the choice took its part: spent, the answer is `stopped`.
[[nodiscard]] plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                       const step_budget& budget, const candidate_observer& observer = {});

[[nodiscard]] plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                       const candidate_observer& observer = {});

/// The choice of a planner on its view, judged on the cluster as it is: choose_on_view and judge_choice with one budget.
[[nodiscard]] plan_result plan_on_view(const planning_problem& problem, const any_objective& objective, const char* planner,
                                       const planning_graph& model, const cluster& devices, const view_search& how,
                                       const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/plan_on_view.ipp>
#endif
