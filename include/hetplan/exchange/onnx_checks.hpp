// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Checks of an ONNX file before shapes are inferred, and names of tensors in nested graphs.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange::detail {

/// Maps the name of a tensor to its new name.
using onnx_renaming = std::function<std::string(const std::string&)>;

/// Returns the names of a graph's inputs, constants and node outputs, without its subgraphs.
[[nodiscard]] std::set<std::string> names_made(const onnx::GraphProto& g);

/// Adds every name in a graph and its subgraphs.
void collect_names(const onnx::GraphProto& g, std::set<std::string>& all);

/// Returns the names of a node's inputs and of the tensors that its subgraphs capture from outer graphs.
[[nodiscard]] std::vector<std::string> names_read(const onnx::NodeProto& n);

/// Renames the tensors that a node reads.
/// @param to      names of its inputs and of the tensors that its subgraphs capture.
/// @param own_to  names of tensors defined in its subgraphs. These must not collide with names from `to`.
void rename_reads(onnx::NodeProto& n, const onnx_renaming& to, const onnx_renaming& own_to);

/// Renames the tensors that a nested graph defines and reads, with the parameters of rename_reads.
void rename_graph(onnx::GraphProto& g, const onnx_renaming& to, const onnx_renaming& own_to);

/// Returns an unused name, the wished one or that with a number appended, and marks it as taken.
[[nodiscard]] std::string free_name(std::set<std::string>& taken, const std::string& wish);

using onnx_failure = std::function<void(const std::string&)>;  ///< does not return

[[nodiscard]] std::string label(const onnx::NodeProto& n);

/// Checks that all names are UTF-8, also in subgraphs and functions.
void check_names(const onnx::ModelProto& model, const onnx_failure& fail);

/// Checks that each operator domain has a single version; renames the domain "ai.onnx" to "". `assumed` gets a sentence for a version that
/// the library does not know.
void check_versions(onnx::ModelProto& model, std::vector<std::string>& assumed, const onnx_failure& fail);

/// Checks that every operator has a type and an output, that every tensor is defined once per graph, and that every tensor that is read is
/// defined in its graph or, within branches of If, in an outer graph. Functions must be expanded.
void check_tensors(const onnx::GraphProto& g, const onnx_failure& fail);

/// Checks that the cost of a node can be counted: it has no sparse constants and no subgraphs other than the branches of If.
void check_readable(const onnx::NodeProto& n, const onnx_failure& fail);
void check_readable(const onnx::GraphProto& g, const onnx_failure& fail);

[[nodiscard]] inline bool is_if(const onnx::NodeProto& n) { return n.domain().empty() && n.op_type() == "If"; }

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_checks.ipp>
#endif
