// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What ONNX's operators compute and read, and the shapes that its library does not infer.

#include <optional>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_operators.ipp>
#endif
