// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What ONNX's operators compute and read, and the shapes that its library does not infer.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

// FLOP of ONNX's operators that multiply matrices, follow an equation, attend or slide a window.

/// A node and the tensors that it reads.
struct operator_view {
  const onnx::NodeProto& node;
  const onnx_lookup& tensor;

  [[nodiscard]] const std::string& type() const { return node.op_type(); }
  [[nodiscard]] const onnx_tensor& in(int i) const { return tensor(input_of(node, i)); }
  [[nodiscard]] bool has(int i) const { return !input_of(node, i).empty(); }
  [[nodiscard]] double out() const { return tensor(first_output(node)).elements(); }
  /// Size of an axis of an input, from the back where it is negative; 1 where it is not known.
  [[nodiscard]] double axis(int input, int i) const {
    const auto& s = in(input).shape;
    const int at = i < 0 ? i + static_cast<int>(s.size()) : i;
    return at < 0 || at >= static_cast<int>(s.size()) ? 1 : static_cast<double>(s[static_cast<std::size_t>(at)]);
  }
  [[nodiscard]] double attribute(std::string_view name, long long otherwise) const {
    return static_cast<double>(attribute_or(node, name, otherwise));
  }
};

/// Does ONNX Runtime add the operator?
[[nodiscard]] inline bool is_microsoft(const onnx::NodeProto& n) { return n.domain() == "com.microsoft"; }

/// Nothing for operators of other kinds.
[[nodiscard]] std::optional<double> product_flops(const operator_view& o);

/// Why the equation of Einsum does not fit its inputs; "" where it does, as far as they are known.
[[nodiscard]] std::string einsum_fault(const operator_view& o);

/// What Einsum makes; nothing where an input that is not known would have to say it.
[[nodiscard]] std::vector<onnx_tensor> einsum_shape(const operator_view& o);

/// What attention multiplies, whatever is packed in what.
struct attention_sizes {
  double batch, queries, keys, heads;
  double key, value;  ///< widths of all heads of queries together: where they meet keys, and of what comes out

  /// Products with keys and with values, and the softmax between: the full square, whatever is masked.
  [[nodiscard]] double flops() const;
};

/// Of ONNX Runtime's Attention, MultiHeadAttention and GroupQueryAttention.
[[nodiscard]] attention_sizes microsoft_attention(const operator_view& o);

// Arithmetic with the few numbers that shapes are computed from.

/// The shape that several have when they are spread over each other; nothing where they do not fit.
[[nodiscard]] std::optional<std::vector<long long>> spread_shape(const std::vector<std::vector<long long>>& shapes);

/// For each element of `wide`, the one of `narrow` that stands there.
[[nodiscard]] std::vector<std::size_t> spread_places(const std::vector<long long>& narrow, const std::vector<long long>& wide);

/// A number of one type in another, as Cast has it: rounded to single precision, or cut to whole; nothing where it has no place there.
[[nodiscard]] std::optional<double> rounded(double v, int type);

/// What is computed number by number: sums, comparisons, roots, casts, choices. Nothing where the node computes something else, or a
/// number that has no place in its type. All inputs that have names are known.
[[nodiscard]] std::optional<onnx_tensor> fold_elementwise(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Reductions over axes that are known.
[[nodiscard]] std::optional<onnx_tensor> fold_reduction(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// FLOP of a node; nothing where its type is not known. Of ONNX's own operators and those that ONNX Runtime adds (com.microsoft).
///
/// A tensor of unknown shape counts as one element.
[[nodiscard]] std::optional<double> operator_flops(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Bytes that a node reads of one input: of tables and of what is cut, those that come out; of what is only given another shape, none.
[[nodiscard]] double bytes_read(const onnx::NodeProto& n, int input, const onnx_lookup& tensor);

/// Is an input no data that the node holds or moves, but a size, an axis, a place or a single whole number, which is known?
[[nodiscard]] bool is_size(const onnx::NodeProto& n, int input, const onnx_lookup& tensor);

/// Does it give something else each time, whatever it reads?
[[nodiscard]] bool is_random(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Is the output the input under another shape, so that nothing moves?
[[nodiscard]] bool is_view(const onnx::NodeProto& n);

/// Are the numbers of a constant still those of the first input: in another order, shape, or unpacked from fewer bits?
[[nodiscard]] bool keeps_constant(const onnx::NodeProto& n);

/// By output, the shapes of what ONNX's library does not know, or not in this version; empty where there is no rule.
///
/// @param version  of ONNX's operators: before 7, arithmetic is in the shape of its first input.
[[nodiscard]] std::vector<onnx_tensor> shapes_beyond_onnx(const onnx::NodeProto& n, long long version, const onnx_lookup& tensor);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_operators.ipp>
#endif
