// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedules for plans: the door for those of one's own, the ones that ship by name, and the best of several.

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

// A pipeline cut anew so that each of its devices has several stages: for schedules that need them.

/// The devices of a pipeline of single devices, a stage each, in the same order and back again: of n devices the first has stages 0 and
/// 2n - 1. The longest stage, or boundary at peak bandwidth, is as short as possible, and there are up to three such cuts: with small
/// stages in front, with the shortest way of a microbatch through all of them, and with even ones. Memory and latencies play no part.
///
/// @return      plans without warm-up, transfer rules or prediction, whose orders somebody must make; none for another plan,
///              one device, or fewer places to cut than stages.
/// Complexity   O(n L^2) for L layers; models of more than 512 are cut at light boundaries alone, and L is their number.
/// Throws       what the cost and memory models may (invalid_model).   Determinism  yes.
/// Source       Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3; the cut is ours.
[[nodiscard]] std::vector<plan> in_a_v(const plan& p, const planning_problem& problem);

/// The same devices in the same order, `chunks` times one behind the other: of n devices the first has stages 0, n, 2n, ...
///
/// @param chunks  stages of a device.
/// @return        as in_a_v; none for chunks < 1.
/// Complexity     O(chunks n L^2).   Throws, Determinism  as in_a_v.
/// Source         Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2; the cut is ours.
[[nodiscard]] std::vector<plan> in_turns(const plan& p, const planning_problem& problem, std::size_t chunks = 2);

namespace detail {
/// The devices of a plan that is a pipeline of single devices, a stage each; none for another plan.
[[nodiscard]] std::vector<device_id> devices_in_line(const plan& p);
}  // namespace detail

}  // namespace hetplan::partition

namespace hetplan::schedule {

/// Which device runs what in which order: explicit orders for the pipeline of a plan, made of its times, so that they stand in the plan's
/// file and anybody can run them. Pure.
///
/// * Orders are by device of the table; entries name stages of the table. A stage with replicas is a device of the table like any other.
///   A stage with a `backward_weight` entry has its backward split.
/// * `order_plan` makes a plan with the orders. `recipes::dora` tries those in `dora_options::schedules`, and the simulator judges them:
///   each a `named_schedule`, a schedule or `dispatch_policy` with a name and the shape that it wants. `stage_shape::v` and `turns` cut a
///   pipeline anew where a schedule needs devices with several stages.
/// * A plan of several pipelines, or of stages that share some of their devices, has no table: `invalid_input`. A schedule may throw
///   that, too, where it has no orders for a table; a search passes over such a plan. Orders that no run can follow are `invalid_model`.
///
/// Ships, by name in `job::orders` and `--schedule`: `compact`, `eager` (dispatch policies), `original` (the rounds of zero bubble's
/// scheduler), `automatic` (a search), `interleaved`, `zb-v`, `v-half`, `v-min`. `choose_orders` gives plans the orders of each and keeps
/// the best. How to: docs/how-to/order-a-pipeline.md.
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

/// What a plan looks like to a schedule: seconds of one microbatch, bytes, delays at peak bandwidth. A replicated stage, or a grid, is a
/// device of its own kind: its slowest device's times, and the memory of the one with the least room for it.
struct plan_table {
  pipeline_times times;
  std::vector<std::vector<device_id>> devices;  ///< by device of the table: those of the cluster that work in its order
};

/// @param memory  by device of the cluster: what it may hold; empty: the usable memory of each.
/// @return        stages in topological order. Memory is in bytes where a device works alone, else in parts of the room that is left.
/// Throws         invalid_input: a plan not for training, with several pipelines, microbatch sizes or cuts, or with stages that share some
///                of their devices: they have no table; a device has no room for one microbatch of each of its stages. missing_route: two
///                stages exchange data, but their devices have no route both ways.
/// Complexity     O(stages * devices of a stage), and for each edge the devices of the one stage times those of the other.
/// Determinism    yes.   Source  semantics, section 7.
[[nodiscard]] plan_table table_of(const stage_costs& s, const std::vector<bytes>& memory = {});

/// A plan for training with the orders of a schedule as its explicit orders. Its own orders do not count; transfer rules stay.
///
/// @param memory  what the schedule is told; the orders need not keep it.
/// @return        the plan without a prediction.
/// Throws         invalid_input as table_of; what the schedule throws, which says by invalid_input that it has no orders for such a table.
///                invalid_model: no run can follow the orders, with the device and entry at fault.
/// Complexity     that of `stage_costs`, table_of and the schedule.   Determinism  as the schedule.
template <class S>
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, const S& schedule, const std::vector<bytes>& memory = {});

/// The same by name. `compact` and `eager` are dispatched while the plan is simulated, on the network as it is; the others make orders from
/// its table.
///
/// @param options  `split_backward` is of dispatched rules only; of the others each decides. `memory` is of all.
/// @param steps    of `automatic` alone: tasks given out or replayed, about at most (automatic_options).
/// Throws          invalid_input as above, and where the stages are not placed as the rule needs (interleaved, V shapes).
/// Complexity      of a dispatched rule that of a simulation, of the others that of their headers.   Determinism  yes.
[[nodiscard]] plan order_plan(plan p, const planning_problem& problem, order_rule rule, const dispatch_options& options = {},
                              long long steps = 2'000'000);

/// What stages a schedule wants where a plan has one on each device.
enum class stage_shape { as_they_are, v, turns };

/// A schedule and what it is called: one of one's own, of a table or a dispatch policy.
struct named_schedule {
  std::string name;                                          ///< stands behind the planner's: "dora, compact"
  std::function<plan(plan, const planning_problem&)> order;  ///< the plan with explicit orders; invalid_input: it cannot order this one
  stage_shape shape = stage_shape::as_they_are;  ///< v, turns: pipelines of single devices are cut anew (schedule/order_plan.hpp)
  std::size_t chunks = 2;                        ///< turns: stages of a device

  template <class S>
  named_schedule(std::string n, S s, stage_shape wanted = stage_shape::as_they_are, std::size_t stages = 2)
      : name(std::move(n)), order(ordered_by(std::move(s))), shape(wanted), chunks(stages) {}
  /// One that ships, under its name, with the shape that it wants.
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

/// Plans with the orders of each rule that the job allows and of one's own schedules, judged, beside the plans themselves unless the job
/// wants those orders only. For V shapes and interleaved orders pipelines of single devices are cut anew, short ones first; what a schedule
/// cannot order is passed over. Of one of one's own that ordered no plan the answer's status.reason says why.
///
/// @param found  a planner's plans, with predictions unless the job wants orders alone. They are the answer where there are no
///               schedules, no plans, and outside training.
/// @return       at most `keep`, the best first; a plan names its schedule behind its planner.
/// Throws        invalid_model: a schedule of one's own gave orders that no run can follow, and none of a plan that one can;
///               invalid_input: only_orders, and no schedule; keep < 1.
/// Complexity    an order and a judgement for each plan and rule, within the problem's steps; `automatic` for the few plans that are best
///               with the others: six, or `keep`.
/// Determinism   yes, but for `elapsed`.   Source  semantics, section 7.
[[nodiscard]] plan_result choose_orders(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                        const candidate_observer& observer = {}, const std::vector<named_schedule>& own = {});

namespace detail {
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
