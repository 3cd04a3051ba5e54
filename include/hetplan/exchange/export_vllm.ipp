// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_vllm.hpp>

#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/runtime_stages.hpp>

namespace HETPLAN_NAMESPACE::exchange {

HETPLAN_INLINE vllm_split split_for_vllm(const plan& p, const planning_graph& model) {
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

HETPLAN_INLINE std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c) {
  const vllm_split split = split_for_vllm(p, model);
  std::string ranks, partition;
  for (std::size_t k = 0; k < split.devices.size(); ++k) {
    ranks += (k == 0 ? "" : ", ") + escaped(c[split.devices[k]].name);
    partition += (k == 0 ? "" : ",") + std::to_string(split.layer_partition[k]);
  }
  return "# on " + escaped(c[split.devices.front()].name) + "; pipeline ranks: " + ranks + "\nVLLM_PP_LAYER_PARTITION=" + partition +
         " vllm serve MODEL --pipeline-parallel-size " + std::to_string(split.devices.size()) + "\n";
}

}  // namespace HETPLAN_NAMESPACE::exchange
