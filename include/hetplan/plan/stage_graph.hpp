// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stage graph of a plan: which stages feed which, with how many bytes, how deep; and the costs of single stages.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// Sum of gradients over the devices of a stage, or over the first devices of the stages that share tensors.
struct reduction {
  /// Device that takes part, and the stage that it represents.
  struct member {
    device_id device;
    stage_id stage;
  };
  std::vector<member> members;    ///< in ring order, at least two
  std::vector<stage_id> holders;  ///< stages that must be done before the reduction and that wait for it
  std::vector<layer_id> layers;   ///< one layer per tensor, from the first holder; other holders have it or one of its weight group
  double bytes = 0;               ///< of these tensors together

  [[nodiscard]] bool is_across_stages() const { return holders.size() > 1; }
};

/// Returns the reductions of an iteration: each replicated stage's own in stage order, then those across stages.
///
/// A stage with several devices and trainable bytes reduces them, in a grid column by column; a stage that shards its gradients scatters
/// them instead. Each set of stages that share tensors (a weight group, or the same layers in several pipelines) reduces them among its
/// distinct first devices; with one such device there is nothing to do.
///
/// Complexity  O(layers of all stages, log).   Source  semantics, section 6.
[[nodiscard]] std::vector<reduction> reductions_of(const plan& p, const planning_graph& model);

/// Bytes that a stage exchanges with other stages per sample of its own.
struct stage_traffic {
  double sent = 0;
  double received = 0;
};

/// Returns the rate at which a device of a stage reads a layer's weights from their tier, as cost models are told (work::tier_bandwidth): 0
/// if they lie in its memory, infinite if the tier shares a resource of the network, whose transfers the task waits for. Throws
/// invalid_input if the device has no tier of that name.
[[nodiscard]] bytes_per_second tier_bandwidth(const stage& s, layer_id l, const device& d);

/// Returns the bytes that a task of a stage waits for from each of its device's tiers, by tier; only those that share a resource of the
/// network count. Empty if there are none. `backward_input` includes what is run again.
[[nodiscard]] std::vector<double> stage_reads(const planning_graph& model, const stage& s, const assignment& a, const device& d, phase what,
                                              const token_pass& pass, std::size_t column = 0);

/// Returns true if devices of the stage read weights from tiers that share resources of the network.
[[nodiscard]] bool reads_over_network(const stage& s, const cluster& c);

/// Returns the weights that a plan puts into the tiers of each device, by device id and tier; a tensor counts once in each.
[[nodiscard]] std::vector<std::vector<double>> tier_bytes(const plan& p, const planning_graph& model, const cluster& c);

/// Returns the seconds of one microbatch share in a phase: the sum over the stage's layers that run in the pass and, if the cost model
/// prices boundaries, over neighbours in stage::layers. `backward_input` includes what is run again (repeated_s). In a grid the
/// device is in `column`; all-reduces are not included, nor is the device's overhead.
[[nodiscard]] double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                  const device& d, phase what, const token_pass& pass, std::size_t column = 0);
/// Returns the mean over all passes of a run: a run takes token_passes::size() times as long.
[[nodiscard]] double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                  const device& d, phase what, const token_passes& passes, std::size_t column = 0);

/// Returns the layers whose forward a backward of the stage runs again, as runs of neighbours in stage::layers: all in one, or those of
/// each block that keeps an activation.
[[nodiscard]] std::vector<std::span<const layer_id>> repeated_layers(const planning_graph& model, const stage& s);

/// Returns the part of the seconds of `backward_input` in which the forward runs again; 0 if the stage does not recompute.
[[nodiscard]] double repeated_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                const device& d, const token_pass& pass, std::size_t column = 0);

/// Returns the seconds of layers of a stage in which memory is the limit; 0 if the cost model does not tell, or the device draws the same
/// power then.
[[nodiscard]] double memory_bound_s(const any_cost_model& cost, const planning_graph& model, const stage& s,
                                    std::span<const layer_id> layers, const work_kind& k, const device& d);

/// Returns the part of stage_time_s in which the layers are bound by memory; 0 if the cost model does not tell, or the device draws the
/// same power then as in other work, so that nobody needs to know.
[[nodiscard]] double stage_memory_bound_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                          const device& d, phase what, const token_pass& pass, std::size_t column = 0);

/// Does any layer of the stage run in the pass? If not, the stage has no task in it.
[[nodiscard]] bool runs(const stage& s, const planning_graph& model, const token_pass& pass);

