// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Workloads and splits in the format of the dnn-partitioning tools.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

// A plan as a placement: which device runs which operator, for whoever loads a graph and moves its operators.

/// `{"format": "hetplan/placement/1", "model": M, "cluster": C, "placement": {LAYER: DEVICE, ...}, "order": {DEVICE: [LAYER, ...], ...}}`:
/// layers in the model's order; each device's in the order in which it runs them.
///
/// @param p    a valid plan with one pipeline.
/// Complexity  O(layers + orders).
/// Throws      invalid_input (several pipelines, or a layer that several devices share: a placement is one device per operator).
/// Source      ours: what Moirai's x_ik say, and the order that its start times say.
[[nodiscard]] std::string write_placement(const plan& p, const planning_graph& model, const cluster& c);

/// A workload and the ids that its file gives the operators.
struct dnn_partitioning_workload {
  place::placement_workload workload;
  std::vector<long long> ids;  ///< by operator
};

/// Reads a workload: `maxSizePerFPGA` [B], `maxFPGAs`, `maxCPUs`, `nodes` (`id`, `supportedOnFpga`, `cpuLatency` [ms], `fpgaLatency`
/// [ms], `isBackwardNode`, `size` [B], and if given `colorClass`, `name`), `edges` (`sourceId`, `destId`, `cost` [ms]). Other keys are
/// ignored.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: what is no such file, an id twice or unknown, a number that is negative
///         or not finite, two costs for the output of one node, an edge back to a forward node, a cycle, no node, no device.
/// Source  the README of github.com/msr-fiddle/dnn-partitioning, "Input format".
[[nodiscard]] dnn_partitioning_workload read_dnn_partitioning(const io::json_document& d);

/// Reads a split: lists of devices `fpgas` and `cpus`, each with its `nodes`. Nodes that are not listed go where others of their color are.
///
/// @return  the device of each operator: accelerators first, then CPUs.
/// Throws   invalid_input `FILE: /pointer: expected X, got Y`: what is no split, unknown ids, a node twice, one that no list and no
///          color places, more devices with nodes than there are.
/// Source   the README of github.com/msr-fiddle/dnn-partitioning, "Human-expert baseline".
[[nodiscard]] std::vector<std::size_t> read_dnn_partitioning_split(const io::json_document& d, const dnn_partitioning_workload& of);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/dnn_partitioning_json.ipp>
#endif
