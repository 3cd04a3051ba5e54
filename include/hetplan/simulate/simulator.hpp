// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The judge: runs a task graph on a network, event by event.

#include <type_traits>

#include <hetplan/simulate/event_loop.hpp>

namespace HETPLAN_NAMESPACE {

/// Runs a task graph: every device works off its order, transfers share the network as the policy says.
///
/// @param g          from tasks::expand or a task_graph_builder; every compute task is in one device's order.
/// @param net        the network whose resources the graph's routes name.
/// @param observers  called at task_ended and transfer_ended, in time order; may stop the run.
/// @return           the trace; status `stopped` if an observer said so or `until` came first. Tasks under way then count as
///                   busy and transfers as bytes as far as they came, but have no end.
/// Complexity        O(log) per event; a transfer that starts or ends costs the size of the set of transfers
///                   that its resources connect (times the number of distinct fair shares in it).
/// Throws            invalid_input if capacities change and transfers block (their time was counted into tasks), if the run
///                   can never end (cyclic orders, a capacity or speed that stays 0), or if a prescribed rate is no rate,
///                   passes a capacity or leaves volume behind.
/// Determinism       same input, same bytes. Ends within 1e-12 (relative) of each other happen together; then
///                   ends before starts, memory is released before it is taken, ties by index.
/// Source            semantics, sections 6 and 10.
template <network_policy Policy = fair_share, observer<task_ended, transfer_ended>... Observers>
[[nodiscard]] trace simulate(const tasks::task_graph& g, const network& net, const Policy& policy = {},
                             const simulator_options& options = {}, Observers&&... observers) {
  detail::check_options(options, net, g.device_order.size(), std::is_same_v<Policy, prescribed>);
  detail::check_blocking(g, options);
  if constexpr (std::is_same_v<Policy, prescribed>) detail::check_rates(policy, g.transfers.size());
  return detail::event_loop<Policy, std::remove_reference_t<Observers>...>(g, net, policy, options, observers...).run();
}

#ifdef HETPLAN_COMPILED
extern template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
#endif

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/simulator.ipp>
#endif
