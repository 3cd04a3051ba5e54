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

/// A training workload as a model with profiles, and its devices.
struct dnn_partitioning_model {
  planning_graph model;
  hetplan::cluster cluster;
};

/// Returns a training workload as layers with a forward and a backward on device kinds `accelerator` and `cpu`. Operators of a color are
/// one layer, and so are those between which forward edges and turned-round backward edges go in circles. A sample is one run.
///
/// A layer's `size` is frozen weight: it takes its bytes once on each device. Tensors have the bytes that their cost takes at 1 GB/s, once
/// for each layer that reads them: forward ones from layer to layer; backward ones, and forward ones that only a backward of an earlier
/// layer reads, as gradients. Every accelerator has a link of 1 GB/s out of and one into the memory that the CPUs share.
///
/// @param w     as read_dnn_partitioning reads it.
/// Complexity   O((operators + edges) log).
/// Throws       invalid_input (an operator that accelerators cannot run, which profiles cannot express).
/// Source       Tarnawski et al., NeurIPS 2020 (colors, training workloads). Deviation: transfers of an accelerator overlap with its work.
[[nodiscard]] dnn_partitioning_model dnn_partitioning_training(const dnn_partitioning_workload& w, const std::string& name);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/dnn_partitioning_json.ipp>
#endif
