// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which operators a backend runs as one kernel: ordered lists of operator types, as data.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan::coarsen {

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

}  // namespace hetplan::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/fusion_rules.ipp>
#endif
