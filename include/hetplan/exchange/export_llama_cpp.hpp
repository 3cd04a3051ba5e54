// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a command line of llama.cpp, whose other devices are RPC servers.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// What llama.cpp is told about who has what.
struct llama_cpp_split {
  device_id host;                         ///< runs the command: it has the embedding, and the files
  std::vector<device_id> devices;         ///< in the order of --device and --tensor-split
  std::size_t gpu_layers = 0;             ///< -ngl: all blocks and the head
  std::vector<std::size_t> tensor_split;  ///< -ts: blocks by device; the head is one more on its owner
};

/// Splits for llama.cpp: `-ts` counts layers, so that its rule gives the plan's.
///
/// The runtime sums the numbers of -ts up and divides by the sum, in float; layer i of the -ngl layers, the head being the last,
/// goes to the first device whose share is larger than float(i) / ngl. With counts for numbers both sides are the same quotient of
/// whole numbers at a boundary, and the boundary goes to the device behind it. The embedding always stays with the host, so a
/// stage that has nothing else is the host alone and no device.
///
/// The model's file has to have the plan's blocks: blocks that are appended to predict several tokens would count, too.
///
/// Throws      invalid_input (see runtime_stages; training; more devices than -ts takes).
/// Complexity  that of runtime_stages.
/// Source      ggml-org/llama.cpp, src/llama-model.cpp (load_tensors: splits, i_gpu_start, act_gpu_layers, dev_input), src/llama.cpp
///             (devices stay in the order of --device), common/arg.cpp (--tensor-split: fewer than 16 numbers),
///             ggml/src/ggml-rpc/ggml-rpc.cpp (devices of servers are numbered in their order).
[[nodiscard]] llama_cpp_split split_for_llama_cpp(const plan& p, const planning_graph& model);

/// The command line, every device an RPC server of one device under its name, which stands for its address; with what upstream says
/// of servers that accept connections from everybody.
///
/// Throws  as split_for_llama_cpp; invalid_input for a device whose name is no address.
/// Source  ggml-org/llama.cpp, tools/rpc/README.md (the example is fragile and insecure; never on an open network).
[[nodiscard]] std::string llama_cpp_command(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/export_llama_cpp.ipp>
#endif
