// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as command lines of prima.cpp, one per device.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/io/runtime_stages.hpp>
#include <hetplan/io/shell_word.hpp>

namespace hetplan::io {

/// What prima.cpp is told about who has what, by rank.
struct prima_cpp_split {
  std::vector<device_id> devices;          ///< rank 0, the head device, is the plan's last
  std::vector<std::size_t> layer_windows;  ///< -lw
};

/// Splits for prima.cpp: the ranks are the plan's stages, moved on by one.
///
/// The runtime hands out windows of layers round its ring from rank 1 on and rank 0 last, again and again until all layers have
/// a rank; windows that sum to all layers are handed out once. Rank 0 has the embedding and the head. So the plan's last device,
/// which has the head, is rank 0 and the first one is rank 1; the embedding goes to rank 0, too.
///
/// Throws      invalid_input (see runtime_stages; training; a stage without blocks, for which prima.cpp would choose windows of its
///             own or leave the device out; more devices than it has windows for).
/// Complexity  that of runtime_stages.
/// Source      Lizonghang/prima.cpp, src/llama.cpp (this_layer_is_mine, llm_load_llama_tensors), common/common.cpp (a first window of
///             0 asks for its scheduler; 32 windows), README.md (-lw on rank 0, in the order of ranks).
[[nodiscard]] inline prima_cpp_split split_for_prima_cpp(const plan& p, const planning_graph& model) {
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

/// A command line for each device, rank 0 first; a device's name stands for its address.
///
/// Throws  as split_for_prima_cpp; invalid_input for a device whose name is no address.
[[nodiscard]] inline std::string prima_cpp_commands(const plan& p, const planning_graph& model, const cluster& c) {
  const prima_cpp_split split = split_for_prima_cpp(p, model);
  const std::size_t world = split.devices.size();
  const auto name = [&](std::size_t rank) -> const std::string& { return detail::address_of(c[split.devices[rank % world]], "prima.cpp"); };
  std::string windows, text;
  for (const std::size_t w : split.layer_windows) windows += (windows.empty() ? "" : ",") + std::to_string(w);
  for (std::size_t rank = 0; rank < world; ++rank) {
    text += "# on " + name(rank) + ":\nllama-cli -m MODEL.gguf --world " + std::to_string(world) + " --rank " + std::to_string(rank) +
            " --master " + shell_word(name(0)) + " --next " + shell_word(name(rank + 1)) + (rank == 0 ? " -lw " + windows : "") + "\n";
  }
  return text;
}

}  // namespace hetplan::io
