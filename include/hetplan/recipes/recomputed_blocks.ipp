// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/recomputed_blocks.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::recipes {

namespace detail {

struct cost_with_repeats {
  any_cost_model asked;
  const planning_graph* model;
  std::shared_ptr<const std::vector<char>> again;

  [[nodiscard]] work of_model(const work& w, phase what) const {
    return {.layer = (*model)[w.layer.id],
            .phase = what,
            .batch = w.batch,
            .tensor_parallel = w.tensor_parallel,
            .context = w.context,
            .fraction = w.fraction,
            .tokens = w.tokens,
            .cached = w.cached,
            .tier_bandwidth = w.tier_bandwidth};
  }
  [[nodiscard]] bool repeats(const work& w) const { return w.phase == phase::backward_input && (*again)[w.layer.id.index()] != 0; }
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const seconds once = asked.time(of_model(w, w.phase), d);
    return repeats(w) ? once + asked.time(of_model(w, phase::forward), d) : once;
  }
  [[nodiscard]] bool times_optimizer() const { return asked.times_optimizer(); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return asked.optimizer_step((*model)[l.id], d); }
  [[nodiscard]] bool times_boundaries() const { return asked.times_boundaries(); }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return asked.boundary((*model)[before.id], (*model)[after.id], k, d);
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const {
    const double most = asked.largest_batch(of_model(w, w.phase), d);
    return repeats(w) ? std::min(most, asked.largest_batch(of_model(w, phase::forward), d)) : most;
  }
};

/// Returns by layer whether it is in a block that keeps activations.
[[nodiscard]] HETPLAN_INLINE std::vector<char> layers_run_again(const planning_graph& model) {
  stage all{.recompute = recomputation::blocks};
  for (const layer& l : model.layers()) all.layers.push_back(l.id);
  std::vector<char> again(model.size(), 0);
  for (const auto& run : repeated_layers(model, all)) {
    for (const layer_id l : run) again[l.index()] = 1;
  }
  return again;
}

[[nodiscard]] HETPLAN_INLINE planning_graph view_with_repeats(const planning_graph& model, const std::vector<char>& again) {
  keyed<bytes> of_block;
  for (const layer& l : model.layers()) {
    if (again[l.id.index()] != 0) of_block[{l.block}] += l.activation;
  }
  bytes largest;
  for (const bytes b : of_block.values()) largest = std::max(largest, b);
  std::vector<bytes> inputs(model.size());  // by the layer that reads them first
  for (const layer& l : model.layers()) {
    if (again[l.id.index()] == 0) continue;
    bytes size;
    layer_id reader;
    for (const layer_edge& e : model.out_edges(l.id)) {  // by target
      if (model[e.to].block == l.block) continue;
      if (!reader.valid()) reader = e.to;
      size = std::max(size, e.forward);
    }
    if (reader.valid()) inputs[reader.index()] += size;
  }
  planning_graph_builder g(model.name(), model.facts());
  for (const layer& l : model.layers()) {
    layer_spec s = spec_of(model, l);
    if (again[l.id.index()] != 0) s.activation = bytes{};
    s.activation += inputs[l.id.index()];
    s.activation_for_weights = {};
    s.workspace += largest / l.tokens_per_sample;
    s.block = {};
    g.add_layer(std::move(s));
  }
  for (const layer_edge& e : model.edges()) g.add_edge(e.from, e.to, e.forward, e.gradient);
  return std::move(g).build();
}

}  // namespace detail

HETPLAN_INLINE recomputed_blocks::recomputed_blocks(const planning_problem& whole)
    : whole_(whole.model), again_(std::make_shared<const std::vector<char>>(detail::layers_run_again(whole.model))),
      model_(detail::view_with_repeats(whole.model, *again_)),
      problem_(model_, whole.cluster, detail::cost_with_repeats{whole.cost, &whole.model, again_}, whole.job, whole.models, whole.lp,
               whole.steps) {
  problem_.job.memory_savers.recompute = false;
  problem_.with_bounds = false;
}

HETPLAN_INLINE bool recomputed_blocks::exist_in(const planning_graph& model) {
  const std::vector<char> again = detail::layers_run_again(model);
  return std::find(again.begin(), again.end(), 1) != again.end();
}

HETPLAN_INLINE plan recomputed_blocks::restored(plan of_view) const {
  for (stage& s : of_view.stages) {
    s.recompute = recomputation::blocks;
    if (repeated_layers(whole_, s).empty()) s.recompute = recomputation::none;
  }
  return of_view;
}

}  // namespace hetplan::recipes
