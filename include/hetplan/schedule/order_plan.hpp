// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedules for plans: the door for those of one's own, the ones that ship by name, and the best of several.

#include <concepts>
#include <functional>
#include <utility>

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/staged.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/pipeline_times.hpp>
#include <hetplan/simulate/dispatch.hpp>

namespace HETPLAN_NAMESPACE::schedule {

/// The door: orders for a pipeline, by device of the table. Entries name stages of the table; a stage with a backward_weight entry has its
/// backward split. Pure.
template <class S>
concept pipeline_schedule = requires(const S& s, const pipeline_times& p) {
  { s.orders(p) } -> std::same_as<orders_by_device>;
};

template <class S>
consteval bool check_pipeline_schedule() {
  static_assert(pipeline_schedule<S>,
                "pipeline_schedule needs: hetplan::schedule::orders_by_device orders(const hetplan::schedule::pipeline_times&) const");
  return pipeline_schedule<S>;
}

/// What a plan looks like to a schedule: seconds of one microbatch, bytes, delays at peak bandwidth. A replicated stage, or a grid, is a
/// device of its own kind: its slowest device's times, and the memory of the one with the least room for it.
struct plan_table {
  pipeline_times times;
  std::vector<std::vector<device_id>> devices;  ///< by device of the table: those of the cluster that work in its order
};

/// @param memory  by device of the cluster: what it may hold; empty: the usable memory of each.
/// Throws  invalid_input: several pipelines, microbatch sizes or cuts, or stages that share some of their devices: they have no table; a
///         device has no room for one microbatch of each of its stages.
[[nodiscard]] plan_table table_of(const staged& s, const std::vector<bytes>& memory = {});

/// A plan for training with the orders of a schedule as its explicit orders. Its own orders do not count; transfer rules stay.
///
/// Throws  as table_of; what `staged` throws of the plan with those orders, with the device or task at fault.
template <pipeline_schedule S>
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, const S& schedule, const std::vector<bytes>& memory = {});

/// The same by name. `compact` and `eager` are dispatched while the plan is simulated, on the network as it is; the others make orders from
/// its table.
///
/// @param steps  that `automatic` may take, about.
/// Throws  invalid_input as above, and where the stages are not placed as the rule needs (interleaved, V shapes).
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, order_rule rule, const dispatch_options& options = {},
                              long long steps = 2'000'000);

/// Plans with the orders of each rule that the job allows, judged, beside the plans themselves unless the job wants those orders only. Rules
/// that a plan is not placed for are passed over.
///
/// @param found  a planner's plans with predictions; where the job names no rules they are the answer.
/// Complexity    an order and a judgement for each plan and rule; `automatic` for the few plans that are best with the others.
[[nodiscard]] plan_result choose_orders(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                        const candidate_observer& observer = {});

namespace detail {
using orders_of_table = std::function<orders_by_device(const pipeline_times&)>;
[[nodiscard]] plan order_plan_by(plan p, const planning_problem& problem, const orders_of_table& orders, const std::vector<bytes>& memory);
}  // namespace detail

template <pipeline_schedule S>
plan order_plan(plan p, const planning_problem& problem, const S& schedule, const std::vector<bytes>& memory) {
  static_assert(check_pipeline_schedule<S>());
  return detail::order_plan_by(std::move(p), problem, [&schedule](const pipeline_times& t) { return schedule.orders(t); }, memory);
}

}  // namespace HETPLAN_NAMESPACE::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_plan.ipp>
#endif
