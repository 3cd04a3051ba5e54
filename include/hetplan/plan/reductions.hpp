// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who sums up which gradients together at the end of an iteration.

#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// One sum of gradients: over the devices of a stage, or over the first devices of the stages that share tensors.
struct reduction {
  /// A device that takes part, and the stage that it stands for.
  struct member {
    device_id device;
    stage_id stage;
  };
  std::vector<member> members;    ///< in ring order, at least two
  std::vector<stage_id> holders;  ///< the stages that must be done before and that wait for it
  std::vector<layer_id> layers;   ///< a layer of each tensor, as the first holder has it; the others share its weight group or itself
  double bytes = 0;               ///< of those tensors

  [[nodiscard]] bool is_across_stages() const { return holders.size() > 1; }
};

/// The reductions of an iteration: each replicated stage's own in stage order, then those across stages.
///
/// A stage with several devices and trainable bytes reduces them, in a grid each column its own; one that shares out its gradients scatters
/// them instead. Each set of stages that share tensors (a weight group, or
/// the same layers in several pipelines) reduces those among its distinct first devices; with one such device there is nothing to do.
///
/// Complexity  O(layers of all stages, log).
/// Source      semantics, section 6.
[[nodiscard]] std::vector<reduction> reductions_of(const plan& p, const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/reductions.ipp>
#endif
