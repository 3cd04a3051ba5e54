// SPDX-License-Identifier: BSL-1.0
#pragma once
/// FLOP of ONNX's operators that multiply matrices, follow an equation, attend or slide a window.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

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

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_products.ipp>
#endif
