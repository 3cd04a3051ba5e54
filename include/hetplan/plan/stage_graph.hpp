// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What follows from a plan's cut of the model: which stages feed which, with how many bytes, how deep.

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/stage_graph.ipp>
#endif
