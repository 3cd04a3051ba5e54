// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a command line of vLLM's pipeline parallelism.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/io/runtime_stages.hpp>

namespace hetplan::io {

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
[[nodiscard]] inline vllm_split split_for_vllm(const plan& p, const planning_graph& model) {
  detail::require_inference(p, "vLLM");
  const std::vector<runtime_stage> stages = runtime_stages(p, model, "vLLM");
  detail::require_blocks(stages, p, "vLLM");
  vllm_split split;
  for (const runtime_stage& s : stages) {
    split.devices.push_back(s.device);
    split.layer_partition.push_back(s.blocks());
  }
  return split;
}

/// The command line, where it is run, and which rank has to be which device.
///
/// vLLM has no option for the latter: over Ray the machine of the command is rank 0, the others follow by their addresses.
/// Throws  as split_for_vllm.
/// Source  vllm-project/vllm, vllm/executor/ray_distributed_executor.py (sort_by_driver_then_worker_ip).
[[nodiscard]] inline std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c) {
  const vllm_split split = split_for_vllm(p, model);
  std::string ranks, partition;
  for (std::size_t k = 0; k < split.devices.size(); ++k) {
    ranks += (k == 0 ? "" : ", ") + escaped(c[split.devices[k]].name);
    partition += (k == 0 ? "" : ",") + std::to_string(split.layer_partition[k]);
  }
  return "# on " + escaped(c[split.devices.front()].name) + "; pipeline ranks: " + ranks + "\nVLLM_PP_LAYER_PARTITION=" + partition +
         " vllm serve MODEL --pipeline-parallel-size " + std::to_string(split.devices.size()) + "\n";
}

}  // namespace hetplan::io
