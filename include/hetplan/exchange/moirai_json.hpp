// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement tables read from sample files of Moirai and dnn-partitioning, and converted to a model and a cluster.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::exchange {

/// Reads a sample graph of Moirai: `n`, `devices`, `edges` [[from, to]], `op_time_ms` [operator][device], `edge_time_ms`
/// [edge][from][to], `memory` [operator], `capacity` [device] (both in the same unit, usually bytes). Other keys are ignored. Every ordered
/// pair of devices has a link of its own.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: another format, counts other than `n` and `devices`, a number that is
///         negative or not finite, an edge with an unknown end or listed twice, a cycle, no operator, no device.
/// Source  the samples of github.com/moirai-placement/moirai.
[[nodiscard]] place::placement_table read_moirai(const io::json_document& d);

/// Reads a latency workload of dnn-partitioning (format: exchange/dnn_partitioning_json.hpp) as one inference: accelerators first, then
/// CPUs. A transfer takes the output's cost once for each accelerator at its ends: twice between two accelerators, never between CPUs,
/// which share memory. Every accelerator has one link to the memory in each direction. Operators that must share a device become one
/// operator (place::make_placement_units).
///
/// Throws  as read_dnn_partitioning; invalid_input (a backward operator).
/// Source  Tarnawski et al., NeurIPS 2020, appendix F. Deviation: there the model says whether an accelerator moves data while it computes;
///         here transfers always overlap with computation.
[[nodiscard]] place::placement_table read_dnn_partitioning_latency(const io::json_document& d);

/// A placement table as a cluster and a model with profiles, one device kind per group of devices with equal times.
struct table_model {
  planning_graph model;
  hetplan::cluster cluster;
  double largest_error = 0;  ///< largest relative error of a transfer time, against the edge's longest; 0: bytes over bandwidth are exact
};

/// Returns the model and the cluster whose placement table is nearest to the given one. Bytes of edges and bandwidths of pairs are fitted
/// by least squares against the pair that is slowest in total, which has 1 GB/s.
///
/// Complexity  O(edges x devices^2).
/// Throws      invalid_input (an operator that some device cannot run, which profiles cannot express; tied tensors).
/// Source      ours: one time per edge and pair is more than bytes and bandwidths can express, hence the reported error. Results and proofs
///             for the model do not hold for the table; place::find_schedule works on the table itself.
[[nodiscard]] table_model model_of(const place::placement_table& t, const std::string& name);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/moirai_json.ipp>
#endif
