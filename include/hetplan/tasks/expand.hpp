// SPDX-License-Identifier: BSL-1.0
#pragma once
/// plan + model + cluster + cost + memory -> one task graph.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/any_cost_model.hpp>
#include <hetplan/cost/any_memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE::tasks {

/// Expands a plan of any kind into its task graph.
///
/// @param p        checked by validate first.
/// @return         computes by (stage, device in the stage, step, microbatch, phase); durations in seconds.
/// Complexity      O(tasks + transfers); the cost model is asked once per layer, device of its stage and phase.
/// Throws          invalid_input (the plan breaks a rule, a transfer rule speaks of no transfer); missing_route;
///                 invalid_model (a cost that is not finite or negative).
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

}  // namespace HETPLAN_NAMESPACE::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/expand.ipp>
#endif
