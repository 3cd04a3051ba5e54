// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is wrong with an ONNX file before anything of it is computed.

#include <functional>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/linkage.hpp>

namespace hetplan::exchange::detail {

using onnx_failure = std::function<void(const std::string&)>;  ///< does not return

/// What a message calls a node.
[[nodiscard]] std::string label(const onnx::NodeProto& n);

/// Is every name UTF-8, in subgraphs and functions, too?
void check_names(const onnx::ModelProto& model, const onnx_failure& fail);

/// One version for each domain of operators, "ai.onnx" being "".
///
/// @param assumed  gets a sentence of a version that the library does not know.
void check_versions(onnx::ModelProto& model, std::vector<std::string>& assumed, const onnx_failure& fail);

/// Does every operator have a type and make something, is every tensor made once in its graph, and everything that is read made in it or,
/// within branches of If, around it? Functions are expanded before.
void check_tensors(const onnx::GraphProto& g, const onnx_failure& fail);

/// Can a node be counted? Subgraphs, but for the branches of If, and sparse constants cannot.
void check_readable(const onnx::NodeProto& n, const onnx_failure& fail);
void check_readable(const onnx::GraphProto& g, const onnx_failure& fail);

[[nodiscard]] inline bool is_if(const onnx::NodeProto& n) { return n.domain().empty() && n.op_type() == "If"; }

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_checks.ipp>
#endif
