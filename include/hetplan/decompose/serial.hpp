// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A DAG as a row of serial chains.

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::decompose {

/// Splits the graph of blocks into maximal serial chains and lists them so that every edge points forward.
///
/// Neighbouring blocks u, v share a chain exactly if v is u's only successor and u is v's only predecessor;
/// edges of the model between the same two blocks count once. The DAG need not be series-parallel.
///
/// @param blocks    a partition of the model's layers, in any numbering, whose quotient has no cycle.
/// @return          chains in a topological order: always the one with the smallest block that is ready.
/// Complexity       O(layers log layers + edges log edges).
/// Determinism      see @return.
/// Throws           invalid_input (no partition of the model's layers; the quotient has a cycle).
/// Source           Dora sec. 4.1, serial decomposition.
[[nodiscard]] layer_sequence serial(const planning_graph& model, const coarsen::blocks& blocks);

/// Every layer a block.
[[nodiscard]] inline layer_sequence serial(const planning_graph& model) { return serial(model, coarsen::each_layer(model)); }

}  // namespace hetplan::decompose

#ifndef HETPLAN_COMPILED
#include <hetplan/decompose/serial.ipp>
#endif
