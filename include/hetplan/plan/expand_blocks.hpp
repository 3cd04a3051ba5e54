// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan of a fused model as a plan of the model itself.

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// Each stage gets the members of its layers in their place, those of a block in topological order. Everything else stays; a prediction
/// goes, for the operators of a block take longer one by one.
///
/// @param on_fused  of a model that has one layer per block, as coarsen::fused_graph makes it.
/// Throws           invalid_input (a stage names a layer that is no block).
/// Complexity       O(layers of the stages).   Source  Moirai, section III-B: what is fused is placed together.
[[nodiscard]] plan expand_blocks(plan on_fused, const coarsen::blocks& b);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/expand_blocks.ipp>
#endif
