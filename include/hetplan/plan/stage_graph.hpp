// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What follows from a plan's cut of the model: which stages feed which, with how many bytes, how deep.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

// Who sums up which gradients together at the end of an iteration.

/// One sum of gradients: over the devices of a stage, or over the first devices of the stages that share tensors.
struct reduction {
  /// A device that takes part, and the stage that it stands for.
  struct member {
    device_id device;
    stage_id stage;
  };
  std::vector<member> members;    ///< in ring order, at least two
  std::vector<stage_id> holders;  ///< the stages that must be done before and that wait for it
  std::vector<layer_id> layers;   ///< a layer of each tensor, as the first holder has it; the others share its weight group or itself
  double bytes = 0;               ///< of those tensors

  [[nodiscard]] bool is_across_stages() const { return holders.size() > 1; }
};

/// The reductions of an iteration: each replicated stage's own in stage order, then those across stages.
///
/// A stage with several devices and trainable bytes reduces them, in a grid each column its own; one that shares out its gradients scatters
/// them instead. Each set of stages that share tensors (a weight group, or
/// the same layers in several pipelines) reduces those among its distinct first devices; with one such device there is nothing to do.
///
/// Complexity  O(layers of all stages, log).
/// Source      semantics, section 6.
[[nodiscard]] std::vector<reduction> reductions_of(const plan& p, const planning_graph& model);

// What a stage costs on one of its devices: the one place where layers add up.

/// Bytes that a stage exchanges with other stages for every sample of its own.
struct stage_traffic {
  double sent = 0;
  double received = 0;
};

/// Seconds of one microbatch share in each phase; the sum over the stage's layers, and where the cost model prices boundaries, over
/// neighbours in stage::layers. A stage that recomputes has the time of its
/// forward in that of its backward's input part, too. In a grid the device stands in `column`; all-reduces are not in it.
[[nodiscard]] double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                  const device& d, phase what, int context, std::size_t column = 0);

/// Bytes that one all-reduce sums for each sample of a row, for each all-reduce of a phase: behind every layer that is split along the rows
/// of its weights, works in that phase and has an output; of a stage that recomputes, those of its forward again before its backward.
///
/// Source  semantics, section 4 (grids).
[[nodiscard]] std::vector<double> all_reduces_of(const planning_graph& model, const stage& s, phase what);

/// What the stage's units are: as given, or every layer alone.
[[nodiscard]] std::vector<std::vector<layer_id>> units_of(const stage& s);

/// Whose weights these are: (true, weight group), or (false, layer) where the layer shares them with nobody.
using tensor_key = std::pair<bool, std::int32_t>;
[[nodiscard]] tensor_key tensor_of(const layer& l);

/// The distinct tensors of a stage: a weight group counts once. Calls f(layer) for the first layer of each.
template <class F>
void for_each_tensor(const planning_graph& model, const stage& s, F&& f) {
  for_each_tensor(model, std::span<const layer_id>(s.layers), f);
}

/// Seconds of the optimizer's step for a stage on one of its devices: for each distinct trainable tensor the model's answer, or
/// the device's part of it where the state is shared out or its column's of what is split. 0 where the cost model has none.
[[nodiscard]] double stage_optimizer_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const device& d,
                                       std::size_t column = 0);

/// Trainable bytes of a stage: what the devices of a column reduce among themselves.
[[nodiscard]] double trainable_bytes(const planning_graph& model, const stage& s, std::size_t column = 0);

/// Bytes of the distinct tensors of some layers that are gathered (all weights), and scattered (the gradients of the trainable ones).
struct unit_bytes {
  double gathered = 0;
  double scattered = 0;
};
[[nodiscard]] unit_bytes bytes_of_unit(const planning_graph& model, std::span<const layer_id> unit);

/// Generation: the caches of every sequence that a device serves in a stage; 0 in the other modes.
[[nodiscard]] double stage_cache_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                       const workload& w, int microbatches, std::size_t column = 0);

/// Bytes that a device holds for its only stage all the time: state, and in generation every sequence's cache. For devices
/// that may hold several stages there is static_bytes.
[[nodiscard]] double stage_static_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches, std::size_t column = 0);

