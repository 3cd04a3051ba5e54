// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dispatch of ready tasks during a simulation: the concept, the two policies that ship, and the run that asks them.

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// A task that a free device could start now: its inputs have arrived, and it fits into memory.
struct ready_task {
  phase what = phase::forward;
  stage_id stage = {};
  int microbatch = 0;
  seconds duration = {};
  bytes takes = {};     ///< memory taken when it starts
  bytes releases = {};  ///< memory freed when it ends
};

/// State of a free device with ready tasks, as a dispatch policy sees it.
struct dispatch_view {
  device_id device;
  seconds now = {};
  bytes held = {};                         ///< weights, gradients, optimizer state, and activations of microbatches in flight
  bytes limit = {};                        ///< memory limit; infinite if there is none
  std::span<const ready_task> ready = {};  ///< at least one task, by microbatch, then stage, then F before B before W
};

/// Dispatch policy: chooses the next task of a free device among its ready tasks, while the simulator runs a plan on its network.
/// `dispatch` makes a plan with the resulting orders; judging that plan gives the same run.
///
/// * `next` returns an index into `v.ready`, or nothing to wait. A policy that leaves a device waiting forever is `invalid_input`.
/// * Every ready task fits into memory. Rules that hold tasks back, so that tight memory causes no deadlock:
///   docs/semantics.md#7-schedules.
/// * Pure: the same view gives the same answer.
///
/// Ships: `compact` (forwards, then input gradients, then weight gradients), `eager` (input gradients first).
template <class P>
concept dispatch_policy = requires(const P& p, const dispatch_view& v) {
  { p.next(v) } -> std::same_as<std::optional<std::size_t>>;
};

template <class P>
consteval bool check_dispatch_policy() {
  static_assert(dispatch_policy<P>, "dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const");
  return dispatch_policy<P>;
}

/// Forwards first, then input gradients: the next device gets its work as early as possible. Weight gradients fill the bubbles left.
/// Source  DeepCEE, section 3.3.1.
struct compact {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const;
};

/// Input gradients first, then forwards, then weight gradients: memory is freed as early as possible.
/// Source  ours. DeepCEE, section 3.3.1, describes forwards that wait for gradients as earlier practice.
struct eager {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const;
};

static_assert(check_dispatch_policy<compact>() && check_dispatch_policy<eager>());

struct dispatch_options {
  bool split_backward = true;      ///< true: every backward in two parts; false: whole
  std::vector<bytes> memory = {};  ///< limits by device; empty: the usable memory of each
};

/// Runs a plan without its orders: whenever a device is free, the policy chooses one of its ready tasks. All else is as in `judge`.
///
/// A forward is ready if memory has room for it, for one microbatch of each other stage of the device that has not seen this microbatch,
/// and for the device's largest recomputation. So the tightest feasible memory causes no deadlock if the stages of a device form a chain.
/// Everything within 1e-9 of an instant happens before devices choose.
///
/// @param p   any plan except for generation; its own schedule is ignored, explicit orders included. Transfer rules stay.
/// @return    the plan with the resulting explicit orders; judging it gives this run again.
/// Throws     invalid_input: a device has no room for one microbatch of each of its stages; the policy leaves a device waiting forever; a
///            stage shares out gradients or weights; exceptions of `stage_costs`. invalid_model: the policy returns an index out of range.
/// Complexity that of a simulation, and O(ready tasks) for each choice.   Determinism  as the simulator.
/// Source     semantics, section 7.
template <class P>
[[nodiscard]] plan dispatch(plan p, const planning_problem& problem, const P& policy, const dispatch_options& options = {});

/// Returns the plan with explicit orders that any plan can follow: all forwards, then all backwards, one microbatch after another through
/// the stages. Rules for orders start from it, since a plan with several stages on a device needs some orders to be expanded.
///
/// @return     without warm-up; without orders if a stage names no layer, size or pipeline, which `validate` reports.
/// Complexity  O(n log n) for n passes of all stages, beside the stage graph.
[[nodiscard]] plan with_any_orders(plan p, const planning_problem& problem);

namespace detail {
using dispatch_rule = std::function<std::optional<std::size_t>(const dispatch_view&)>;
[[nodiscard]] plan dispatch_by(plan p, const planning_problem& problem, const dispatch_rule& rule, const dispatch_options& options);
}  // namespace detail

template <class P>
plan dispatch(plan p, const planning_problem& problem, const P& policy, const dispatch_options& options) {
  static_assert(check_dispatch_policy<P>());
  return detail::dispatch_by(
      std::move(p), problem, [&policy](const dispatch_view& v) { return policy.next(v); }, options);
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/dispatch.ipp>
#endif
