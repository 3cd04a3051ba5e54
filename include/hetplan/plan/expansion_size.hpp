// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How large a plan's task graph would be, before anyone builds it.

#include <optional>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

// A plan of a fused model as a plan of the model itself.

/// Each stage gets the members of its layers in their place, those of a block in topological order. Everything else stays. What
/// was predicted holds no longer: the operators of a block take longer one by one.
///
/// @param on_fused  of a model that has one layer per block, as coarsen::fused_graph makes it.
/// Throws           invalid_input (a stage names a layer that is no block).
/// Complexity       O(layers of the stages).   Source  Moirai, section III-B: what is fused is placed together.
[[nodiscard]] plan expand_blocks(plan on_fused, const coarsen::blocks& b);

/// Tasks and transfers of an iteration, or of all steps of a generation. Doubles: it may be far beyond what fits.
struct expansion_size {
  double tasks = 0;      ///< exact but for optimizer steps, which are counted as if the cost model had them
  double transfers = 0;  ///< at most: some may stay on one device

  [[nodiscard]] double total() const { return tasks + transfers; }
};

/// What one of them takes while a plan is expanded, simulated and judged, measured (docs/performance.md).
inline constexpr double expansion_bytes = 250;

/// Counts without expanding.
///
/// Two stages that cut the same samples into a and b intervals meet in at most a + b - c overlaps, where c is how often their
/// microbatches end together; a transfer rule adds a chunk of every transfer that it speaks of. A ring has a transfer for each
/// member, a parameter server two.
///
/// @param g    of the plan, whose stages have devices.
/// @return     never less than the expansion has; no more where each stage has a device of its own, no transfer a rule, and no
///             parameter server and no next token is waited for.
/// Complexity  O(layers of all stages, log), in generation with stages^2; and the entries of explicit orders.
/// Source      semantics, section 6.
[[nodiscard]] expansion_size size_of_expansion(const plan& p, const planning_graph& model, const stage_graph& g);

/// What a plan that is too large to be simulated would expand to; nothing for others, most of which are told without a stage graph.
[[nodiscard]] std::optional<double> too_large_an_expansion(const plan& p, const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/expansion_size.ipp>
#endif