/// Returns the bytes per sample of a row that each all-reduce of a phase sums. An all-reduce follows every layer that is split along the
/// rows of its weights, has work in that phase and an output. What is run again has those of its forward again.
///
/// Source  semantics, section 4 (grids).
[[nodiscard]] std::vector<double> all_reduces_of(const planning_graph& model, const stage& s, phase what, const token_pass& pass = {});
/// Returns those of the forward that `backward_input` runs again.
[[nodiscard]] std::vector<double> repeated_all_reduces(const planning_graph& model, const stage& s, const token_pass& pass = {});

/// Returns the units of a stage: as given, or every layer alone.
[[nodiscard]] std::vector<std::vector<layer_id>> units_of(const stage& s);

/// Key of a tensor of weights: (true, weight group), or (false, layer) if the layer shares it with no other.
using tensor_key = std::pair<bool, std::int32_t>;
[[nodiscard]] tensor_key tensor_of(const layer& l);

/// Calls f(layer) for the first layer of each distinct tensor of a stage; a weight group counts once.
template <class F>
void for_each_tensor(const planning_graph& model, const stage& s, F&& f) {
  for_each_tensor(model, std::span<const layer_id>(s.layers), f);
}

/// Returns the seconds of the optimizer step for a stage on one of its devices: the model's result for each distinct trainable tensor, or
/// the device's part of it if the state is sharded or the layer split. 0 if the cost model has no step.
[[nodiscard]] double stage_optimizer_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const device& d,
                                       std::size_t column = 0);

/// Returns the trainable bytes of a stage that the devices of a column reduce among themselves.
[[nodiscard]] double trainable_bytes(const planning_graph& model, const stage& s, std::size_t column = 0);

/// Bytes of the distinct tensors of some layers: gathered (all weights), and scattered (the gradients of trainable ones).
struct unit_bytes {
  double gathered = 0;
  double scattered = 0;
};
[[nodiscard]] unit_bytes bytes_of_unit(const planning_graph& model, std::span<const layer_id> unit);

/// Returns the bytes of the caches of every sequence that a device serves in a stage in generation; 0 in the other modes.
[[nodiscard]] double stage_cache_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                       const workload& w, int microbatches, std::size_t column = 0);

/// Temporary bytes of a device, of which one layer needs its own at a time: in training the largest sum of a layer's workspace, for the
/// tokens of the device's samples in its largest pass, and its scratch. Where k > 1 layers of the device share a tensor, k of its gradients
/// wait for each other beside their sum: k + 1 times the least scratch of these layers. Outside training the largest forward_workspace for
/// those tokens.
/// Source  semantics, section 2.
class device_workspace {
 public:
  /// Adds a stage of the device.
  void add(const planning_graph& model, const stage& s, const assignment& a, const workload& w, std::size_t column = 0);
  [[nodiscard]] double bytes() const;

 private:
  struct shared {
    int layers = 0;
    double least = 0;
  };
  double largest_ = 0;
  key_index seen_;  ///< layers of weight groups
  keyed<shared> groups_;
};

/// Returns the temporary bytes of a stage's layers on a device.
[[nodiscard]] double stage_workspace_bytes(const planning_graph& model, const stage& s, const assignment& a, const workload& w,
                                           std::size_t column = 0);

/// Returns the bytes that a device holds for its only stage all the time: state, workspace, and in generation every sequence's cache. For
/// devices that may hold several stages, see static_bytes.
[[nodiscard]] double stage_static_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches, std::size_t column = 0);

/// Bytes that a device holds all the time.
struct held_bytes {
  double state = 0;      ///< weights; in training with gradients and optimizer state
  double cache = 0;      ///< key/value cache of every sequence
  double workspace = 0;  ///< temporary memory, and under fsdp the weights that are gathered
  double overhead = 0;   ///< device::memory_overhead

  [[nodiscard]] double all() const { return state + (cache + workspace) + overhead; }
  friend bool operator==(const held_bytes&, const held_bytes&) = default;
};

/// Returns the bytes that each device of a plan holds all the time, by device id. A tensor that several stages of a device hold is there
/// once, at the largest of their holdings, in any mode and through any pipeline.
///
/// @param p        Valid plan.
/// Complexity      O(layers of all stages x devices per stage), log where a device holds several stages.   Source  semantics, section 2.
[[nodiscard]] std::vector<held_bytes> held_by_devices(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                                      const cluster& c);
/// Returns the sums of held_by_devices.
[[nodiscard]] std::vector<double> static_bytes(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                               const cluster& c);

