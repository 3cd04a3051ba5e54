// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The judge: runs a task graph on a network, event by event.

#include <concepts>
#include <type_traits>

#include <hetplan/problem/any_network_sharing.hpp>
#include <hetplan/simulate/event_loop.hpp>
#include <hetplan/simulate/fluid_sharing.hpp>
#include <hetplan/simulate/guarded_sharing.hpp>
#include <hetplan/simulate/prescribed.hpp>

namespace HETPLAN_NAMESPACE {

namespace detail {

template <network_policy Policy>
[[nodiscard]] fluid_sharing<Policy> sharing_of(const Policy& policy, const tasks::task_graph&, const network& net,
                                               const simulator_options& options) {
  return {net, policy, options.record};
}
[[nodiscard]] inline prescribed_sharing sharing_of(const prescribed& given, const tasks::task_graph& g, const network& net,
                                                   const simulator_options& options) {
  check_rates(given, g.transfers.size(), options);
  return {net, given};
}
[[nodiscard]] guarded_sharing<any_network_sharing> sharing_of(const any_network_sharing& sharing, const tasks::task_graph&,
                                                              const network& net, const simulator_options& options);
template <network_sharing Sharing>
[[nodiscard]] guarded_sharing<Sharing> sharing_of(const Sharing& sharing, const tasks::task_graph&, const network& net,
                                                  const simulator_options& options) {
  check_follows(follows_capacities<Sharing>, options);
  return {sharing, net};
}

}  // namespace detail

/// What says who gets bandwidth in a run: a policy, which makes a fluid_sharing, given rates, or a sharing of the user's.
template <class S>
concept shares_network = network_policy<S> || std::same_as<S, prescribed> || network_sharing<S>;

/// Runs a task graph: every device works off its order, transfers share the network as the policy or the sharing says.
///
/// @param sharing    a policy or given rates, only read; a network sharing is copied as it is.
/// @param g          from tasks::expand or a task_graph_builder; every compute task is in one device's order.
/// @param net        the network whose resources the graph's routes name.
/// @param observers  called at task_ended and transfer_ended, in time order; may stop the run.
/// @return           the trace; status `stopped` if an observer said so or `until` came first. Tasks under way then count as
///                   busy and transfers as bytes as far as they came, but have no end.
/// Complexity        O(log) per event; a transfer that starts or ends costs the size of the set of transfers
///                   that its resources connect (times the number of distinct fair shares in it).
/// Throws            invalid_input if capacities change and transfers block (their time was counted into tasks) or a sharing has no
///                   set_capacity, if the run can never end (cyclic orders, a capacity or speed that stays 0), or if a
///                   prescribed rate is no rate, passes a capacity or leaves volume behind; invalid_model if a user's sharing
///                   gives more of a resource than it has, or ends a transfer that has not moved all of its volume.
/// Determinism       same input, same bytes. Ends within 1e-12 (relative) of each other happen together; then
///                   ends before starts, memory is released before it is taken, ties by index.
/// Source            semantics, sections 6 and 10.
template <shares_network Sharing = fair_share, observer<task_ended, transfer_ended>... Observers>
[[nodiscard]] trace simulate(const tasks::task_graph& g, const network& net, const Sharing& sharing = {},
                             const simulator_options& options = {}, Observers&&... observers) {
  detail::check_options(options, net, g.device_order.size());
  detail::check_blocking(g, options);
  auto shared = detail::sharing_of(sharing, g, net, options);
  return detail::event_loop<decltype(shared), std::remove_reference_t<Observers>...>(g, net, std::move(shared), options, observers...)
      .run();
}

#ifdef HETPLAN_COMPILED
extern template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const any_network_sharing&, const simulator_options&);
#endif

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/simulator.ipp>
#endif
