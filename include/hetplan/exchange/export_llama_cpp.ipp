// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_llama_cpp.hpp>

#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/runtime_stages.hpp>
#include <hetplan/exchange/shell_word.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE llama_cpp_split split_for_llama_cpp(const plan& p, const planning_graph& model) {
  constexpr std::size_t most_devices = 15;
  detail::require_inference(p, "llama.cpp");
  const std::vector<runtime_stage> stages = runtime_stages(p, model, "llama.cpp");
  llama_cpp_split split;
  split.host = stages.front().device;
  for (const runtime_stage& s : stages) {
    const std::size_t layers = s.blocks() + (s.has_head ? 1 : 0);
    if (layers == 0) continue;
    split.devices.push_back(s.device);
    split.tensor_split.push_back(layers);
    split.gpu_layers += layers;
  }
  if (split.devices.size() > most_devices) {
    detail::refuse_export(
        "llama.cpp", "its -ts takes " + std::to_string(most_devices) + " devices; the plan has " + std::to_string(split.devices.size()));
  }
  return split;
}

HETPLAN_INLINE std::string llama_cpp_command(const plan& p, const planning_graph& model, const cluster& c) {
  const llama_cpp_split split = split_for_llama_cpp(p, model);
  std::string servers, devices, shares;
  for (std::size_t k = 0; k < split.devices.size(); ++k) {
    const char* comma = k == 0 ? "" : ",";
    servers += comma + detail::address_of(c[split.devices[k]], "llama.cpp") + ":50052";
    devices += comma + ("RPC" + std::to_string(k));
    shares += comma + std::to_string(split.tensor_split[k]);
  }
  return "# rpc-server asks nobody who they are, and with --host 0.0.0.0 it listens on every network of the device: start it only where\n"
         "# nobody but you can reach it, or give it the address of that one network instead; never on the internet\n"
         "# on each device:  rpc-server --host 0.0.0.0 --port 50052\n# on " +
         escaped(c[split.host].name) + ", which reads the tokens:\nllama-cli -m MODEL.gguf --rpc " + shell_word(servers) + " --device " +
         devices + " -ngl " + std::to_string(split.gpu_layers) + " -ts " + shares + "\n";
}

}  // namespace hetplan::exchange
