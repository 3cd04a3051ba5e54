// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planners that search a view of the problem, trust their own estimate, and return one plan.

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

/// Search options of a planner on a view.
struct view_search {
  std::optional<any_step_law> law = {};                     ///< step law to minimise; none: the mode's dominant-step law
  std::vector<warmup_rule> warmups = {warmup_rule::depth};  ///< each one is tried only if nothing fits under those before
  schedule_kind schedule = schedule_kind::one_f_one_b;
  int largest_group = std::numeric_limits<int>::max();  ///< maximum number of devices per stage
  bool memory_first = false;                            ///< true for one device order, largest memory first; false for all orders
  int k = 100;                                          ///< partial plans per cell; exact if no cell has more that matter
};

namespace detail {

/// Returns single layers, or at least 60 blocks between light boundaries if a search over every cut and group would exceed the budget of
/// steps, or memory for the costs of four million stages.
[[nodiscard]] layer_sequence affordable_row(const planning_graph& model, std::size_t devices, int largest_group, long long steps);

/// Returns the estimate; infinite if the plan has too many tasks to be judged.
[[nodiscard]] seconds estimated_latency(const planning_problem& problem, const plan& p, const planning_graph& model,
                                        const cluster& devices);

}  // namespace detail

/// Returns the best plan of a view by the planner's own search, exact for its estimate as far as k and the orders allow. Among microbatch
/// sizes, the plan with the shortest iteration by the dominant-step estimate on the view is chosen.
///
/// @param model    the planner's view of the model; ids of layers are kept.
/// @param devices  the planner's view of the cluster; ids of devices are kept.
/// @param budget   is spent; the best plan so far is returned when it is exhausted.
/// @return         if nothing fits the view, the nearest plan, with the last of the planner's warm-ups.
/// Complexity      sizes x orders x partition::two_substate_dp without energy.
/// Throws          as two_substate_dp.
/// Source          ours; each recipe cites its planner's paper. Deviations of all of them: devices may be left out, and every microbatch
///                 size of the job competes.
[[nodiscard]] plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how, step_budget& budget);

[[nodiscard]] plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how);

/// Judges a planner's one plan on the cluster as it is: none_found if it breaks a limit there, above all memory, or needs a missing route.
/// A device with fewer accelerators than in the view, or with a profile, which is of one accelerator, splits tensors as far as it can.
///
/// @param budget  rest of the budget after the choice; if spent, the answer is `stopped`.
[[nodiscard]] plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                       const step_budget& budget, const candidate_observer& observer = {});

[[nodiscard]] plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                       const candidate_observer& observer = {});

/// Judges the choice of a planner on its view on the cluster as it is: choose_on_view and judge_choice with one budget.
[[nodiscard]] plan_result plan_on_view(const planning_problem& problem, const any_objective& objective, const char* planner,
                                       const planning_graph& model, const cluster& devices, const view_search& how,
                                       const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/plan_on_view.ipp>
#endif