/// Bytes that each device holds all the time. A tensor that several stages of a device hold is there once, at the largest of
/// their holdings, whichever mode and through whichever pipeline.
///
/// @param p        a valid plan.
/// @return         by device id.
/// Complexity      O(layers of all stages x devices per stage), log where a device holds several stages.
/// Source          semantics, section 2.
[[nodiscard]] std::vector<double> static_bytes(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                               std::size_t devices);

/// Bytes that one microbatch share takes and gives back.
struct share_memory {
  double forward = 0;      ///< taken when its F starts
  double backward = 0;     ///< taken on top when its B starts
  double for_weights = 0;  ///< of both, what B leaves to a W that runs apart; an unsplit backward releases everything

  [[nodiscard]] double whole() const { return forward + backward; }
  /// The most that a stage holds with so many microbatches in flight, of which one at a time is in its backward.
  [[nodiscard]] double at_most(int in_flight) const { return in_flight * forward + backward; }
};

/// What a microbatch share of a stage holds: its activations from F on; or, where the stage recomputes, its inputs from F on and
/// its activations from B on.
///
/// @param inputs  bytes that the stage reads from others per sample (input_bytes); counts where it recomputes.
/// Source         semantics, section 2.
[[nodiscard]] share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                              const assignment& a, const workload& w, double inputs, std::size_t column = 0);

/// A stage that feeds another. The cuts are bytes per sample: the sum over producing layers of the
/// largest edge into the other stage (a tensor that several layers read crosses once).
struct stage_edge {
  stage_id from;
  stage_id to;
  bytes forward_cut;
  bytes backward_cut;  ///< 0: no backward transfer and no dependency
};

/// The quotient graph of a plan, with what its stages inherit from plan and pipeline.
struct stage_graph {
  struct node {
    int microbatch_size = 1;
    int microbatches = 1;
    long long first_sample = 0;        ///< of its pipeline, in the iteration
    int depth = 1;                     ///< stages on the longest path to a sink, itself included
    std::vector<std::size_t> in = {};  ///< indices of edges
    std::vector<std::size_t> out = {};
    pass_cuts cuts = {};

    /// How often the stage runs a phase in an iteration: once a microbatch, or once a cut.
    [[nodiscard]] int passes(phase what) const {
      if (cuts.empty()) return microbatches;
      return cuts.of(what).empty() ? 0 : static_cast<int>(cuts.of(what).size()) - 1;
    }
    /// The samples [first, second) of the pipeline that a pass takes.
    [[nodiscard]] std::pair<long long, long long> samples(phase what, int pass) const {
      if (cuts.empty()) return {static_cast<long long>(pass) * microbatch_size, (static_cast<long long>(pass) + 1) * microbatch_size};
      const auto i = static_cast<std::size_t>(pass);
      return {cuts.of(what)[i], cuts.of(what)[i + 1]};
    }
    /// The pass that takes a sample of the pipeline.
    [[nodiscard]] int pass_of(phase what, long long sample) const {
      if (cuts.empty()) return static_cast<int>(sample / microbatch_size);
      const auto& all = cuts.of(what);
      return static_cast<int>(std::upper_bound(all.begin(), all.end(), sample) - all.begin()) - 1;
    }
  };
  std::vector<node> nodes;
  std::vector<stage_edge> edges;      ///< ordered by (from, to)
  std::vector<stage_id> topological;  ///< fewer than the nodes: the quotient graph has a cycle

  [[nodiscard]] bool acyclic() const { return topological.size() == nodes.size(); }
  [[nodiscard]] const node& operator[](stage_id s) const { return nodes[s.index()]; }
};

/// Bytes of the tensors that a stage reads from other stages, per sample; each once, wherever it comes from.
[[nodiscard]] double input_bytes(const stage_graph& g, stage_id s);

/// Builds the stage graph. The plan's stages must hold each layer once per pipeline (validate checks).
///
/// Complexity   O(stages + layers + edges log).
/// Determinism  edges by (from, to); topological order: smallest ready stage first.
[[nodiscard]] stage_graph make_stage_graph(const plan& p, const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/stage_graph.ipp>
#endif
