// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a command line of vLLM's pipeline parallelism.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/device.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

// A language model as its runtimes see it: an embedding, numbered blocks, a head.

/// Every layer of a model stands in one of the three parts, each sorted by id; embedding and head may be empty.
struct runtime_layers {
  std::vector<layer_id> embedding;
  std::vector<std::vector<layer_id>> blocks;  ///< what the runtime numbers 0, 1, ...
  std::vector<layer_id> head;
};

/// Finds the blocks that a runtime numbers, by the names of the layers: of all that stands before a number at the end of a part
/// of the names (parts end at dots), what has the most numbers is the stack of blocks; on a tie the first in alphabetical order, so
/// that a block comes before its own parts. Where layers are of kind "attention" only their numbers are counted, as a block may have
/// more experts than the model has blocks. The layers without such a number are the embedding where blocks read them and the head
/// where they read blocks.
///
/// Throws       invalid_input that names the layer: no numbers, a gap, an edge back to an earlier block, a layer between blocks or
///              beside them, attention outside of the blocks (a second stack, which none of the runtimes splits).
/// Complexity   O(layers log layers + edges).
/// Source       ours: model files do not say what a block is, and every naming of them that we know numbers them: "layers.0.q" of
///              Hugging Face's models, "blk.0.attn_q" of GGUF, "l0.q" of the built-in ones.
[[nodiscard]] runtime_layers find_runtime_layers(const planning_graph& model);

// A plan as runtimes that split a model between blocks can run it: one device after the other, each with a range of blocks.

/// One device's part: blocks [first_block, end_block).
struct runtime_stage {
  stage_id stage;
  device_id device;
  std::size_t first_block = 0;
  std::size_t end_block = 0;
  bool has_head = false;  ///< the last stage; a model without a head has one all the same: the runtime's

  [[nodiscard]] std::size_t blocks() const { return end_block - first_block; }
};

namespace detail {

[[noreturn]] void refuse_export(std::string_view runtime, const std::string& why);

struct stage_row {
  std::vector<stage_id> order;     ///< the model's
  std::vector<std::size_t> place;  ///< by layer: of its stage in that order
};

/// Throws invalid_input where the plan is no row of single devices.
stage_row stages_in_a_row(const plan& p, const planning_graph& model, std::string_view runtime);

}  // namespace detail

/// The stages of a plan in the order of the model, as ranges of its blocks. The first one has the embedding, the last one the
/// head; either may have nothing else.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input, one sentence: the model has no blocks (see find_runtime_layers); several pipelines, a stage with
///                 several devices or tensor parallelism, a device with two stages, no row of stages; a cut inside a block, the
///                 embedding or the head.
/// Complexity      O(layers log layers + edges).
/// Source          ours: what the runtimes of the exports have in common, each of whose headers names its own rule.
[[nodiscard]] std::vector<runtime_stage> runtime_stages(const plan& p, const planning_graph& model, std::string_view runtime);

namespace detail {

/// Throws invalid_input for a plan of training, which the runtime does not do.
void require_inference(const plan& p, std::string_view runtime);

/// A device's name, where a command line has it for an address: a comma would make two of it, a hyphen at its begin an option.
///
/// Throws invalid_input for a name that no machine has.
/// Source  RFC 1123, section 2.1 (names of machines: letters, digits, hyphens, dots), and the underscore that many have all the same.
const std::string& address_of(const device& d, std::string_view runtime);

/// Throws invalid_input for a stage that has nothing but the embedding or the head.
void require_blocks(const std::vector<runtime_stage>& stages, const plan& p, std::string_view runtime);

}  // namespace detail

// A plan whose cuts are between blocks, from one that cuts anywhere: what a runtime can run that is nearest to it.

