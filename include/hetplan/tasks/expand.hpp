// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan, its models asked -> one task graph.

#include <hetplan/plan/staged.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// Expands a plan of any kind into its task graph.
///
/// @return         computes by (stage, device in the stage, token, microbatch, phase); durations in seconds. A pass of a stage that shares
///                 out gradients or weights is a task for each of its units, behind a barrier that ends when the task starts.
/// Complexity      O(tasks + transfers), and what `staged` takes.
/// Throws          invalid_input (a transfer rule speaks of no transfer); missing_route; what `staged` throws.
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const staged& s);
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

/// The same without the order of work on any device, for whoever makes one: every backward in its two parts, or none.
///
/// Throws  invalid_input (a stage shares out gradients or weights: their traffic follows its order), and as `expand` does.
[[nodiscard]] task_graph expand_unordered(const staged& s, bool split_backwards);

}  // namespace hetplan::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/expand.ipp>
#endif
