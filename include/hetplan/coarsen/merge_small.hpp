// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Fewer, larger blocks: small layers merge with neighbours until another merge would make a block too large.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/core/min_queue.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

/// Partition of the layers, as a map in both directions. No edge of the model goes from a block to a smaller one.
struct blocks {
  std::vector<std::vector<layer_id>> layers;  ///< by block, each sorted by id
  std::vector<std::size_t> block_of;          ///< by layer id

  [[nodiscard]] std::size_t size() const { return layers.size(); }

  friend bool operator==(const blocks&, const blocks&) = default;
};

/// Returns every layer as a block of its own.
[[nodiscard]] blocks each_layer(const planning_graph& model);

struct merge_options {
  double share = 0.05;  ///< of all parameters and of all forward FLOP: a merged block has less of both
};

namespace detail {

/// Graph of blocks that shrinks by contracting edges. A block is known by its smallest layer.
class contraction {
 public:
  /// Limits apply to the weight bytes and to the forward FLOP of one block.
  contraction(const planning_graph& model, double weight_limit, double work_limit);

  /// Contracts the best allowed crossing until none is allowed.
  ///
  /// A crossing with another path between its ends waits until one of them has merged: nothing else can remove that
  /// path, so a refused crossing need not be tried before.
  void run();

  [[nodiscard]] blocks result() const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint32_t dead = std::numeric_limits<std::uint32_t>::max();
  using tensor = std::pair<std::size_t, double>;  ///< producing layer, and the most bytes that one reader takes

  struct node {
    std::vector<std::size_t> out, in;  ///< crossings; at most one between two blocks
    double weight = 0, work = 0;       ///< weight: without weight groups
    std::vector<std::int32_t> groups;  ///< sorted
    std::size_t position = 0;          ///< in order_
  };
  struct crossing {
    std::size_t from, to;
    std::vector<tensor> tensors;  ///< by layer
    std::uint32_t version;        ///< older candidates are stale
  };
  struct candidate {
    double freed, total;          ///< bytes that cross and no other block reads, and all bytes that cross
    std::size_t smaller, larger;  ///< the two blocks
    std::size_t crossing;
    std::uint32_t version;

    friend bool operator>(const candidate& a, const candidate& b) {  // the best is the least
      return std::tie(a.freed, a.total, b.smaller, b.larger) < std::tie(b.freed, b.total, a.smaller, a.larger);
    }
  };

  [[nodiscard]] bool fits(const node& a, const node& b) const;

  static std::vector<std::int32_t> together(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b);

  /// Queues a crossing if the merged block fits. Blocks only grow, so a crossing that does not fit is never looked at
  /// again. After a merge all crossings of the block are offered, also one that is left as the last of a tensor.
  void offer(std::size_t c);

  /// Reorders the blocks between the ends of a crossing so that both ends can share one position. Returns false,
  /// without any change, if another path joins the ends.
  bool make_room(std::size_t c);

  void put(std::size_t block, std::size_t place);

  /// Fills reached_ with the blocks before v on paths from u other than the edge u -> v. Returns false if v is reached.
  bool reach_short_of(std::size_t u, std::size_t v);

  void contract(std::size_t c);

  /// Moves one side of a block's crossings to another block; two that then join the same blocks become one.
  void join(std::size_t keep, std::size_t gone, std::vector<std::size_t> node::*near, std::vector<std::size_t> node::*far,
            std::size_t crossing::*here, std::size_t crossing::*there);

  /// Adds the tensors of one crossing to those of another. A tensor in both crosses only once from now on.
  void absorb(std::vector<tensor>& all, const std::vector<tensor>& more);

  static void drop(std::vector<std::size_t>& list, std::size_t c) { list.erase(std::find(list.begin(), list.end(), c)); }

  const planning_graph& model_;
  double weight_limit_, work_limit_;
  std::vector<double> group_weight_;
  std::vector<node> nodes_;
  std::vector<int> readers_;  ///< by layer: number of other blocks that read its tensor
  std::vector<crossing> crossings_;
  min_queue<candidate> candidates_;
  std::vector<std::size_t> into_;   ///< by block: the smaller block it merged into; itself while it lives
  std::vector<std::size_t> order_;  ///< topological order of the living blocks, with gaps (none)
  std::vector<std::size_t> twin_, reached_;
  std::vector<std::size_t> seen_;  ///< by block: the last search that reached it
  std::size_t search_ = 0;
};

}  // namespace detail

/// Merges adjacent blocks as long as the result has less than a share of the model and stays a DAG.
///
/// An edge u -> v of the graph of blocks is contracted if the merged block has less than `share` of all parameters and
/// less than `share` of all forward FLOP (a weight group counts once, in the total and inside a block) and no other
/// path leads from u to v. A tensor crosses between two blocks with the largest edge from its producer into the other
/// block. The pair whose contraction frees most bytes goes first, counting tensors that no other block reads; then the
/// pair between which most bytes cross. A tensor with a second reader still crosses a boundary after one of them has
/// merged, so a block closes over the branches of its residuals, and boundaries end up where few bytes cross. Blocks
/// that are not adjacent never merge, so parallel branches survive. At the end no allowed contraction is left.
///
/// @param options   A share of 0 merges nothing. A single layer above the share stays alone.
/// @return          Blocks numbered as topological_order would, by their smallest layers.
/// Complexity       per merge, the edges at the two blocks (each back into a heap) and the blocks between them in a
///                  topological order; per pair tried, a search among the blocks between its two ends. Near-linear on
///                  chains of residual blocks; a block that touches all others costs a pass over them per merge.
/// Determinism      ties: the pair with the smaller block (by its smallest layer), then with the smaller second one.
/// Throws           invalid_input (share not in [0, 1]).
/// Source           Dora sec. 4.1, planning graph.
/// Deviations       FLOP count as well as parameters: by parameters alone one block takes 40 % of ResNet-50's work. A
///                  model without parameters, or without FLOP (profiles only), has no limit on that side; without
///                  either, no layer is known to be small, and nothing merges.
[[nodiscard]] blocks merge_small(const planning_graph& model, const merge_options& options = {});

}  // namespace hetplan::coarsen

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/merge_small.ipp>
#endif
