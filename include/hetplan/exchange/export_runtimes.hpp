// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans as command lines of distributed-llama, exo, prima.cpp, torch.distributed.pipelining and vLLM, and what all exports share.

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

/// The layers of a model in three parts, each sorted by id. Embedding and head may be empty.
struct runtime_layers {
  std::vector<layer_id> embedding;
  std::vector<std::vector<layer_id>> blocks;  ///< by the runtime's number of the block
  std::vector<layer_id> head;
};

/// Finds a model's blocks by the numbers in its layers' names.
///
/// A name may have a number at the end of each of its parts, which dots separate. The text before a number is its stem. The stem with the
/// most numbers is the stack of blocks; ties go to the first stem in alphabetical order, so that a block comes before its own parts. In
/// models with layers of kind "attention" only the numbers of these layers count, as a block may have more experts than the model has
/// blocks. Layers without such a number are the embedding if blocks read them and the head if they read blocks.
///
/// Throws       invalid_input that names the layer: no numbers, a gap, an edge back to an earlier block, a layer between blocks or
///              beside them, attention outside of the blocks (a second stack, which none of the runtimes splits).
/// Complexity   O(layers log layers + edges).
/// Source       ours: model files do not mark blocks, and every naming scheme that we know numbers them: "layers.0.q" in Hugging Face's
///              models, "blk.0.attn_q" in GGUF, "l0.q" in the built-in ones.
[[nodiscard]] runtime_layers find_runtime_layers(const planning_graph& model);

/// A stage of one device: blocks [first_block, end_block).
struct runtime_stage {
  stage_id stage;
  device_id device;
  std::size_t first_block = 0;
  std::size_t end_block = 0;
  bool has_head = false;  ///< true for the last stage, even if the model has no head: the runtime adds one

  [[nodiscard]] std::size_t blocks() const { return end_block - first_block; }
};

namespace detail {

[[noreturn]] void refuse_export(std::string_view runtime, const std::string& why);

struct stage_row {
  std::vector<stage_id> order;     ///< stages in the model's order
  std::vector<std::size_t> place;  ///< by layer: index of its stage in `order`
};

/// Throws invalid_input unless the plan is a chain of stages with one device each.
stage_row stages_in_a_row(const plan& p, const planning_graph& model, std::string_view runtime);

}  // namespace detail

/// Returns a plan's stages in the model's order, as ranges of blocks. The first has the embedding, the last the head; both may lack blocks.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input, one sentence: a model without blocks (see find_runtime_layers); several pipelines, a stage with
///                 several devices or tensor parallelism, a device with two stages, stages that form no chain; a cut inside a block, the
///                 embedding or the head.
/// Complexity      O(layers log layers + edges).
/// Source          ours: what the runtimes have in common. Each export documents its runtime's own rules.
[[nodiscard]] std::vector<runtime_stage> runtime_stages(const plan& p, const planning_graph& model, std::string_view runtime);

namespace detail {

/// Tokens of a generation, as runtimes ask for them; zeros in other modes.
struct generation_lengths {
  long long sequence = 0;  ///< the cache of one: context, prompt and answer
  long long sequences = 0;
  long long chunk = 0;  ///< tokens of a prompt's pass over a microbatch; 0: not in chunks
};

[[nodiscard]] generation_lengths lengths_of(const plan& p, const planning_graph& model);

/// Throws invalid_input if the plan is for training: the runtime only serves inference.
void require_inference(const plan& p, std::string_view runtime);

/// Throws invalid_input, with why, if a stage has weights in tiers.
void require_memory(const plan& p, std::string_view runtime, const char* why);

/// Returns a device's name for use as an address in a command line: a comma would split the name, a leading hyphen make it an option.
///
/// Throws  invalid_input for a name that is no host name.
/// Source  RFC 1123, section 2.1 (host names: letters, digits, hyphens, dots). Deviation: underscores, which are common.
const std::string& address_of(const device& d, std::string_view runtime);

/// Throws invalid_input for a stage without blocks.
void require_blocks(const std::vector<runtime_stage>& stages, const plan& p, std::string_view runtime);

}  // namespace detail

