// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a command line of vLLM's pipeline parallelism.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// What vLLM is told about who has what, by pipeline rank.
struct vllm_split {
  std::vector<device_id> devices;
  std::vector<std::size_t> layer_partition;  ///< VLLM_PP_LAYER_PARTITION
};

/// Splits for vLLM: a rank has the next so many decoder layers; the first has the embedding, the last the norm and the head.
///
/// Throws      invalid_input (see runtime_stages; training; a stage without blocks: the rule takes a 0, but that a rank without
///             layers serves has not been seen).
/// Complexity  that of runtime_stages.
/// Source      vllm-project/vllm, vllm/distributed/utils.py (get_pp_indices: as many numbers as ranks, which sum to all layers).
[[nodiscard]] vllm_split split_for_vllm(const plan& p, const planning_graph& model);

/// The command line, where it is run, and which rank has to be which device.
///
/// vLLM has no option for the latter: over Ray the machine of the command is rank 0, the others follow by their addresses.
/// Throws  as split_for_vllm.
/// Source  vllm-project/vllm, vllm/executor/ray_distributed_executor.py (sort_by_driver_then_worker_ip).
[[nodiscard]] std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/export_vllm.ipp>
#endif
