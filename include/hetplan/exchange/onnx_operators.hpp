// SPDX-License-Identifier: BSL-1.0
#pragma once
/// FLOP and bytes of ONNX's operators, folding of arithmetic, and shapes that ONNX's library does not infer.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

/// A node with its input tensors.
struct operator_view {
  const onnx::NodeProto& node;
  const onnx_lookup& tensor;

  [[nodiscard]] const std::string& type() const { return node.op_type(); }
  [[nodiscard]] const onnx_tensor& in(int i) const { return tensor(input_of(node, i)); }
  [[nodiscard]] bool has(int i) const { return !input_of(node, i).empty(); }
  [[nodiscard]] double out() const { return tensor(first_output(node)).elements(); }
  /// Returns the size of an input's axis, counted from the back if negative; 1 if unknown.
  [[nodiscard]] double axis(int input, int i) const {
    const auto& s = in(input).shape;
    const int at = i < 0 ? i + static_cast<int>(s.size()) : i;
    return at < 0 || at >= static_cast<int>(s.size()) ? 1 : static_cast<double>(s[static_cast<std::size_t>(at)]);
  }
  [[nodiscard]] double attribute(std::string_view name, long long otherwise) const {
    return static_cast<double>(attribute_or(node, name, otherwise));
  }
};

/// True for operators that ONNX Runtime adds.
[[nodiscard]] inline bool is_microsoft(const onnx::NodeProto& n) { return n.domain() == "com.microsoft"; }

/// Returns the FLOP of matrix products, Einsum, attention, recurrences and sliding windows; none for other operators.
[[nodiscard]] std::optional<double> product_flops(const operator_view& o);

/// Returns why the equation of Einsum does not fit the known shapes of its inputs, "" if it does.
[[nodiscard]] std::string einsum_fault(const operator_view& o);

/// Returns the output of Einsum, an empty list if its shape depends on an unknown input.
[[nodiscard]] std::vector<onnx_tensor> einsum_shape(const operator_view& o);

/// Sizes of an attention operator, however its inputs are packed.
struct attention_sizes {
  double batch, queries, keys, heads;
  double key, value;  ///< total widths of keys and values over all heads of queries

  /// Returns the FLOP of the products with keys and values and of the softmax. Masked pairs count.
  [[nodiscard]] double flops() const;
};

/// Returns the sizes of ONNX Runtime's Attention, MultiHeadAttention and GroupQueryAttention.
[[nodiscard]] attention_sizes microsoft_attention(const operator_view& o);

/// Returns the common shape of shapes broadcast against each other, none if they do not match.
[[nodiscard]] std::optional<std::vector<long long>> spread_shape(const std::vector<std::vector<long long>>& shapes);

/// Returns the index in `narrow` of each element of `wide` under broadcasting.
[[nodiscard]] std::vector<std::size_t> spread_places(const std::vector<long long>& narrow, const std::vector<long long>& wide);

/// Converts a number to a type as Cast does: rounded to single precision or truncated to an integer. None if the type cannot hold it.
[[nodiscard]] std::optional<double> rounded(double v, int type);

/// Folds elementwise operators: sums, comparisons, roots, casts, choices. None for other operators and for results that their type cannot
/// hold. All named inputs must be known.
[[nodiscard]] std::optional<onnx_tensor> fold_elementwise(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Folds reductions over known axes.
[[nodiscard]] std::optional<onnx_tensor> fold_reduction(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Returns the FLOP of a node of ONNX or ONNX Runtime (com.microsoft), none for unknown types. An unknown shape counts as one element.
[[nodiscard]] std::optional<double> operator_flops(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Returns the bytes that a node reads of an input: the selected ones of tables and slices, none of a tensor that is only reshaped.
[[nodiscard]] double bytes_read(const onnx::NodeProto& n, int input, const onnx_lookup& tensor);

/// True if an input is a size, axis, index or single integer of known value, rather than data that the node holds or moves.
[[nodiscard]] bool is_size(const onnx::NodeProto& n, int input, const onnx_lookup& tensor);

/// True if a node gives different outputs for the same inputs.
[[nodiscard]] bool is_random(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// True if the output is the input in another shape, so that no data moves.
[[nodiscard]] bool is_view(const onnx::NodeProto& n);

/// True if a constant has the elements of the first input, reordered, reshaped or unpacked from fewer bits.
[[nodiscard]] bool keeps_constant(const onnx::NodeProto& n);

/// Returns the outputs of a node that ONNX's library, or this version of it, cannot infer; an empty list if there is no rule.
///
/// @param version  of ONNX's operators. Before version 7, arithmetic has the shape of its first input.
[[nodiscard]] std::vector<onnx_tensor> shapes_beyond_onnx(const onnx::NodeProto& n, long long version, const onnx_lookup& tensor);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_operators.ipp>
#endif