/// Returns a plan whose cuts lie between blocks: every cut inside a block moves to an end of the block.
///
/// A block goes to the stage with most of its forward FLOP (most of its layers if it has no FLOP; the first on a tie), the embedding to
/// the first stage, the head to the last. Stages that are left empty are removed. A layer's weights stay in the
/// tier where they are, which its new device may lack (judge_offloaded chooses anew). Transfer rules are dropped; so is the warm-up if
/// the number of stages changes.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input (see runtime_stages; cuts are allowed everywhere, explicit orders are not).
/// Complexity      O(layers log layers + edges + blocks x stages).
/// Source          ours: planners cut anywhere, runtimes only between blocks. Keeping a block with most of its FLOP moves the least work.
[[nodiscard]] plan with_whole_blocks(const plan& p, const planning_graph& model, std::string_view runtime);

/// Quotes a text as one word of a POSIX shell. Text without special characters stays as it is.
///
/// Source  POSIX.1-2017, Shell Command Language, section 2.2, Quoting.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Returns the nodes of a plan for distributed-llama. The root, which has the model's file and the embedding, comes first.
///
/// Throws      invalid_input, one sentence: training; several sequences; chunks of a prompt other than its own of 32 tokens; several stages
///             or pipelines, data parallelism inside the stage, columns of unequal weights, tensor parallelism inside a device; a number
///             of devices that is no power of two or exceeds the key/value heads (split units of the model's attention, if given); no
///             blocks (see find_runtime_layers).
/// Complexity  that of find_runtime_layers.
/// Source      b4rtaz/distributed-llama, README.md (1, 2, 4 ... 2^n nodes, at most as many as key/value heads), src/app.cpp (one
///             sequence; nBatches = 32 tokens of a prompt at a time; --max-seq-len).
[[nodiscard]] std::vector<device_id> nodes_for_distributed_llama(const plan& p, const planning_graph& model);

/// Returns a command line for each worker and for the root. Devices' names stand for their addresses.
///
/// Throws  as nodes_for_distributed_llama; invalid_input for a device whose name is no address.
/// Source  b4rtaz/distributed-llama, README.md (q40 models need q80 buffers; --workers takes a list of host:port).
[[nodiscard]] std::string distributed_llama_commands(const plan& p, const planning_graph& model, const cluster& c);

/// Options of prima.cpp that place a model on devices, by rank.
struct prima_cpp_split {
  std::vector<device_id> devices;          ///< rank 0, the head device, is the plan's last device
  std::vector<std::size_t> layer_windows;  ///< -lw: number of layers
};

/// Returns the options with which prima.cpp places a model as the plan does: ranks are stages, rotated by one.
///
/// The runtime hands out windows of layers round its ring, from rank 1 on and to rank 0 last, until every layer has a rank. Windows that
/// sum to all layers are handed out once. Rank 0 has the embedding and the head. Rank 0 is therefore the plan's last device, which has the
/// head, and rank 1 its first device. The embedding moves to rank 0.
///
/// Throws      invalid_input (see runtime_stages; training; several sequences; a stage without blocks, for which prima.cpp would choose its
/// own windows or
///             drop the device; more devices than it has windows for).
/// Complexity  that of runtime_stages.
/// Source      Lizonghang/prima.cpp, src/llama.cpp (this_layer_is_mine, llm_load_llama_tensors), common/common.cpp (a first window of
///             0 selects its scheduler; 32 windows), README.md (-lw on rank 0, in the order of ranks).
[[nodiscard]] prima_cpp_split split_for_prima_cpp(const plan& p, const planning_graph& model);

/// Returns a command line for each device, rank 0 first. Devices' names stand for their addresses.
///
/// Throws  as split_for_prima_cpp; invalid_input for a device whose name is no address.
[[nodiscard]] std::string prima_cpp_commands(const plan& p, const planning_graph& model, const cluster& c);

/// Layers [start, end) of a node of exo, by rank.
struct exo_shard {
  device_id device;
  std::size_t start_layer = 0;
  std::size_t end_layer = 0;

  friend bool operator==(const exo_shard&, const exo_shard&) = default;
};

