// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_prima_cpp.hpp>

#include <algorithm>

#include <range/v3/view/transform.hpp>

#include <hetplan/exchange/runtime_stages.hpp>
#include <hetplan/exchange/shell_word.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE prima_cpp_split split_for_prima_cpp(const plan& p, const planning_graph& model) {
  constexpr std::size_t most_devices = 32;
  detail::require_inference(p, "prima.cpp");
  std::vector<runtime_stage> stages = runtime_stages(p, model, "prima.cpp");
  detail::require_blocks(stages, p, "prima.cpp");
  if (stages.size() > most_devices) {
    detail::refuse_export("prima.cpp",
                          "it has windows for " + std::to_string(most_devices) + " devices; the plan has " + std::to_string(stages.size()));
  }
  std::rotate(stages.begin(), stages.end() - 1, stages.end());
  prima_cpp_split split;
  for (const runtime_stage& s : stages) {
    split.devices.push_back(s.device);
    split.layer_windows.push_back(s.blocks());
  }
  return split;
}

HETPLAN_INLINE std::string prima_cpp_commands(const plan& p, const planning_graph& model, const cluster& c) {
  const prima_cpp_split split = split_for_prima_cpp(p, model);
  const std::size_t world = split.devices.size();
  const auto name = [&](std::size_t rank) -> const std::string& { return detail::address_of(c[split.devices[rank % world]], "prima.cpp"); };
  std::string text;
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const std::string windows = io::joined(split.layer_windows | ranges::views::transform(number), ",");
  for (std::size_t rank = 0; rank < world; ++rank) {
    text += "# on " + name(rank) + ":\nllama-cli -m MODEL.gguf --world " + std::to_string(world) + " --rank " + std::to_string(rank) +
            " --master " + shell_word(name(0)) + " --next " + shell_word(name(rank + 1)) + (rank == 0 ? " -lw " + windows : "") + "\n";
  }
  return text;
}

}  // namespace hetplan::exchange
