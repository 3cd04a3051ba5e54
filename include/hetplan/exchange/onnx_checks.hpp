// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is wrong with an ONNX file before anything of it is computed.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange::detail {

// Names of tensors in graphs within graphs: the branches of If, and functions of a file's own.

/// The name that a tensor has elsewhere.
using onnx_renaming = std::function<std::string(const std::string&)>;

/// Inputs, constants and what nodes make; nothing of subgraphs.
[[nodiscard]] std::set<std::string> names_made(const onnx::GraphProto& g);

/// Every name in a graph, its subgraphs included.
void collect_names(const onnx::GraphProto& g, std::set<std::string>& all);

/// What a node reads: its inputs, and what its subgraphs take from around them.
[[nodiscard]] std::vector<std::string> names_read(const onnx::NodeProto& n);

/// Renames what a node reads.
///
/// @param to      of its inputs, and what its subgraphs take from around them.
/// @param own_to  of what subgraphs make for themselves. No name of them may be one that `to` gives.
void rename_reads(onnx::NodeProto& n, const onnx_renaming& to, const onnx_renaming& own_to);

/// Renames what a graph within a graph makes and reads, likewise.
void rename_graph(onnx::GraphProto& g, const onnx_renaming& to, const onnx_renaming& own_to);

/// A name that nobody has: as it is wished, or with a number behind it.
[[nodiscard]] std::string free_name(std::set<std::string>& taken, const std::string& wish);

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_checks.ipp>
#endif