/// Bytes that one microbatch share takes and releases.
struct share_memory {
  double forward = 0;      ///< taken when its F starts
  double backward = 0;     ///< taken in addition when its B starts
  double for_weights = 0;  ///< part of both that B leaves to a separate W; an unsplit backward releases everything
  double all_blocks = 0;   ///< taken in place of `backward` if W is separate: blocks that are run again stay until then

  /// Returns what a B takes whose W is separate or not.
  [[nodiscard]] double taken_by(bool split) const { return split ? std::max(backward, all_blocks) : backward; }
  /// Returns the most that a stage holds with `in_flight` microbatches in flight, one of them at a time in its backward.
  [[nodiscard]] double at_most(int in_flight) const { return in_flight * forward + backward; }
};

/// Returns the memory of a microbatch share of a stage: activations from F on; if it recomputes, inputs from F and activations from B on,
/// of blocks those of the largest.
///
/// Without a pass it is the most of any pass of the run.
///
/// @param inputs  Bytes that the stage reads from others per sample (input_bytes); used if it recomputes as a whole.
/// Source         semantics, section 2.
[[nodiscard]] share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                              const assignment& a, const workload& w, double inputs, std::size_t column,
                                              const token_pass& pass);
[[nodiscard]] share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                              const assignment& a, const workload& w, double inputs, std::size_t column = 0);

/// Edge from a stage to one that it feeds. The cuts are bytes per sample: the sum over producing layers of the largest edge into the other
/// stage (a tensor that several layers read crosses once).
struct stage_edge {
  stage_id from;
  stage_id to;
  bytes forward_cut;
  bytes backward_cut;  ///< 0: no backward transfer and no dependency
};

/// Quotient graph of a plan, with what its stages inherit from plan and pipeline.
struct stage_graph {
  struct node {
    int microbatch_size = 1;
    int microbatches = 1;
    long long first_sample = 0;        ///< of its pipeline, in the iteration
    int depth = 1;                     ///< stages on the longest path to a sink, itself included
    std::vector<std::size_t> in = {};  ///< indices into edges
    std::vector<std::size_t> out = {};
    pass_cuts cuts = {};

    /// Returns how often the stage runs a phase in an iteration: once per microbatch, or once per interval of its cuts.
    [[nodiscard]] int passes(phase what) const {
      if (cuts.empty()) return microbatches;
      return cuts.of(what).empty() ? 0 : static_cast<int>(cuts.of(what).size()) - 1;
    }
    /// Returns the samples [first, second) of the pipeline that a pass takes.
    [[nodiscard]] std::pair<long long, long long> samples(phase what, int pass) const {
      if (cuts.empty()) return {static_cast<long long>(pass) * microbatch_size, (static_cast<long long>(pass) + 1) * microbatch_size};
      const auto i = static_cast<std::size_t>(pass);
      return {cuts.of(what)[i], cuts.of(what)[i + 1]};
    }
    /// Returns the pass that takes a sample of the pipeline.
    [[nodiscard]] int pass_of(phase what, long long sample) const {
      if (cuts.empty()) return static_cast<int>(sample / microbatch_size);
      const auto& all = cuts.of(what);
      return static_cast<int>(std::upper_bound(all.begin(), all.end(), sample) - all.begin()) - 1;
    }
  };
  std::vector<node> nodes;
  std::vector<stage_edge> edges;      ///< ordered by (from, to)
  std::vector<stage_id> topological;  ///< fewer than the nodes if the quotient graph has a cycle

  /// Returns the edge between two stages, or null.
  [[nodiscard]] const stage_edge* find(stage_id from, stage_id to) const;
  [[nodiscard]] bool acyclic() const { return topological.size() == nodes.size(); }
  [[nodiscard]] const node& operator[](stage_id s) const { return nodes[s.index()]; }
};

/// Returns the bytes per sample of the tensors that a stage reads from other stages, each counted once, whatever its source.
[[nodiscard]] double input_bytes(const stage_graph& g, stage_id s);

/// Returns the stage graph of a plan, whose stages must hold each layer once per pipeline (validate checks). In a pass an edge carries
/// what both its ends compute; there is none where one of them does not run.
/// Complexity   O(stages + layers + edges log).
/// Determinism  edges by (from, to); topological order: smallest ready stage first.
[[nodiscard]] stage_graph make_stage_graph(const plan& p, const planning_graph& model, const token_pass& pass = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/stage_graph.ipp>
#endif
