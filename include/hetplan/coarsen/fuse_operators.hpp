// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Operator fusion: operators in a row that a backend runs as one kernel become one block.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

/// Operator types of a kind of layer: one, or several if a layer already holds several operators.
struct type_alias {
  std::string kind;                ///< in the form of `plain_type`
  std::vector<std::string> types;  ///< in order of execution

  friend bool operator==(const type_alias&, const type_alias&) = default;
};

/// Returns the aliases of the names that ONNX, the common frameworks and this library's zoo have for the same operator: "Gemm", "linear"
/// and "fully_connected" are `matmul`, "BatchNormalization" is `bn`, and the zoo's "conv_bn" is `conv` and `bn` in one layer.
///
/// Source  ours: the operator lists of ONNX and of the zoo, as far as a rule names them.
[[nodiscard]] const std::vector<type_alias>& common_aliases();

/// Fusions of a backend. A rule is an ordered list of operator types; operators in a row that match all of it run as one. Users append
/// their rules to `rules`, and the types of their kinds to `aliases`.
///
///     coarsen::fusion_rules mine = coarsen::tensorrt_like();
///     mine.rules.push_back({"conv", "my_activation"});
struct fusion_rules {
  std::string name = "own";
  std::vector<std::vector<std::string>> rules = {};  ///< kinds, at least two operators per rule; the order of rules has no effect
  std::vector<type_alias> aliases = common_aliases();

  friend bool operator==(const fusion_rules&, const fusion_rules&) = default;
};

/// Returns a kind in lower case without `_` and `-`.
/// Source  ours: "LayerNormalization", "layer_norm" and "layer-norm" differ in nothing else.
[[nodiscard]] std::string plain_type(std::string_view kind);

/// Returns the operator types of a kind of layer, in order; the kind of a fused layer has "+" between its kinds.
///
/// @return     {"conv"} for "Conv"; {"conv", "bn"} for "conv_bn" or "Conv+BN"; empty for an empty kind, which matches no rule.
/// Complexity  O(length of the kind * aliases).   Source  ours: Moirai, section III-B, compares strings.
[[nodiscard]] std::vector<std::string> operator_types(std::string_view kind, std::span<const type_alias> aliases = common_aliases());

/// Returns the fusions that TensorRT makes before it chooses kernels: convolutions, deconvolutions and matrix products with a following
/// batch normalisation, elementwise sum and activation; written-out activations and norms; pairs of pointwise operators or of shuffles.
///
/// Source      NVIDIA's "Layer Fusion Catalog"; Moirai, Table I, is a part of it.
/// Deviations  TensorRT fuses any number of pointwise operators, these rules the chains listed. Patterns with branches inside are no
///             lists, so attention as one kernel and operators before a branch are left out, and so are fusions that depend on shapes.
[[nodiscard]] fusion_rules tensorrt_like();

/// Returns the fusions that oneDNN's graph interface offers as one partition: convolutions, deconvolutions and matrix products with up to
/// three unary or binary operators behind them, with a batch normalisation before those of a convolution; pooling, reductions, softmax
/// and norms with one; written-out GELU; attention from its first product to its second.
///
/// Source      Intel's "Fusion Patterns" of the oneDNN developer guide.
/// Deviations  of three operators behind a product, only the common combinations are listed; nothing quantised.
[[nodiscard]] fusion_rules onednn_like();

/// Returns the rules that fuse nothing.  Source  ours: the control.
[[nodiscard]] fusion_rules no_fusion();

namespace detail {

/// Returns the rules as lists of types. Throws invalid_input (a rule of fewer than two operators, or with an empty kind).
[[nodiscard]] std::vector<std::vector<std::string>> rules_as_types(const fusion_rules& given);

}  // namespace detail

/// Returns the model with one layer per block, whose id is the block's number. A block of one layer stays that layer. For the others:
///
///  * Its name is the members' names with "+" between them, or beyond 200 bytes the first name and the number of others. Its kind is the
///    members' operator types with "+" between them, by which a cost model recognises a fused operator.
///  * FLOP, activations kept for training, cache and weight traffic add up; so do weights, the tensor of a weight group once.
///  * Traffic adds up without what stays inside the block: an edge inside is not read, and a tensor that is read only inside is not
///    written (the largest of its edges); a member saves at most its own traffic.
///  * An edge to another block carries, of each tensor, the largest edge into that block.
///  * A kind of device for which all members have a profile gets one, at the members' batch sizes together: the sum of their seconds, in
///    the forward less the saved traffic over the kind's memory bandwidth if a device states it, and never below the longest member, at
///    any batch size where measured times do not fall.
///
/// So a cost model sees the fused kind, a profile gives the sum less the savings, and a roofline one launch and the remaining traffic.
///
/// @param b        Blocks of this model, e.g. from fuse_operators.
/// @param rules    Rules whose aliases give the types of kinds.
/// @param devices  Devices that give the bandwidth of each kind; of several of a kind the fastest memory counts, which saves least.
/// Complexity      O((V + E) log E), and the profiles' sizes times the members of a block.
/// Throws          invalid_input: blocks that are not this model's or not numbered along its edges; a block that one layer cannot
///                 represent (frozen and trainable weights, a tensor of a weight group and another weight, measured and computed times).
/// Source          Moirai, section III-B: intermediate results of fused operators are not stored. How much that saves is ours.
/// Deviations      activations kept for training do not shrink, and a measured backward saves nothing: it needs the results stored.
[[nodiscard]] planning_graph fused_graph(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                         std::span<const device> devices = {});

/// A name and a kind for a block of joined_graph.
struct block_label {
  std::string name;
  std::string kind;
};