/// The plan with every cut inside a block moved to an end of the block.
///
/// A block goes whole to the stage that has most of its forward FLOP (of its layers where it has none; the first on a tie), the
/// embedding to the first stage, the head to the last. A stage that is left with nothing is left out. Transfer rules and the
/// prediction are given up, and the warm-up where the number of stages changes.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input (see runtime_stages; cuts are allowed everywhere, explicit orders are not).
/// Complexity      O(layers log layers + edges + blocks x stages).
/// Source          ours: planners cut where it is cheapest, the runtimes between blocks; a block follows most of its work, so that
///                 the least work changes devices.
[[nodiscard]] plan with_whole_blocks(const plan& p, const planning_graph& model, std::string_view runtime);

// Names in command lines that people paste.

/// The text as one word of a POSIX shell: as it is where no character means anything to the shell, else between single quotes.
///
/// Source  POSIX.1-2017, Shell Command Language, section 2.2, Quoting.
[[nodiscard]] std::string shell_word(std::string_view text);

// A plan as command lines of distributed-llama, whose nodes share every tensor of the model.

/// The nodes of a plan for distributed-llama, the root, which has the model's file and the embedding, first.
///
/// Throws      invalid_input, one sentence: training; several stages or pipelines, samples that devices share, columns of unlike weights,
/// tensor
///             parallelism inside a device; a number of devices that is no power of two or above that of key/value heads, where the
///             model has them (units of its attention); no blocks (see find_runtime_layers).
/// Complexity  that of find_runtime_layers.
/// Source      b4rtaz/distributed-llama, README.md (1, 2, 4 ... 2^n nodes, as many as key/value heads at most), src/app.cpp.
[[nodiscard]] std::vector<device_id> nodes_for_distributed_llama(const plan& p, const planning_graph& model);

/// A command line for each worker and for the root; a device's name stands for its address.
///
/// Throws  as nodes_for_distributed_llama; invalid_input for a device whose name is no address.
/// Source  b4rtaz/distributed-llama, README.md (q40 models go with q80 buffers; --workers host:port, behind one another).
[[nodiscard]] std::string distributed_llama_commands(const plan& p, const planning_graph& model, const cluster& c);

// A plan as a command line of llama.cpp, whose other devices are RPC servers.

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

// A plan as command lines of prima.cpp, one per device.

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

// A plan as a split_spec of torch.distributed.pipelining.

/// A stage begins before a block, or behind one.
struct torch_split_point {
  std::size_t block = 0;
  bool at_end = false;  ///< SplitPoint.END; else BEGINNING

  friend bool operator==(const torch_split_point&, const torch_split_point&) = default;
};

/// What torch.distributed.pipelining is told about who has what.
struct torch_split {
  std::vector<device_id> devices;  ///< by stage
  std::vector<torch_split_point> points;
};

/// Splits for torch.distributed.pipelining.
///
/// A stage begins before its first block. Where the head is a stage of its own, that is the end of the last block; a module is
/// named once, so boundaries behind the last block without one (counted from the back) are the ends of the blocks before them.
///
/// Throws      invalid_input (see runtime_stages; a boundary before and behind every block: no module is left to name).
/// Complexity  that of runtime_stages.
/// Source      pytorch/pytorch, torch/distributed/pipelining/_IR.py (pipeline(split_spec), annotate_split_points: a boundary before
///             or behind the call of the named module).
[[nodiscard]] torch_split split_for_torch(const plan& p, const planning_graph& model);

/// Python text that defines `split_spec`.
///
/// @param blocks  where the module has its blocks, as in "model.layers".
/// Throws         as split_for_torch.
[[nodiscard]] std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c,
                                           std::string_view blocks = "layers");

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
[[nodiscard]] vllm_split split_for_vllm(const plan& p, const planning_graph& model);

/// The command line, where it is run, and which rank has to be which device.
///
/// vLLM has no option for the latter: over Ray the machine of the command is rank 0, the others follow by their addresses.
/// Throws  as split_for_vllm.
/// Source  vllm-project/vllm, vllm/executor/ray_distributed_executor.py (sort_by_driver_then_worker_ip).
[[nodiscard]] std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/export_runtimes.ipp>
#endif
