// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Size of a plan's task graph, without building it, and plans of fused models as plans of the model.

#include <optional>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

/// Returns a plan of a fused model as a plan of the model itself: each layer of a stage is replaced by the members of its block, in
/// topological order, in its tier too. Everything else stays.
///
/// @param on_fused  Plan of a model with one layer per block, as coarsen::fused_graph makes it.
/// Throws           invalid_input (a stage names a layer that is not a block).
/// Complexity       O(layers of the stages).   Source  Moirai, section III-B: fused operators are placed together.
[[nodiscard]] plan expand_blocks(plan on_fused, const coarsen::blocks& b);

/// Tasks and transfers of an iteration, or of all steps of a generation. Doubles: the size may be far beyond what fits.
struct expansion_size {
  double tasks = 0;      ///< exact, except that optimizer steps are always counted
  double transfers = 0;  ///< upper bound: some may stay on one device

  [[nodiscard]] double total() const { return tasks + transfers; }
};

/// Bytes that a task or transfer takes while a plan is expanded, simulated and judged, measured (docs/performance.md).
inline constexpr double expansion_bytes = 250;

/// Returns the size of a plan's expansion, without expanding it.
///
/// Two stages that cut the same samples into a and b intervals have at most a + b - c overlaps, where c is the number of common ends of
/// their microbatches. A transfer rule adds a chunk to each of its transfers. A ring has a transfer per member, a parameter server two.
///
/// @param g    Stage graph of the plan, whose stages have devices.
/// @return     Never less than the expansion; equal if each stage has its own device, without rules, parameter server or next tokens.
/// Complexity  O(layers of all stages, log), in generation with stages^2; and the entries of explicit orders.
/// Source      semantics, section 6.
[[nodiscard]] expansion_size size_of_expansion(const plan& p, const planning_graph& model, const stage_graph& g);

/// Returns the expansion size of a plan that is too large to be simulated; nothing for others, mostly without a stage graph.
[[nodiscard]] std::optional<double> too_large_an_expansion(const plan& p, const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/expansion_size.ipp>
#endif
