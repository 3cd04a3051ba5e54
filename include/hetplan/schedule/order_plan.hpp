// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipeline schedules for plans: the concept, the schedules that ship by name, and the best of several.

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/pipeline_times.hpp>
#include <hetplan/simulate/dispatch.hpp>

namespace hetplan::partition {

// Pipelines cut anew into several stages per device, for schedules that need them.

/// Returns a pipeline of single devices, cut anew into a V: of n devices the first has stages 0 and 2n - 1. The longest stage, or boundary
/// at peak bandwidth, is as short as possible. Up to three such cuts have small first stages, the shortest path of a microbatch, and even
/// stages. Memory and latencies are ignored.
///
/// @return      plans without warm-up or transfer rules, for which the caller makes orders; none if the plan is not a pipeline
///              of single devices with one stage each, has one device, or has fewer places to cut than stages.
/// Complexity   O(n L^2) for L layers; models of more than 512 layers are cut at light boundaries alone, and L is their number.
/// Throws       invalid_model of the cost and memory models.   Determinism  yes.
/// Source       Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3; the cut is ours.
[[nodiscard]] std::vector<plan> in_a_v(const plan& p, const planning_problem& problem);

/// Returns a pipeline of single devices, cut anew into interleaved stages: of n devices the first has stages 0, n, 2n, ...
///
/// @param chunks  stages per device.
/// @return        as in_a_v; none for chunks < 1.
/// Complexity     O(chunks n L^2).   Throws, Determinism  as in_a_v.
/// Source         Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2; the cut is ours.
[[nodiscard]] std::vector<plan> in_turns(const plan& p, const planning_problem& problem, std::size_t chunks = 2);

namespace detail {
/// Returns the devices of a plan that is a pipeline of single devices with one stage each; empty for other plans.
[[nodiscard]] std::vector<device_id> devices_in_line(const plan& p);
}  // namespace detail

}  // namespace hetplan::partition

namespace hetplan::schedule {

/// Pipeline schedule: derives explicit device orders for the pipeline of a plan from a table of its times. The orders are stored in the
/// plan's file, so that any executor can run them. Pure.
///
/// * Orders are by device of the table, and entries name stages of the table. A replicated stage counts as one device. A stage with a
///   `backward_weight` entry has a split backward.
/// * `order_plan` makes a plan with the orders. `recipes::dora` tries the schedules in `dora_options::schedules`, and the simulator judges
///   the plans. Each is a `named_schedule`: a schedule or `dispatch_policy` with a name and a stage shape. For `stage_shape::v` and
///   `turns` pipelines are cut anew, so that devices have several stages.
/// * A plan with several pipelines, or with stages that share only some of their devices, has no table: `invalid_input`. A schedule may
///   throw the same for a table that it cannot order; a search skips such a plan. Orders that no run can follow are `invalid_model`.
///
/// Ships, by name in `job::orders` and `--schedule`: `compact`, `eager` (dispatch policies), `original` (the zero-bubble scheduler's
/// rounds), `automatic` (a search), `interleaved`, `zb-v`, `v-half`, `v-min`. `choose_orders` applies each of them to plans and keeps the
/// best. How to: docs/how-to/order-a-pipeline.md.
///
/// Source  DeepCEE, section 3.3.1: orders as a part of the plan.
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

/// Table of a plan for schedules: seconds and memory of one microbatch by stage, delays at peak bandwidth. A replicated stage, or a grid,
/// counts as one device with the times of its slowest device and the memory of the device with the least room.
struct plan_table {
  pipeline_times times;
  std::vector<std::vector<device_id>> devices;  ///< by device of the table: the cluster's devices that run its order
};

/// Returns the table of a plan for training, with its stages in topological order.
///
/// @param memory  limits by device of the cluster; empty: the usable memory of each.
/// @return        memory in bytes if a device works alone, else in parts of the room left on it.
/// Throws         invalid_input if the plan is not for training, has several pipelines, microbatch sizes or cuts, or stages that share
///                only some of their devices, or if a device has no room for one microbatch of each of its stages. missing_route if two
///                stages exchange data and their devices lack a route in one direction.
/// Complexity     O(stages * devices of a stage), and for each edge the devices of the one stage times those of the other.
/// Determinism    yes.   Source  semantics, section 7.
[[nodiscard]] plan_table table_of(const stage_costs& s, const std::vector<bytes>& memory = {});

/// Returns a plan for training with the explicit orders of a schedule instead of its own. Transfer rules stay.
///
/// @param memory  limits in the schedule's table; the orders need not keep them.
/// Throws         invalid_input as table_of; exceptions of the schedule, of which invalid_input means that it cannot order the table;
///                invalid_model, with the device and entry at fault, if no run can follow the orders.
/// Complexity     that of `stage_costs`, table_of and the schedule.   Determinism  as the schedule.
template <class S>
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, const S& schedule, const std::vector<bytes>& memory = {});

