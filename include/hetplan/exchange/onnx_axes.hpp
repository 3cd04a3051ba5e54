// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sizes of the axes of an ONNX file's inputs.

#include <map>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_checks.hpp>
#include <hetplan/exchange/onnx_options.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// Puts sizes into the inputs: those that are given, of axes that have none or 0 in the file; else 1 for first axes.
///
/// @param assumed  gets a sentence for each size that nobody gave, of each axis that stays 0, and of a sequence of tokens that count as
/// one.
/// @param fail     does not return: an input that is no tensor or has no shape, an axis without a size, a size for no axis.
/// @return         sizes by the names of axes.
[[nodiscard]] std::map<std::string, long long> size_inputs(onnx::GraphProto& g, const onnx_options& options,
                                                           std::vector<std::string>& assumed, const onnx_failure& fail);

}  // namespace HETPLAN_NAMESPACE::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_axes.ipp>
#endif
