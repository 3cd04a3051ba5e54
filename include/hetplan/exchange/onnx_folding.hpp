// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shapes, and what is computed from them.

#include <optional>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

/// What a node computes from numbers that are known: shapes, and arithmetic with them, whole or in floating point. By output, with type and
/// shape; where `known` is false their number does not say the shape. Empty where the node computes something else.
///
/// Source  ONNX's operator specifications; its own data propagation stops at Range and at floating point. FLOAT is rounded to single
///         precision after each step, as a runtime rounds it.
[[nodiscard]] std::vector<onnx_tensor> fold(const onnx::NodeProto& n, const onnx_lookup& tensor);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_folding.ipp>
#endif