/// Returns a plan for training with the orders of a named rule. `compact` and `eager` are dispatched in a simulation on the plan's
/// network; the other rules use its table.
///
/// @param options  `split_backward` applies to dispatched rules only, `memory` to all.
/// @param steps    of `automatic` alone: see automatic_options.
/// Throws          invalid_input as above, and if stages are not placed as the rule needs (interleaved, V shapes).
/// Complexity      a simulation for dispatched rules; for others see their headers.   Determinism  yes.
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, order_rule rule, const dispatch_options& options = {},
                              long long steps = 2'000'000);

/// Placement of stages that a schedule needs; pipelines with one stage per device are cut anew for `v` and `turns`.
enum class stage_shape { as_they_are, v, turns };

/// A schedule or dispatch policy with a name and a stage shape.
struct named_schedule {
  std::string name;                                          ///< appended to the planner's name: "dora, compact"
  std::function<plan(plan, const planning_problem&)> order;  ///< returns the plan with explicit orders; throws invalid_input if it cannot
  stage_shape shape = stage_shape::as_they_are;
  std::size_t chunks = 2;  ///< stages per device for `turns`

  template <class S>
  named_schedule(std::string n, S s, stage_shape wanted = stage_shape::as_they_are, std::size_t stages = 2)
      : name(std::move(n)), order(ordered_by(std::move(s))), shape(wanted), chunks(stages) {}
  /// A schedule that ships, with its own name and shape.
  explicit named_schedule(order_rule rule);

 private:
  template <class S>
  static auto ordered_by(S s) {
    if constexpr (dispatch_policy<S> || requires { &S::next; }) {
      static_assert(check_dispatch_policy<S>());
      return [s = std::move(s)](plan p, const planning_problem& problem) { return dispatch(std::move(p), problem, s); };
    } else {
      static_assert(check_pipeline_schedule<S>());
      return [s = std::move(s)](plan p, const planning_problem& problem) { return order_plan(std::move(p), problem, s); };
    }
  }
};

/// Returns the best of the given plans and of these plans under the orders of each rule in the job and of each user schedule, as judged.
/// If the job wants only such orders, the given plans themselves do not compete. For V shapes and interleaved orders pipelines of single
/// devices are cut anew, short ones first. Plans that a schedule cannot order are skipped; status.reason says why if a user schedule
/// ordered none.
///
/// @param found  a planner's plans. Returned as they are if there are no schedules or no plans, and outside training.
/// @param own    user schedules.
/// @return       at most `keep` plans, the best first, named after planner and schedule.
/// Throws        invalid_model: a user schedule gave only orders that no run can follow; invalid_input: only_orders without schedules,
///               keep < 1.
/// Complexity    an order and a judgement per plan and rule, within the problem's steps; `automatic` for the best max(6, keep) plans.
/// Determinism   yes, but for `elapsed`.   Source  semantics, section 7.
[[nodiscard]] plan_result choose_orders(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                        const candidate_observer& observer = {}, const std::vector<named_schedule>& own = {});

namespace detail {

/// Gives orders to plans in training that nobody has judged. The plans of `found` compete as they are; so do its status and counts.
[[nodiscard]] plan_result order_all(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& plans,
                                    plan_result found, int keep, const candidate_observer& observer,
                                    const std::vector<named_schedule>& own = {});

using orders_of_table = std::function<orders_by_device(const pipeline_times&)>;
[[nodiscard]] plan order_plan_by(plan p, const planning_problem& problem, const orders_of_table& orders, const std::vector<bytes>& memory);
}  // namespace detail

template <class S>
plan order_plan(plan p, const planning_problem& problem, const S& schedule, const std::vector<bytes>& memory) {
  static_assert(check_pipeline_schedule<S>());
  return detail::order_plan_by(
      std::move(p), problem, [&schedule](const pipeline_times& t) { return schedule.orders(t); }, memory);
}

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/order_plan.ipp>
#endif
