// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placements written as JSON; workloads and splits read from the files of the dnn-partitioning tools.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// Returns a plan's placement as JSON:
/// `{"format": "hetplan/placement/1", "model": M, "cluster": C, "placement": {LAYER: DEVICE, ...}, "order": {DEVICE: [LAYER, ...], ...}}`.
/// Layers of `placement` stand in the model's order, those of a device in `order` in the order of execution.
///
/// @param p    a valid plan with one pipeline.
/// Complexity  O(layers + orders).
/// Throws      invalid_input (several pipelines, or a layer on several devices: a placement has one device per operator).
/// Source      ours: what x_ik and the start times of Moirai's solution say.
[[nodiscard]] std::string write_placement(const plan& p, const planning_graph& model, const cluster& c);

/// A workload and the ids of its operators in the file.
struct dnn_partitioning_workload {
  place::placement_workload workload;
  std::vector<long long> ids;  ///< one per operator
};

/// Reads a workload: `maxSizePerFPGA` [B], `maxFPGAs`, `maxCPUs`, `nodes` (`id`, `supportedOnFpga`, `cpuLatency` [ms], `fpgaLatency`
/// [ms], `isBackwardNode`, `size` [B], optionally `colorClass`, `name`), `edges` (`sourceId`, `destId`, `cost` [ms]). Other keys are
/// ignored.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: another format, a duplicate or unknown id, a number that is negative or not
///         finite, two costs for the output of one node, an edge from a backward to a forward node, a cycle, no node, no device.
/// Source  the README of github.com/msr-fiddle/dnn-partitioning, "Input format".
[[nodiscard]] dnn_partitioning_workload read_dnn_partitioning(const io::json_document& d);

/// Reads a split: lists of devices `fpgas` and `cpus`, each with its `nodes`. A missing node goes to the device of its color class.
///
/// @return  the device of each operator: accelerators first, then CPUs.
/// Throws   invalid_input `FILE: /pointer: expected X, got Y`: another format, unknown ids, a node listed twice, a node that neither a list
///          nor its color places, more devices with nodes than the workload has.
/// Source   the README of github.com/msr-fiddle/dnn-partitioning, "Human-expert baseline".
[[nodiscard]] std::vector<std::size_t> read_dnn_partitioning_split(const io::json_document& d, const dnn_partitioning_workload& of);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/dnn_partitioning_json.ipp>
#endif