/// Returns the model with one layer per block, as fused_graph, but for what is joined without being fused: the same kernels run and write
/// the same tensors. So calls and traffic are the members' sums. A joined layer is split by `rows` if a member is, else by `columns` or
/// `along`, in the units of its members.
///
/// @param labels  One for each block; a block of one layer takes them, too.
/// Complexity, throws  as fused_graph; invalid_input if there are not as many labels as blocks.
/// Deviations     the roofline takes one maximum of work and traffic for a layer, and one number of rows: a joined layer is at most as long
///                as its members in the forward. In the backward FLOP of attention are spread over all of the layer's, and its gradient of
///                weights moves what all members move: a few per cent longer where that binds.
/// Source         ours: runtimes cut between attention and MLP, and a model of such layers is a tenth of one of operators.
[[nodiscard]] planning_graph joined_graph(const planning_graph& model, const blocks& b, std::span<const block_label> labels);

/// Returns the blocks of layers in a row, in the model's numbering, that have the same number in `part_of`; a block ends where one layer
/// could not represent it. Layers with part -1 stay alone. Complexity: O(layers).
[[nodiscard]] blocks layers_in_parts(const planning_graph& model, std::span<const std::int32_t> part_of);

namespace detail {

/// Members that one layer can represent: at most one weight group, one value of `trainable`, one kind of timing, one mask of attention, and
/// experts of the same numbers.
class members_of_one_layer {
 public:
  /// Adds a layer and returns null, or returns why the layer cannot join those before it.
  [[nodiscard]] const char* join(const layer& l);

 private:
  const layer* first_ = nullptr;
  const layer* weighted_ = nullptr;
  const layer* attends_ = nullptr;
  const layer* chooses_ = nullptr;
};

/// Prefix tree of the rules. Node 0 is the empty prefix.
class rule_tree {
 public:
  static constexpr std::int32_t none = -1;

  explicit rule_tree(const fusion_rules& rules);

  /// Returns the number of a type; `none` if no rule names it.
  [[nodiscard]] std::int32_t number_of(const std::string& type) const;
  [[nodiscard]] std::int32_t step(std::int32_t from, std::int32_t type) const;
  /// Returns the number of types of the rule that ends at a node; 0 if none does.
  [[nodiscard]] std::size_t rule_length(std::int32_t at) const { return rule_lengths_[static_cast<std::size_t>(at)]; }

 private:
  key_index types_;
  keyed<std::int32_t> next_;               ///< by node and type
  std::vector<std::size_t> rule_lengths_;  ///< by node
};

/// Matches of rules along edges that may fuse. These edges make a forest: each operator has at most one, to its only reader.
class operator_fusion {
 public:
  operator_fusion(const planning_graph& model, const fusion_rules& rules);

  void run();
  [[nodiscard]] blocks result() const;
  /// Returns the number of visits to operators.
  [[nodiscard]] long long looks() const { return looks_; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  /// Length of a chain in operators, and of the matched rule in types; {1, 0} without a match.
  struct match {
    std::size_t operators = 1, types = 0;
  };

  /// Returns the longest rule that completes on the path from `head` within `most` operators.
  [[nodiscard]] match longest_rule(std::size_t head, std::size_t most = none);
  /// Returns whether the chain of p continues to p's reader.
  [[nodiscard]] bool goes_on(std::size_t p) const { return match_[head_[p]].operators > position_[p] + 1; }
  [[nodiscard]] bool prefers(std::size_t p, std::size_t q) const;
  /// Ends p's chain at or before p, and begins other chains behind its new end.
  void release(std::size_t p);

  const planning_graph& model_;
  rule_tree rules_;
  std::vector<std::vector<std::int32_t>> types_;  ///< by index of a kind
  std::vector<std::size_t> kind_;                 ///< by layer: index of its kind
  std::vector<std::size_t> reader_;               ///< by layer: its only reader, or none
  std::vector<std::size_t> head_, position_;      ///< by layer: first operator of its chain, and place in it
  std::vector<match> match_;                      ///< by first operator of a chain
  long long looks_ = 0;
};

}  // namespace detail

/// Fuses operators in a row that match a rule.
///
/// An operator may fuse with the reader of its tensor if there is no second reader; the reader may have other inputs. A block is a path
/// of such edges whose operator types are those of a rule, the longest that completes from the block's first operator on; a rule that
/// begins to match and never completes has no effect. Where two branches meet in an operator that both could fuse, the branch with the
/// longer rule gets it; the other falls back to the longest rule that completes before. Released operators may begin blocks.
///
/// The graph of blocks is acyclic, whatever the rules are. Each operator of a block but the last has a single reader, inside the block,
/// so tensors leave a block from its last operator only. An edge between two blocks thus starts at the last operator of one, and ends at
/// an operator of the other that is no later than that one's last. So last operators ascend along every edge of the graph of blocks.
///
/// @return       Blocks numbered by their last layers; without rules, every layer by itself.
/// Complexity    O((V + E) * longest rule), times the log of the rules' distinct types; kinds are compared once each.
/// Throws        invalid_input (a rule of fewer than two operators, or with an empty kind).
/// Determinism   of two branches with rules of one length, the one whose first operator has the smaller id goes first.
/// Source        Moirai, section III-B, Algorithm 1 (GCOF).
/// Deviations    layers in the model's topological numbering instead of depth first, so that all branches into an operator are known when
///               it is reached, and each is reached once (as printed, the algorithm returns to an operator on every path to it); a
///               released operator may begin a block; operators that one layer cannot represent stay apart: a tensor of a weight group
///               and another weight, frozen and trainable weights, measured and computed times.
[[nodiscard]] blocks fuse_operators(const planning_graph& model, const fusion_rules& rules);

}  // namespace hetplan::coarsen

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/fuse_operators.ipp>
#endif
