// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/few_blocks.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/expansion_size.hpp>

namespace hetplan::recipes {

namespace detail {

struct members_of_blocks {
  const planning_graph* model;
  std::shared_ptr<const coarsen::blocks> blocks;

  [[nodiscard]] const std::vector<layer_id>& of(const layer& block) const { return blocks->layers[block.id.index()]; }
  template <class F>
  [[nodiscard]] bytes sum(const layer& block, const F& bytes_of) const {
    bytes all;
    for (const layer_id l : of(block)) all += bytes_of((*model)[l]);
    return all;
  }
};

/// Cache of block times by the device's properties without its name, as planners with other views query the same devices.
class block_times {
 public:
  /// Returns the seconds by block.
  [[nodiscard]] const std::vector<double>& of(const any_cost_model& asked, const members_of_blocks& members, const work_kind& k,
                                              const device& d) {
    std::vector<double>& row =
        of_device(d)[{k.phase, k.batch, k.tensor_parallel, k.context, k.fraction, k.tokens, k.cached, k.tier_bandwidth.value()}];
    if (row.empty()) {
      for (const std::vector<layer_id>& block : members.blocks->layers) row.push_back(asked.total_s(*members.model, block, k, d));
    }
    return row;
  }

 private:
  using rows = keyed<std::vector<double>>;
  [[nodiscard]] rows& of_device(device d) {
    const device standard;
    d.id = standard.id;
    d.name = standard.name;
    d.memory = standard.memory;
    d.memory_budget = standard.memory_budget;
    d.power = standard.power;
    d.energy_budget = standard.energy_budget;
    d.max_busy = standard.max_busy;
    const auto it = std::find_if(devices_.begin(), devices_.end(), [&](const auto& known) { return known.first == d; });
    return it != devices_.end() ? it->second : devices_.emplace_back(std::move(d), rows{}).second;
  }
  std::deque<std::pair<device, rows>> devices_;
};

struct cost_of_blocks {
  any_cost_model asked;
  members_of_blocks members;
  std::shared_ptr<block_times> times = std::make_shared<block_times>();  // remembered_cost makes one query at a time

  [[nodiscard]] seconds time(const work& w, const device& d) const {
    return seconds(times->of(asked, members, kind_of(w), d)[w.layer.id.index()]);
  }
  void times_s(const planning_graph&, const work_kind& k, const device& d, double* by_layer) const {
    const std::vector<double>& row = times->of(asked, members, k, d);
    std::copy(row.begin(), row.end(), by_layer);
  }
  [[nodiscard]] bool times_optimizer() const { return asked.times_optimizer(); }
  [[nodiscard]] seconds optimizer_step(const layer& block, const device& d) const {
    seconds all;
    for (const layer_id l : members.of(block)) {
      if ((*members.model)[l].trainable_weight() > bytes{}) all += asked.optimizer_step((*members.model)[l], d);
    }
    return all;
  }
  [[nodiscard]] bool times_boundaries() const { return asked.times_boundaries(); }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return asked.boundary((*members.model)[members.of(before).back()], (*members.model)[members.of(after).front()], k, d);
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const {
    double least = std::numeric_limits<double>::infinity();
    for (const layer_id l : members.of(w.layer)) {
      least = std::min(least, asked.largest_batch({.layer = (*members.model)[l],
                                                   .phase = w.phase,
                                                   .batch = w.batch,
                                                   .tensor_parallel = w.tensor_parallel,
                                                   .context = w.context,
                                                   .tokens = w.tokens,
                                                   .cached = w.cached},
                                                  d));
    }
    return least;
  }
  [[nodiscard]] bool tells_parts() const { return asked.tells_parts(); }
  [[nodiscard]] time_parts parts(const work& w, const device& d) const {
    const work_kind k = kind_of(w);
    time_parts all;
    for (const layer_id l : members.of(w.layer)) all += asked.parts(k.of((*members.model)[l]), d);
    return all;
  }

