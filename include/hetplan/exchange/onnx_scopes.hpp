// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names of tensors in graphs within graphs: the branches of If, and functions of a file's own.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/linkage.hpp>

namespace hetplan::exchange::detail {

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

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_scopes.ipp>
#endif
