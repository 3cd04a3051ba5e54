// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/simulator.hpp>

#ifdef HETPLAN_COMPILED
namespace HETPLAN_NAMESPACE {
template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
}  // namespace HETPLAN_NAMESPACE
#endif
