// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement tables in the formats of Moirai's and dnn-partitioning's samples, and as a model on a cluster.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::exchange {

/// Reads a sample graph of Moirai's: `n`, `devices`, `edges` [[from, to]], `op_time_ms` [operator][device], `edge_time_ms`
/// [edge][from][to], `memory` [operator], `capacity` [device] (the same unit; as a rule bytes). Other keys are ignored.
///
/// Every pair of devices has a wire of its own.
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: what is no such file, other counts than `n` and `devices` say, a number that
///         is negative or not finite, an edge that leads nowhere or stands twice, a cycle, no operator, no device.
/// Source  the samples of github.com/moirai-placement/moirai.
[[nodiscard]] place::placement_table read_moirai(const io::json_document& d);

/// Reads a latency workload of dnn-partitioning's (exchange/dnn_partitioning_json.hpp has the format) as one inference: accelerators
/// first, then CPUs. An output takes its cost into and out of an accelerator, so twice from one accelerator to another, and nothing
/// between CPUs, which share their memory. Every accelerator is joined to the memory by a wire each way.
///
/// Operators that belong on one device are one operator (place::make_placement_units).
/// Throws  as read_dnn_partitioning; invalid_input (a backward operator).
/// Source  Tarnawski et al., NeurIPS 2020, appendix F. Deviations: there, an accelerator may also move data while it computes or not,
///         by its model; here transfers run beside the work.
[[nodiscard]] place::placement_table read_dnn_partitioning_latency(const io::json_document& d);

/// A table as a model, measured on each device as a kind of its own, and a cluster.
struct table_model {
  planning_graph model;
  hetplan::cluster cluster;
  double largest_error = 0;  ///< of a transfer's time, relative to the longest that the edge has; 0: bytes over bandwidth say it all
};

/// The model and the cluster whose placement table comes nearest to a given one: every edge has bytes, every pair of devices a
/// bandwidth, by least squares against the pair that is slowest on the whole; the slowest pair has 1 GB/s.
///
/// Complexity  O(edges x devices^2).
/// Throws      invalid_input (an operator that some device cannot run: profiles cannot say that of a kind; tied tensors).
/// Source      ours: one time per edge and pair is more than bytes and bandwidths can say, so the error is told; what is found or proven of
///             the model is then not so of the table, which place::find_schedule takes as it is.
[[nodiscard]] table_model model_of(const place::placement_table& t, const std::string& name);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/moirai_json.ipp>
#endif
