// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_vllm.hpp>

#include <range/v3/view/transform.hpp>

#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/runtime_stages.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

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
  const auto name = [&](device_id d) { return escaped(c[d].name); };
  const auto number = [](std::size_t n) { return std::to_string(n); };
  return "# on " + name(split.devices.front()) + "; pipeline ranks: " + io::joined(split.devices | ranges::views::transform(name)) +
         "\nVLLM_PP_LAYER_PARTITION=" + io::joined(split.layer_partition | ranges::views::transform(number), ",") +
         " vllm serve MODEL --pipeline-parallel-size " + std::to_string(split.devices.size()) + "\n";
}

}  // namespace hetplan::exchange
