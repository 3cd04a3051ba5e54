// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders that devices find while they run: the door for dispatch policies, the two that ship, and the run that asks them.

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

/// A task that a free device could start now: its inputs are there, and there is room for what it takes.
struct ready_task {
  phase what = phase::forward;
  stage_id stage = {};
  int microbatch = 0;
  seconds duration = {};
  bytes takes = {};     ///< when it starts
  bytes releases = {};  ///< when it ends
};

/// What a dispatch policy is asked about: a free device with something to do.
struct dispatch_view {
  device_id device;
  seconds now = {};
  bytes held = {};                         ///< weights, gradients, optimizer, and the activations of microbatches in flight
  bytes limit = {};                        ///< what it may hold; infinite: no limit
  std::span<const ready_task> ready = {};  ///< at least one; by microbatch, then stage, then F before B before W
};

/// Which ready task goes next on a free device, asked by the simulator while it runs a plan on the network as it is. `dispatch` makes a
/// plan with the orders that came out; judging that plan gives the same run.
///
/// * The answer is an index into view.ready, or nothing to wait for something else to come. A policy that leaves a device waiting for
///   ever is `invalid_input`.
/// * There is room for every ready task. Which tasks are held back so that tight memory ends in no deadlock:
///   docs/semantics.md#7-schedules.
/// * Pure: the same view gives the same answer.
///
/// Ships: `compact` (forwards, then gradients of inputs, then of weights), `eager` (gradients of inputs first).
template <class P>
concept dispatch_policy = requires(const P& p, const dispatch_view& v) {
  { p.next(v) } -> std::same_as<std::optional<std::size_t>>;
};

template <class P>
consteval bool check_dispatch_policy() {
  static_assert(dispatch_policy<P>, "dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const");
  return dispatch_policy<P>;
}

/// Forwards first, then gradients of inputs, then gradients of weights: the next device gets its work as early as possible, and weights
/// fill what bubbles are left.
///
/// Source  DeepCEE, section 3.3.1.
struct compact {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const;
};

/// Gradients of inputs first, then forwards, then gradients of weights: memory is free again as early as possible.
///
/// Source  ours. DeepCEE, section 3.3.1, describes it as earlier practice that forwards wait for gradients.
struct eager {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const;
};

static_assert(check_dispatch_policy<compact>() && check_dispatch_policy<eager>());

struct dispatch_options {
  bool split_backward = true;      ///< every backward in its two parts; false: whole
  std::vector<bytes> memory = {};  ///< by device: what it may hold; empty: the usable memory of each
};

/// Runs a plan without its orders: whenever a device is free, the policy says which of the ready tasks it takes. The network, its policy
/// and everything else are those of a judgement.
///
/// A forward is ready when there is room for what it takes, for one microbatch of each other stage of the device that has not seen this
/// microbatch yet, and for the largest recomputation of the device: so the tightest memory that is feasible ends in no deadlock where the
/// stages of a device form a chain. What happens within 1e-9 of an instant has happened before devices choose.
///
/// @param p   any plan but for generation; its own schedule does not count, explicit orders included. Transfer rules stay.
/// @return    the plan with the orders that came out, as explicit orders; judging it gives this run again.
/// Throws     invalid_input: a device has no room for one microbatch of each of its stages; the policy leaves a device waiting for ever; a
///            stage shares out gradients or weights; what `stage_costs` throws. invalid_model: the policy answers an index that is none.
/// Complexity that of a simulation, and O(ready tasks) for each choice.   Determinism  as the simulator.
/// Source     semantics, section 7.
template <class P>
[[nodiscard]] plan dispatch(plan p, const planning_problem& problem, const P& policy, const dispatch_options& options = {});

/// The plan with explicit orders that any plan can follow: all forwards, then all backwards, a microbatch after the other through the
/// stages. Whoever makes orders begins with it; a plan whose devices hold several stages cannot be looked at without some.
///
/// @return     without warm-up or a prediction; without orders where a stage names no layer, size or pipeline, for `validate` to say so.
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
