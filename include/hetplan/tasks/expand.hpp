// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Expansion of a plan with its costs into one task graph.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// Returns the task graph of a plan of any kind.
///
/// @return         computes by (stage, device in the stage, token, microbatch, phase); durations in seconds. A stage with sharded gradients
///                 or weights has one task per unit in each pass, behind a barrier that ends when the task starts.
/// Complexity      O(tasks + transfers), plus that of `stage_costs`.
/// Throws          invalid_input (a transfer rule names no transfer of the plan); missing_route; as `stage_costs`.
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const stage_costs& s);
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

/// Returns the task graph without task orders, for callers that decide them. Every backward is split, or none.
///
/// Throws  as `expand`; invalid_input (a stage with sharded gradients or weights, or with reads from tiers that share resources, whose
///         traffic depends on its order).
[[nodiscard]] task_graph expand_unordered(const stage_costs& s, bool split_backwards);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/expand.ipp>
#endif
