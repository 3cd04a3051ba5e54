// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_distributed_llama.hpp>

#include <algorithm>
#include <cstddef>

#include <hetplan/exchange/runtime_layers.hpp>
#include <hetplan/exchange/runtime_stages.hpp>
#include <hetplan/exchange/shell_word.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE std::vector<device_id> nodes_for_distributed_llama(const plan& p, const planning_graph& model) {
  const auto fail = [](const std::string& why) { detail::refuse_export("distributed-llama", why); };
  detail::require_inference(p, "distributed-llama");
  static_cast<void>(find_runtime_layers(model));
  if (p.stages.size() != 1) fail("all its nodes share every layer; the plan has " + std::to_string(p.stages.size()) + " stages");
  const stage& s = p.stages.front();
  const std::string name = "stage " + io::in_quotes(s.name);
  if (s.rows() > 1) fail("its nodes share tensors, not samples; " + name + " has " + std::to_string(s.rows()) + " rows");
  if (std::any_of(s.columns.begin(), s.columns.end(), [&](int weight) { return weight != s.columns.front(); }))
    fail("it gives every node the same part; the columns of " + name + " do not weigh the same");
  if (s.devices.front().tensor_parallel > 1) fail("a node is one device; that of " + name + " splits its layers");
  if (!s.cuts.empty()) fail("it knows no passes; " + name + " has cuts of its own");
  const std::size_t nodes = s.devices.size();
  if ((nodes & (nodes - 1)) != 0) fail("it runs on 1, 2, 4 ... 2^n nodes; the plan has " + std::to_string(nodes));
  for (const layer& l : model.layers()) {
    if (l.kind != "attention" || l.split_units == 0 || nodes <= static_cast<std::size_t>(l.split_units)) continue;
    fail("it has no more nodes than the model has key/value heads, " + std::to_string(l.split_units) + "; the plan has " +
         std::to_string(nodes));
  }
  std::vector<device_id> all;
  for (const assignment& a : s.devices) all.push_back(a.device);
  return all;
}

HETPLAN_INLINE std::string distributed_llama_commands(const plan& p, const planning_graph& model, const cluster& c) {
  const std::vector<device_id> nodes = nodes_for_distributed_llama(p, model);
  std::string text, workers;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::string& name = detail::address_of(c[nodes[n]], "distributed-llama");
    if (n == 0) continue;
    text += "# on " + name + ":\ndllama worker --port 9999 --nthreads CORES\n";
    workers += " " + shell_word(name + ":9999");
  }
  return text + "# on " + c[nodes.front()].name + ", which has the files:\ndllama chat --model MODEL.m --tokenizer TOKENIZER.t " +
         "--buffer-float-type q80 --nthreads CORES" + (workers.empty() ? "" : " --workers" + workers) + "\n";
}

}  // namespace hetplan::exchange
