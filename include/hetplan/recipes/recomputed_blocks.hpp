// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A problem whose stages all recompute their blocks, for planners whose stages keep everything.

#include <memory>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// A view of a training problem: layers of blocks keep nothing but a block's inputs, their input gradients take the time of their forward
/// on top, and every layer's workspace has room for the largest block's activations. Layers and edges are those of the model.
///
/// Deviations  from recomputation::blocks: a tensor that crosses blocks counts where it is read first; where a stage has no block, its
///             workspace is too large. The judge decides.
/// Complexity  O(V + E); a query is one or two of the problem's models.
/// Source      ours.
class recomputed_blocks {
 public:
  /// @param whole  must outlive this object.
  explicit recomputed_blocks(const planning_problem& whole);
  recomputed_blocks(const recomputed_blocks&) = delete;  // the problem refers to the model
  recomputed_blocks& operator=(const recomputed_blocks&) = delete;

  /// True if the model has a block that keeps activations.
  [[nodiscard]] static bool exist_in(const planning_graph& model);

  [[nodiscard]] const planning_problem& problem() const { return problem_; }
  /// Returns a plan of the view as a plan whose stages recompute their blocks, where they have any.
  [[nodiscard]] plan restored(plan of_view) const;

 private:
  const planning_graph& whole_;
  std::shared_ptr<const std::vector<char>> again_;  ///< by layer: is it run again?
  planning_graph model_;
  planning_problem problem_;
};

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/recomputed_blocks.ipp>
#endif
