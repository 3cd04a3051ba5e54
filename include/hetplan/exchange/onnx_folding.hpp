// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shapes, and what is computed from them.

#include <optional>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// Integers that a node computes.
struct folded_values {
  std::vector<long long> values;
  int type = 0;
  std::optional<std::vector<long long>> shape = {};  ///< nothing: their number does not say it
};

/// What a node computes from integers that are known: shapes, and arithmetic with them. Nothing where it computes something else.
///
/// Source  ONNX's operator specifications; its own data propagation stops at Range and at floating point.
[[nodiscard]] std::optional<folded_values> fold(const onnx::NodeProto& n, const onnx_lookup& tensor);

}  // namespace HETPLAN_NAMESPACE::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_folding.ipp>
#endif
