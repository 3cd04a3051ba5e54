// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Arithmetic with the few numbers that shapes are computed from.

#include <cstddef>
#include <optional>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

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

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_elementwise.ipp>
#endif
