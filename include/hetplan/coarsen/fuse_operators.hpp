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
#include <string_view>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

// Which operators a backend runs as one kernel: ordered lists of operator types, as data.

/// What a kind of layer is called here: one operator type, or several where one layer already holds several operators.
struct type_alias {
  std::string kind;                ///< as `plain_type` writes it
  std::vector<std::string> types;  ///< in order of execution

  friend bool operator==(const type_alias&, const type_alias&) = default;
};

/// The names that ONNX, the common frameworks and this library's zoo have for the same operator: "Gemm", "linear" and "fully_connected"
/// are `matmul`, "BatchNormalization" is `bn`, and the zoo's "conv_bn" is `conv` and `bn` in one layer.
///
/// Source  ours: the operator lists of ONNX and of the zoo, as far as a rule names them.
[[nodiscard]] const std::vector<type_alias>& common_aliases();

/// A backend's fusions. A rule is an ordered list of operator types; operators in a row that match all of it run as one. Users append
/// to `rules`, and to `aliases` what their kinds mean.
///
///     coarsen::fusion_rules mine = coarsen::tensorrt_like();
///     mine.rules.push_back({"conv", "my_activation"});
struct fusion_rules {
  std::string name = "own";
  std::vector<std::vector<std::string>> rules = {};  ///< kinds, each at least two operators long; the order means nothing
  std::vector<type_alias> aliases = common_aliases();

  friend bool operator==(const fusion_rules&, const fusion_rules&) = default;
};

/// A kind in lower case without `_` and `-`.
///
/// Source  ours: "LayerNormalization", "layer_norm" and "layer-norm" differ in nothing else.
[[nodiscard]] std::string plain_type(std::string_view kind);

/// What a kind of layer is to a rule: the types of its operators in order, with "+" between kinds of several.
///
/// @return     for "Conv" {"conv"}; for "conv_bn" or "Conv+BN" {"conv", "bn"}; empty for an empty kind, which matches no rule.
/// Complexity  O(length of the kind * aliases).   Source  ours: Moirai, section III-B, compares strings.
[[nodiscard]] std::vector<std::string> operator_types(std::string_view kind, std::span<const type_alias> aliases = common_aliases());

/// What TensorRT does to a network before it chooses kernels: convolutions, deconvolutions and matrix products with a following batch
/// normalisation, elementwise sum and activation; activations and norms that are written out in arithmetic; pairs of pointwise
/// operators; pairs of shuffles.
///
/// Source      NVIDIA's "Layer Fusion Catalog"; Moirai, Table I, is a part of it.
/// Deviations  pointwise operators fuse in any number there and in the chains listed here; patterns that branch inside are no lists, so
///             attention as one kernel and the operators before a branch are left out, and so are fusions that depend on shapes.
[[nodiscard]] fusion_rules tensorrt_like();

/// What oneDNN's graph interface offers as one partition: convolutions, deconvolutions and matrix products with up to three unary or
/// binary operators behind them, with a batch normalisation before those of a convolution; pooling, reductions, softmax and norms with
/// one; written-out GELU; attention from its first product to its second.
///
/// Source      Intel's "Fusion Patterns" of the oneDNN developer guide.
/// Deviations  of three operators behind a product the common ones are listed; nothing quantised.
[[nodiscard]] fusion_rules onednn_like();

/// Every operator by itself.  Source  ours: the control.
[[nodiscard]] fusion_rules no_fusion();

namespace detail {

/// The rules as lists of types. Throws invalid_input (a rule of fewer than two operators, or with an empty kind).
[[nodiscard]] std::vector<std::vector<std::string>> rules_as_types(const fusion_rules& given);

}  // namespace detail

// A model whose layers are the blocks of another one.

/// One layer per block, with the block's number as its id. A block of one layer stays that layer; in any other
///
///  * the name is the members' names with "+" between them, the first and how many more where that exceeds 200 bytes; the kind is the
///    operator types of the members with "+" between them, so a cost model can tell a fused operator from a single one;
///  * FLOP, activations that training keeps, cache and what a call reads of weights add up; so do weights, a tensor of a weight group
///    once;
///  * traffic adds up without what the block keeps to itself: an edge inside is not read, and a tensor that nobody outside reads is not
///    written (the largest of its edges); a member gives up at most its own traffic;
///  * an edge to another block carries, of each tensor, the largest edge into that block;
///  * a kind of device for which all members have a profile gets one, with the members' batch sizes together: the sum of their seconds,
///    forward less the saved traffic over the kind's memory bandwidth where a device says it, and never below the longest member, at
///    any batch size where measured times do not fall.
///
/// So a cost model is asked about the fused kind, a profile answers with the sum less what was saved, and a roofline with one launch and
/// the traffic that is left.
///
/// @param b        of this model; e.g. from fuse_operators.
/// @param rules    whose aliases say what kinds mean.
/// @param devices  for the bandwidth of each kind; of several devices of a kind the fastest memory counts, which saves least.
/// Complexity      O((V + E) log E), and the profiles' sizes times the members of a block.
/// Throws          invalid_input: the blocks are not this model's, or not numbered along its edges; one layer cannot stand for a block
///                 (frozen and trainable weights, a tensor of a weight group and another weight, measured and computed times).
/// Source          Moirai, section III-B: intermediate results of fused operators are not stored. How much that saves is ours.
/// Deviations      what training keeps is not less, and a measured backward saves nothing: it needs what inference need not store.
[[nodiscard]] planning_graph fused_graph(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                         std::span<const device> devices = {});

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/fuse_operators.ipp>
#endif
