// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan whose cuts are between blocks, from one that cuts anywhere: what a runtime can run that is nearest to it.

#include <string_view>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// The plan with every cut inside a block moved to an end of the block.
///
/// A block goes whole to the stage that has most of its forward FLOP (of its layers where it has none; the first on a tie), the
/// embedding to the first stage, the head to the last. A stage that is left with nothing is left out. Transfer rules and the
/// prediction are given up, and the warm-up where the number of stages changes.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input (see runtime_stages; cuts are allowed everywhere, explicit orders are not).
/// Complexity      O(layers log layers + edges + blocks x stages).
/// Source          ours: planners cut where it is cheapest, the runtimes between blocks; a block follows most of its work, so that
///                 the least work changes devices.
[[nodiscard]] plan with_whole_blocks(const plan& p, const planning_graph& model, std::string_view runtime);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/whole_blocks.ipp>
#endif