/// Returns the shards with which exo runs a model as the plan does, blocks by rank. Every node of exo also holds the embedding, the norm
/// and the head, and computes the head: the output of the last rank goes to all.
///
/// Throws      invalid_input (see runtime_stages; training; a stage without blocks).
/// Complexity  that of runtime_stages.
/// Source      exo-explore/exo, src/exo/shared/types/worker/shards.py (start_layer, end_layer: half-open),
///             src/exo/worker/engines/mlx/auto_parallel.py (PipelineLastLayer: all_gather).
[[nodiscard]] std::vector<exo_shard> shards_for_exo(const plan& p, const planning_graph& model);

/// Returns a Python program that makes exo run the plan.
///
/// By itself exo gives each node layers in proportion to its free memory (largest remainder, at least one), in an order of its own, and its
/// placement takes no layers. It starts any instance that it is given, though. So the program asks for previews of the placement, takes the
/// one that has the plan's nodes in the plan's order, puts in the plan's layers and posts it; without such a preview it fails and says so.
///
/// Throws  as shards_for_exo.
/// Source  exo-explore/exo, src/exo/master/placement_utils.py (allocate_layers_proportionally), src/exo/master/api.py
///         (GET /instance/previews; POST /instance, CreateInstanceParams: an instance with explicit shards); issue 1720, pull request 2253.
[[nodiscard]] std::string exo_program(const plan& p, const planning_graph& model, const cluster& c);

/// A boundary between stages: before or after a block.
struct torch_split_point {
  std::size_t block = 0;
  bool at_end = false;  ///< true: SplitPoint.END; false: SplitPoint.BEGINNING

  friend bool operator==(const torch_split_point&, const torch_split_point&) = default;
};

/// Options of torch.distributed.pipelining that place a model on devices.
struct torch_split {
  std::vector<device_id> devices;  ///< one per stage
  std::vector<torch_split_point> points;
};

/// Returns the split points with which torch.distributed.pipelining cuts a model as the plan does.
///
/// The boundary of a stage is the beginning of its first block. The boundary of a head on its own stage is the end of the last block. A
/// module can be named only once, so the blocks before that one are named at their ends as long as every boundary there is a cut.
///
/// Throws      invalid_input (see runtime_stages; a cut at every boundary of the blocks: no module is left to name).
/// Complexity  that of runtime_stages.
/// Source      pytorch/pytorch, torch/distributed/pipelining/_IR.py (pipeline(split_spec), annotate_split_points: a boundary before
///             or after the call of the named module).
[[nodiscard]] torch_split split_for_torch(const plan& p, const planning_graph& model);

/// Returns Python code that defines `split_spec`.
///
/// @param blocks  attribute path of the module's blocks, as in "model.layers".
/// Throws         as split_for_torch.
[[nodiscard]] std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c,
                                           std::string_view blocks = "layers");

/// Options of vLLM that place a model on devices, by pipeline rank.
struct vllm_split {
  std::vector<device_id> devices;            ///< those of a rank follow each other
  std::vector<std::size_t> layer_partition;  ///< VLLM_PP_LAYER_PARTITION
  std::size_t tensor_parallel = 1;           ///< --tensor-parallel-size: devices of each rank
};

/// Returns the options with which vLLM places a model as the plan does. Each rank has a number of consecutive decoder layers; the first
/// rank has the embedding, the last the norm and the head. Where each stage is one row of as many equal columns, they share its tensors.
///
/// Throws      invalid_input (see runtime_stages; training; columns that differ in number or weight, or that do not divide the key/value
///             heads, nor are a multiple of them; a stage without blocks: vLLM accepts a 0, but whether it can serve with such a
///             rank is not known).
/// Complexity  that of runtime_stages.
/// Source      vllm-project/vllm, vllm/distributed/utils.py (get_pp_indices: as many numbers as ranks, which sum to all layers).
[[nodiscard]] vllm_split split_for_vllm(const plan& p, const planning_graph& model);

/// Returns the command line, the machine to run it on, and the device of each rank. vLLM has no option for ranks: over Ray the machine of
/// the command is rank 0, and the others follow in the order of their addresses. In generation --max-model-len is the length of one
/// sequence,
/// --max-num-seqs their number, --max-num-batched-tokens a chunk of the prompt (not below the number of sequences).
///
/// Throws  as split_for_vllm.
/// Source  vllm-project/vllm, vllm/v1/executor/ray_executor.py (sort_by_driver_then_worker_ip; addresses as text).
[[nodiscard]] std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/export_runtimes.ipp>
#endif
