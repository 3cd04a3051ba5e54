// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as command lines of prima.cpp, one per device.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

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
[[nodiscard]] prima_cpp_split split_for_prima_cpp(const plan& p, const planning_graph& model);

/// A command line for each device, rank 0 first; a device's name stands for its address.
///
/// Throws  as split_for_prima_cpp; invalid_input for a device whose name is no address.
[[nodiscard]] std::string prima_cpp_commands(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/export_prima_cpp.ipp>
#endif