 private:
  [[nodiscard]] static work_kind kind_of(const work& w) {
    return {.phase = w.phase,
            .batch = w.batch,
            .tensor_parallel = w.tensor_parallel,
            .context = w.context,
            .tokens = w.tokens,
            .cached = w.cached,
            .tier_bandwidth = w.tier_bandwidth};
  }
};

struct memory_of_blocks {
  any_memory_model asked;
  members_of_blocks members;

  [[nodiscard]] bytes state(const layer& block, const workload& w) const {
    key_index held;
    return members.sum(block,
                       [&](const layer& l) { return l.weight_group < 0 || held.insert({l.weight_group}) ? asked.state(l, w) : bytes{}; });
  }
  [[nodiscard]] bytes activations(const layer& block, const workload& w) const {
    return members.sum(block, [&](const layer& l) { return asked.activations(l, w); });
  }
  [[nodiscard]] bytes cache(const layer& block, const workload& w) const {
    return members.sum(block, [&](const layer& l) { return asked.cache(l, w); });
  }
};

/// Makes blocks of a layer whose tensor other blocks hold, too, separate blocks, unless they outnumber `most`. All layers of a
/// block are pinned to the same device, or none is.
[[nodiscard]] HETPLAN_INLINE coarsen::blocks blocks_in_a_row(const planning_graph& model, std::size_t most,
                                                             std::span<const device_id> pinned) {
  std::vector<std::vector<layer_id>> row = cut_between_places(light_blocks(model, most), pinned).blocks;
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> first_block(model.weight_groups().size(), nowhere);
  std::vector<char> spread(model.weight_groups().size(), 0);
  std::size_t tied = 0;
  const auto group_of = [&](layer_id l) { return static_cast<std::size_t>(model[l].weight_group); };
  for (std::size_t i = 0; i < row.size(); ++i) {
    for (const layer_id l : row[i]) {
      if (model[l].weight_group < 0) continue;
      std::size_t& first = first_block[group_of(l)];
      if (first == nowhere) first = i;
      spread[group_of(l)] |= first != i ? 1 : 0;
    }
  }
  const auto stands_alone = [&](layer_id l) { return model[l].weight_group >= 0 && spread[group_of(l)] != 0; };
  for (const layer& l : model.layers()) tied += stands_alone(l.id) ? 1 : 0;
  coarsen::blocks b{{}, std::vector<std::size_t>(model.size())};
  for (std::vector<layer_id>& whole : row) {
    b.layers.emplace_back();
    for (const layer_id l : whole) {
      const bool alone = tied <= most && stands_alone(l);
      const auto runs_otherwise = [&](layer_id other) {
        return model[other].sequence.per != model[l].sequence.per || model[other].sequence.last_token != model[l].sequence.last_token;
      };
      if (!b.layers.back().empty() && runs_otherwise(b.layers.back().back())) b.layers.emplace_back();
      if (alone && !b.layers.back().empty()) b.layers.emplace_back();
      b.layers.back().push_back(l);
      if (alone && l != whole.back()) b.layers.emplace_back();
    }
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    sort_stably(b.layers[i]);
    for (const layer_id l : b.layers[i]) b.block_of[l.index()] = i;
  }
  return b;
}

/// Returns the blocks as layers with the weights to reduce and the edges to send. Times and memory come from the models above.
[[nodiscard]] HETPLAN_INLINE planning_graph model_of_blocks(const planning_graph& model, const coarsen::blocks& b) {
  planning_graph_builder g(model.name(), model.facts());
  for (std::size_t i = 0; i < b.size(); ++i) {
    layer_spec block{.name = "block " + std::to_string(i), .forward_flops = flops{}};
    bytes frozen;
    key_index held;
    block.sequence.per = model[b.layers[i].front()].sequence.per;
    block.sequence.last_token = model[b.layers[i].front()].sequence.last_token;
    for (const layer_id id : b.layers[i]) {
      const layer& l = model[id];
      block.workspace = std::max(block.workspace, l.workspace);
      block.scratch = std::max(block.scratch, l.scratch);
      block.forward_workspace = std::max(block.forward_workspace, l.forward_workspace);
      block.degrees = common_degrees(block.degrees, l.degrees);
      *block.forward_flops += l.forward_flops;
      if (l.weight_group < 0 || held.insert({l.weight_group})) (l.trainable ? block.weight : frozen) += l.weight;
      for (const layer_profile& p : l.profiles) {  // a profiled kind has no tensor parallelism
        const auto same = [&](const layer_profile& known) { return known.device_kind == p.device_kind; };
        if (std::none_of(block.profiles.begin(), block.profiles.end(), same)) block.profiles.push_back({p.device_kind, {1}, {1}, {1}});
      }
    }
    if (block.weight == bytes{} && frozen > bytes{}) {
      block.weight = frozen;
      block.trainable = false;
    }
    if (const layer& only = model[b.layers[i].front()]; b.layers[i].size() == 1 && only.weight_group >= 0)
      block.weight_group = model.weight_groups()[static_cast<std::size_t>(only.weight_group)];
    g.add_layer(std::move(block));
  }
  struct sent {
    bytes forward, gradient;
  };
  keyed<sent> tensors;  // by producing layer and reading block
  for (const layer_edge& e : model.edges()) {
    if (b.block_of[e.from.index()] == b.block_of[e.to.index()]) continue;
    sent& t = tensors[{e.from, b.block_of[e.to.index()]}];
    t = {std::max(t.forward, e.forward), std::max(t.gradient, e.gradient)};
  }
  keyed<sent> edges;  // by producing and reading block
  for (const std::size_t i : tensors.keys().in_order()) {
    const key_view ends = tensors.keys().key_of(i);
    const sent& t = tensors.values()[i];
    sent& all = edges[{b.block_of[static_cast<std::size_t>(ends[0].value)], ends[1]}];
    all = {all.forward + t.forward, all.gradient + t.gradient};
  }
  for (const std::size_t i : edges.keys().in_order()) {
    const key_view ends = edges.keys().key_of(i);
    g.add_edge(layer_id(ends[0].value), layer_id(ends[1].value), edges.values()[i].forward, edges.values()[i].gradient);
  }
  return std::move(g).build();
}

/// Returns the job with pins of blocks in place of those of their layers.
[[nodiscard]] HETPLAN_INLINE job job_of_blocks(const planning_problem& whole, const coarsen::blocks& b) {
  job j = whole.job;
  j.pins.clear();
  for (std::size_t i = 0; i < b.size() && !whole.pinned.empty(); ++i) {
    const device_id at = whole.pinned[b.layers[i].front().index()];
    if (at.valid()) j.pins.push_back({"block " + std::to_string(i), whole.cluster[at].name});
  }
  return j;
}

}  // namespace detail

HETPLAN_INLINE few_blocks::few_blocks(const planning_problem& whole, std::size_t most)
    : blocks_(std::make_shared<const coarsen::blocks>(detail::blocks_in_a_row(whole.model, most, whole.pinned))),
      model_(detail::model_of_blocks(whole.model, *blocks_)),
      problem_(model_, whole.cluster, detail::cost_of_blocks{whole.cost, {&whole.model, blocks_}}, detail::job_of_blocks(whole, *blocks_),
               whole.models, whole.lp, whole.steps) {
  problem_.models.memory = detail::memory_of_blocks{whole.models.memory, {&whole.model, blocks_}};
  problem_.with_bounds = false;
}

HETPLAN_INLINE plan few_blocks::expand(plan of_blocks) const { return expand_blocks(std::move(of_blocks), *blocks_); }

}  // namespace hetplan::recipes
