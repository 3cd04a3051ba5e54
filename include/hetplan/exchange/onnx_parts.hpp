// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One ONNX file for each device: a model cut where a plan's transfers are. Needs libonnx (target hetplan::onnx).

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// What one device runs in one go.
struct onnx_part {
  device_id device = {};
  int step = 0;      ///< parts run in the order of steps; those of one step do not wait for each other
  std::string text;  ///< of the file: what other parts make or read are its inputs and outputs, by their names in the whole
  std::vector<std::string> beside = {};  ///< files beside it that hold constants of it, as the whole names them
};

/// Cuts a model. A device whose operators wait for another one's in between has several parts, as few as steps: an operator's step is the
/// least that is not before its producers' and, where a producer is on another device, behind it. Constants go with their readers; shapes
/// that were folded are constants in the parts. Weights beside the file stay where they are: parts name the same files. Outputs that are
/// constant are those of the first part.
///
/// @param text   the file that `model` was read from, with the same options.
/// @param p      a plan of that model in one pipeline, every layer on one device.
/// @return       by (step, device).
/// Complexity    O(nodes + edges) logarithms, and the bytes of the constants for each part that reads them.
/// Throws        invalid_input: a plan that splits a layer or has several pipelines; a tensor between parts, or an output, of unknown
///               shape; what read_onnx throws.
/// Source        ours.
[[nodiscard]] std::vector<onnx_part> cut_onnx(std::string_view text, const std::string& file, const onnx_options& options,
                                              const onnx_model& model, const plan& p);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_parts.ipp>
#endif
