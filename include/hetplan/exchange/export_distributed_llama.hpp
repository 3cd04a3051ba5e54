// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as command lines of distributed-llama, whose nodes share every tensor of the model.

#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// The nodes of a plan for distributed-llama, the root, which has the model's file and the embedding, first.
///
/// Throws      invalid_input, one sentence: training; several stages or pipelines, samples that devices share, columns of unlike weights,
/// tensor
///             parallelism inside a device; a number of devices that is no power of two or above that of key/value heads, where the
///             model has them (units of its attention); no blocks (see find_runtime_layers).
/// Complexity  that of find_runtime_layers.
/// Source      b4rtaz/distributed-llama, README.md (1, 2, 4 ... 2^n nodes, as many as key/value heads at most), src/app.cpp.
[[nodiscard]] std::vector<device_id> nodes_for_distributed_llama(const plan& p, const planning_graph& model);

/// A command line for each worker and for the root; a device's name stands for its address.
///
/// Throws  as nodes_for_distributed_llama; invalid_input for a device whose name is no address.
/// Source  b4rtaz/distributed-llama, README.md (q40 models go with q80 buffers; --workers host:port, behind one another).
[[nodiscard]] std::string distributed_llama_commands(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/export_distributed_llama.ipp>
#endif
