// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan, its models asked -> one task graph.

#include <hetplan/plan/staged.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE::tasks {

/// Expands a plan of any kind into its task graph.
///
/// @return         computes by (stage, device in the stage, token, microbatch, phase); durations in seconds.
/// Complexity      O(tasks + transfers), and what `staged` takes.
/// Throws          invalid_input (a transfer rule speaks of no transfer); missing_route; what `staged` throws.
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const staged& s);
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

}  // namespace HETPLAN_NAMESPACE::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/expand.ipp>
#endif
