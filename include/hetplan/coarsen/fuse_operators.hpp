// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Fewer, larger operators: those in a row that a backend runs as one kernel become one block.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hetplan/coarsen/fusion_rules.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

namespace detail {

/// What one layer can stand for: it has one weight group or none, one answer to "trainable", and one way to know its time.
class members_of_one_layer {
 public:
  /// Why the layer cannot join those before it; null where it can, and then it does.
  [[nodiscard]] const char* join(const layer& l);

 private:
  const layer* first_ = nullptr;
  const layer* weighted_ = nullptr;
};

/// The rules as a tree of prefixes. Node 0 is the empty one.
class rule_tree {
 public:
  static constexpr std::int32_t none = -1;

  explicit rule_tree(const fusion_rules& rules);

  /// The number of a type; none: no rule names it.
  [[nodiscard]] std::int32_t number_of(const std::string& type) const;
  [[nodiscard]] std::int32_t step(std::int32_t from, std::int32_t type) const;
  /// How many types the rule that ends here has; 0: none does.
  [[nodiscard]] std::size_t rule_length(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)].rule_length; }

 private:
  struct node {
    std::map<std::int32_t, std::int32_t> next;  ///< by type
    std::size_t rule_length = 0;
  };
  std::map<std::string, std::int32_t> types_;
  std::vector<node> nodes_;
};

/// Matches of rules along edges that may fuse. Those edges make a forest: each operator has at most one, out to its only reader.
class operator_fusion {
 public:
  operator_fusion(const planning_graph& model, const fusion_rules& rules);

  void run();
  [[nodiscard]] blocks result() const;
  /// How often an operator was looked at.
  [[nodiscard]] long long looks() const { return looks_; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  /// The operators of a chain, and the types of the rule that they match; {1, 0} where they match none.
  struct match {
    std::size_t operators = 1, types = 0;
  };

  /// The longest rule that completes on the way from `head`, within `most` operators. What was bound beyond it is released.
  [[nodiscard]] match longest_rule(std::size_t head, std::size_t most = none);
  /// Does the chain of p go on to p's reader?
  [[nodiscard]] bool goes_on(std::size_t p) const { return match_[head_[p]].operators > position_[p] + 1; }
  [[nodiscard]] bool prefers(std::size_t p, std::size_t q) const;
  /// Ends p's chain at or before p, and begins others behind its new end.
  void release(std::size_t p);

  const planning_graph& model_;
  rule_tree rules_;
  std::vector<std::vector<std::int32_t>> types_;  ///< by kind_
  std::vector<std::size_t> kind_;                 ///< by layer
  std::vector<std::size_t> reader_;               ///< by layer: the only one, or none
  std::vector<std::size_t> head_, position_;      ///< by layer: the first of its chain, and its place there
  std::vector<match> match_;                      ///< by head
  long long looks_ = 0;
};

}  // namespace detail

/// Fuses operators in a row that match a rule.
///
/// An operator may fuse with the reader of its tensor if there is no second reader; the reader may have other inputs. A block is a
/// path of such edges whose operator types are those of a rule, as long a rule as completes from the block's first operator on; a rule
/// that begins to match and never completes binds nothing. Where two branches meet in an operator that both could fuse, the branch with
/// the longer rule gets it, and the other falls back to the longest rule that completes before; the operators that this releases may
/// begin blocks themselves.
///
/// The graph of blocks is acyclic, whatever the rules are. Each operator of a block but the last has a single reader, inside, so tensors
/// leave a block from its last operator only. Take an edge between two blocks: it starts at the last operator of one and ends at some
/// operator of the other, which is no later than that one's last. So last operators ascend along every edge of the graph of blocks.
///
/// @return       blocks numbered by their last layers; with no rules every layer by itself.
/// Complexity    O((V + E) * longest rule), no matter how many rules there are but for a factor log of their distinct types; kinds are
///               compared once each.
/// Throws        invalid_input (a rule of fewer than two operators, or with an empty kind).
/// Determinism   two branches with rules of one length: the one whose first operator has the smaller id.
/// Source        Moirai, section III-B, Algorithm 1 (GCOF).
/// Deviations    layers in the model's topological numbering instead of depth first, so that all branches into an operator are known when
///               it is reached, and each is reached once (as printed, the algorithm comes back to an operator on every path to it); a
///               released operator may begin a block; operators that one layer cannot stand for stay apart: a tensor of a weight group
///               and another weight, frozen and trainable weights, measured and computed times.
[[nodiscard]] blocks fuse_operators(const planning_graph& model, const fusion_rules& rules);

}  // namespace hetplan::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/fuse_operators.ipp>
#endif
