// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A problem whose model has few layers: blocks of those of another one.

#include <cstddef>
#include <memory>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// Models of more layers are planned in blocks where planning them whole would take long.
inline constexpr std::size_t layers_planned_whole = 100;

/// A smaller problem for planners that would take long: its layers are the light_blocks of the model, on the same cluster. A block takes as
/// long and holds as much as its layers together, by the problem's own models, and needs their largest workspace beside their largest
/// scratch. Layers that share tensors are separate blocks, unless they are many; such a tensor then counts in each block. Pinned layers
/// have blocks of their own, which are pinned.
///
/// Complexity  O((V + E) log E); a query about a block is one query per layer of it.
/// Source      ours.
class few_blocks {
 public:
  /// @param whole  must outlive this object.
  /// @param most   number of blocks, plus two for each layer that shares a tensor.
  few_blocks(const planning_problem& whole, std::size_t most);
  few_blocks(const few_blocks&) = delete;  // the problem refers to the model
  few_blocks& operator=(const few_blocks&) = delete;

  [[nodiscard]] planning_problem& problem() { return problem_; }
  /// Returns a plan of the blocks as a plan of the whole model.
  [[nodiscard]] plan expand(plan of_blocks) const;

 private:
  std::shared_ptr<const coarsen::blocks> blocks_;
  planning_graph model_;
  planning_problem problem_;
};

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/few_blocks.ipp>
#endif
