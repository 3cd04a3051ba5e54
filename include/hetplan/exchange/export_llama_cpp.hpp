// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans as command lines of llama.cpp.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/exchange/export_runtimes.hpp>

namespace hetplan::exchange {

/// Tensors that lie apart from the device that runs their block: -ot.
struct llama_cpp_override {
  device_id device;
  bool in_processor = false;             ///< in the memory of the device's processor
  std::vector<std::size_t> blocks = {};  ///< ascending; empty: tensors outside of blocks
  std::string tensors = {};              ///< regular expression for what follows "blk.N." in their names, or for the whole name

  friend bool operator==(const llama_cpp_override&, const llama_cpp_override&) = default;
};

/// Options of llama.cpp that place a model on devices.
struct llama_cpp_split {
  device_id host;                                  ///< runs the command; has the embedding and the files
  std::vector<device_id> devices;                  ///< in the order of --device and --tensor-split
  std::size_t gpu_layers = 0;                      ///< -ngl: all blocks and the head
  std::vector<std::size_t> tensor_split;           ///< -ts: blocks by device; the head counts as one more on its device
  std::vector<device_id> processors = {};          ///< of other machines than the host, listed behind the devices with a share of 0
  std::vector<llama_cpp_override> overrides = {};  ///< -ot; the first one that has a tensor counts
};

/// Returns the options with which llama.cpp places a model as the plan does.
///
/// Layers of experts may lie on another device than the rest of their block: on the host, as where experts are too many for a GPU, or on
/// any other one, which is listed with a share of 0 if it holds nothing else. Where a layer holds more than its experts, as in models at
/// block level, the whole MLP goes there. So may the head, where it is not the embedding's tensor: on a device that has other layers.
///
/// Weights that a stage has in a tier go to the memory of the device's processor, which also computes with them there: on the host to that
/// of the command's own process, mapped from the file; on another machine to a second device of its server. Layers are whole blocks, the
/// attention or MLP of one, or single products by their names in built-in models and in GGUF (q, gate; attn_q, ffn_gate). Files that join
/// the matrices of q, k and v, or of gate and up, follow if all of them go. The embedding lies in the host's processor anyway.
///
/// The runtime sums up the numbers of -ts and divides by the sum, in float. Layer i of the -ngl layers, the last of which is the head,
/// goes to the first device whose cumulative share exceeds float(i) / ngl. With layer counts as numbers both sides are equal quotients of
/// integers at a boundary, so that the layer at the boundary goes to the next device. The embedding always stays on the host. A stage with
/// the embedding alone is therefore the host and no device.
///
/// The model's file must have exactly the plan's blocks: appended blocks for multi-token prediction would count, too.
///
/// Throws      invalid_input (see runtime_stages; training; more devices than -ts takes; experts of one block on several devices; weights
///             of one stage in several tiers, or of a layer without known tensors; a head in a tier that has the embedding's tensor, not on
///             the host).
/// Complexity  that of runtime_stages.
/// Source      ggml-org/llama.cpp, src/llama-model.cpp (load_tensors: splits, i_gpu_start, act_gpu_layers, dev_input), src/llama.cpp
///             (devices stay in the order of --device), common/arg.cpp (--tensor-split: fewer than 16 numbers;
///             parse_tensor_buffer_overrides: PATTERN=BUFFER by comma), src/llama-model-loader.cpp (a pattern is searched for in a tensor's
///             name), ggml/src/ggml-rpc/ggml-rpc.cpp (devices of servers are numbered in their order; ggml_backend_rpc_buffer_type: the
///             buffers of a server's device k are "RPCk[ENDPOINT]"). -ngl turns --fit off (common/fit.cpp).
[[nodiscard]] llama_cpp_split split_for_llama_cpp(const plan& p, const planning_graph& model);

/// Returns the command line. Every device is an RPC server with one device; its name stands for its address. A comment repeats upstream's
/// warning about servers that accept connections from everywhere. In generation -c is the length of all sequences, -ub a chunk of a prompt;
/// several sequences are slots of a server. A machine whose processor holds weights offers it as its server's second device.
///
/// Throws  as split_for_llama_cpp; invalid_input for a device whose name is no address, or weights in a tier that is not its device's
/// first,
///         its processor's memory.
/// Source  ggml-org/llama.cpp, tools/rpc/README.md (the example is fragile and insecure; never on an open network).
[[nodiscard]] std::string llama_cpp_command(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/export_llama_cpp.ipp>
#endif
