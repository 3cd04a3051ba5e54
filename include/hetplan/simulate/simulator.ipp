// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/simulator.hpp>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE guarded_sharing<any_network_sharing> sharing_of(const any_network_sharing& sharing, const tasks::task_graph&,
                                                               const network& net, const simulator_options& options) {
  if (!sharing) throw invalid_input("simulate: an any_network_sharing of nothing; expected one that holds a sharing");
  check_follows(sharing.hears_of_capacities(), options);
  return {sharing, net};
}

}  // namespace HETPLAN_NAMESPACE::detail

#ifdef HETPLAN_COMPILED
namespace HETPLAN_NAMESPACE {
template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const any_network_sharing&, const simulator_options&);
}  // namespace HETPLAN_NAMESPACE
#endif
