// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/stage_graph.hpp>

#include <limits>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/workspace_table.hpp>

namespace hetplan {

HETPLAN_INLINE std::vector<reduction> reductions_of(const plan& p, const planning_graph& model) {
  std::vector<reduction> all;
  struct holding {
    tensor_key tensor;
    stage_id holder;
    layer_id layer;
    double bytes = 0;
  };
  std::vector<holding> holdings;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    const bool scatters = st.devices.size() > 1 && (st.shard == sharding::zero2 || st.shard == sharding::fsdp);
    reduction own{.members = {}, .holders = {stage_id(s)}, .layers = {}};
    for_each_tensor(model, st, [&](const layer& l) {
      if (l.trainable_weight().value() <= 0) return;
      own.layers.push_back(l.id);
      own.bytes += l.trainable_weight().value();
      // A tensor outside weight groups has one holder in each pipeline.
      if (l.weight_group >= 0 || p.pipeline_count() > 1) holdings.push_back({tensor_of(l), stage_id(s), l.id, l.weight.value()});
    });
    if (scatters) continue;
    for (std::size_t c = 0; c < st.column_count(); ++c) {
      reduction of_column = own;
      for (std::size_t row = 0; row < st.rows(); ++row) {
        of_column.members.push_back({st.devices[row * st.column_count() + c].device, stage_id(s)});
      }
      if (st.column_count() > 1) of_column.bytes = trainable_bytes(model, st, c);
      if (of_column.members.size() > 1 && of_column.bytes > 0) all.push_back(std::move(of_column));
    }
  }
  sort_by(holdings, &holding::tensor);
  keyed<reduction> shared;  // by the set of holders
  for (auto first = holdings.begin(); first != holdings.end();) {
    const auto last = std::find_if(first, holdings.end(), [&](const holding& h) { return h.tensor != first->tensor; });
    if (last - first > 1) {
      std::vector<stage_id> holders;
      for (auto h = first; h != last; ++h) holders.push_back(h->holder);
      reduction& r = shared[parts_of(holders)];
      r.holders = std::move(holders);
      r.layers.push_back(first->layer);
      r.bytes += first->bytes;
    }
    first = last;
  }
  for (const std::size_t i : shared.keys().in_order()) {
    reduction& r = shared.values()[i];
    for (const stage_id s : r.holders) {
      const device_id first = p[s].devices.front().device;
      const auto same = [&](const reduction::member& m) { return m.device == first; };
      if (std::none_of(r.members.begin(), r.members.end(), same)) r.members.push_back({first, s});
    }
    if (r.members.size() > 1) all.push_back(std::move(r));
  }
  return all;
}

namespace detail {

/// Returns the part of a layer's tensors that a column of the stage holds.
HETPLAN_INLINE double part_of(const layer& l, const stage& s, std::size_t column) { return l.is_split() ? s.fraction(column) : 1; }

/// Returns the bytes of a layer's weights, gradients and optimizer that a device of the stage holds.
HETPLAN_INLINE double state_of(const any_memory_model& memory, const layer& l, const workload& w, const stage& s, std::size_t column) {
  const double n = static_cast<double>(s.rows());
  switch (s.shard) {
    case sharding::fsdp: return checked_state(memory, l, w, 1) / n;
    case sharding::zero2: {
      const double elsewhere = trained_bytes_of(l, w).gradients * (1 - 1 / n);
      return std::max(0.0, checked_state(memory, l, w, s.state_shards()) - elsewhere);
    }
    case sharding::none:
    case sharding::state: break;
  }
  return checked_state(memory, l, w, s.state_shards()) * part_of(l, s, column);
}

/// Returns the layers of a stage whose weights lie in the device's memory.
///
/// @param some  room for them if these are not all layers
HETPLAN_INLINE std::span<const layer_id> layers_in_memory(const stage& s, std::vector<layer_id>& some) {
  if (s.offload.empty()) return s.layers;
  some.clear();
  for (const layer_id l : s.layers) {
    if (s.tier_of(l) == nullptr) some.push_back(l);
  }
  return some;
}

/// Returns `before` plus the seconds of layers of a stage, in order, each with its weights where the stage has them.
HETPLAN_INLINE double run_s(const any_cost_model& cost, const planning_graph& model, const stage& s, std::span<const layer_id> layers,
                            const work_kind& k, const device& d, double before) {
  if (s.offload.empty()) return cost.total_s(model, layers, k, d, before);
  const auto time_s = [&](layer_id l) {
    work_kind mine = k;
    mine.tier_bandwidth = tier_bandwidth(s, l, d);
    return cost.total_s(model, std::span(&l, 1), mine, d);
  };
  const auto boundary_s = [&](layer_id l, layer_id next) { return checked_boundary_s(cost, model[l], model[next], k, d); };
  return add_run(before, layers, cost.times_boundaries(), time_s, boundary_s);
}

/// Returns the buffer for whole units beside a device's own part: two gathered ones (in use, arriving), or one of summed gradients.
HETPLAN_INLINE double gathered_bytes(const planning_graph& model, const stage& s, const workload& w) {
  if (s.devices.size() < 2 || (s.shard != sharding::fsdp && s.shard != sharding::zero2)) return 0;
  double largest = 0;
  for (const auto& unit : units_of(s)) {
    double gradients = 0;
    for_each_tensor(model, unit, [&](const layer& l) { gradients += trained_bytes_of(l, w).gradients; });
    largest = std::max(largest, s.shard == sharding::fsdp ? 2 * bytes_of_unit(model, unit).gathered : gradients);
  }
  return largest;
}

HETPLAN_INLINE void add_all_reduces(std::vector<double>& all, const planning_graph& model, std::span<const layer_id> layers, phase what,
                                    const token_pass& pass) {
  for (const layer_id l : layers) {
    const layer& x = model[l];
    const bool works = x.split == layer_split::rows && pass.runs(x) && work{x, what}.flops_per_sample().value() > 0;
    if (works && x.largest_output.value() > 0) all.push_back(x.largest_output.value() * pass.share_of(x));
  }
}

/// Layers of a stage that recomputes by blocks.
struct stage_blocks {
  std::vector<layer_id> outside = {};              ///< those that are kept
  std::vector<std::vector<layer_id>> blocks = {};  ///< those that are run again
  double inputs = 0;  ///< bytes per sample of tensors that leave a block, or enter one from another stage: each once
};

HETPLAN_INLINE stage_blocks blocks_of(const planning_graph& model, const stage& s) {
  stage_blocks found;
  constexpr std::int32_t elsewhere = -2, outside = -1;
  std::vector<std::int32_t> place(model.size(), elsewhere);
  for (const layer_id l : s.layers) place[l.index()] = outside;
  keyed<std::size_t> of_block;
  for (const std::span<const layer_id> run : repeated_layers(model, s)) {
    const std::int32_t block = model[run.front()].block;
    if (of_block.insert({block}, found.blocks.size())) found.blocks.emplace_back();
    auto& mine = found.blocks[*of_block.find({block})];
    mine.insert(mine.end(), run.begin(), run.end());
    for (const layer_id l : run) place[l.index()] = block;
  }
  for (const layer_id l : s.layers) {
    if (place[l.index()] == outside) found.outside.push_back(l);
  }
  for (const layer& l : model.layers()) {
    const std::int32_t from = place[l.id.index()];
    if (from == outside) continue;  // its activations are kept
    double largest = 0;
    for (const layer_edge& e : model.out_edges(l.id)) {
      const std::int32_t to = place[e.to.index()];
      if (to != from && to != elsewhere && (from != elsewhere || to != outside)) largest = std::max(largest, e.forward.value());
    }
    found.inputs += largest;
  }
  return found;
}

}  // namespace detail

HETPLAN_INLINE bool runs(const stage& s, const planning_graph& model, const token_pass& pass) {
  if (!pass.cached || (pass.first && pass.last)) return true;
  return std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return pass.runs(model[l]); });
}

HETPLAN_INLINE bytes_per_second tier_bandwidth(const stage& s, layer_id l, const device& d) {
  const std::string* name = s.tier_of(l);
  if (name == nullptr) return {};
  const memory_tier* tier = d.find_tier(*name);
  if (tier == nullptr)
    throw invalid_input("plan: stage \"" + s.name + "\" has weights in tier \"" + *name + "\", which device \"" + d.name + "\" lacks");
  return tier->shared.valid() ? bytes_per_second(std::numeric_limits<double>::infinity()) : tier->bandwidth;
}

HETPLAN_INLINE std::vector<double> stage_reads(const planning_graph& model, const stage& s, const assignment& a, const device& d,
                                               phase what, const token_pass& pass, std::size_t column) {
  std::vector<double> read;
  for (const offloaded_layer& o : s.offload) {
    const memory_tier* tier = d.find_tier(o.tier);
    const layer& l = model[o.layer];
    if (tier == nullptr || !tier->shared.valid() || !pass.runs(l)) continue;
    double more = 0;
    const auto add = [&](phase each) {
      const work w = pass.asks(each, a.samples, a.tensor_parallel, s.fraction(column)).of(l);
      if (reads_weights(w, d)) more += w.weight_traffic().value();
    };
    add(what);
    if (what == phase::backward_input) {
      for (const std::span<const layer_id> run : repeated_layers(model, s)) {
        if (std::find(run.begin(), run.end(), o.layer) != run.end()) add(phase::forward);
      }
    }
    if (more == 0) continue;
    read.resize(d.tiers.size(), 0);
    read[static_cast<std::size_t>(tier - d.tiers.data())] += more;
  }
  return read;
}

HETPLAN_INLINE bool reads_over_network(const stage& s, const cluster& c) {
  for (const offloaded_layer& o : s.offload) {
    for (const assignment& a : s.devices) {
      const memory_tier* tier = c[a.device].find_tier(o.tier);
      if (tier != nullptr && tier->shared.valid()) return true;
    }
  }
  return false;
}

HETPLAN_INLINE std::vector<std::vector<double>> tier_bytes(const plan& p, const planning_graph& model, const cluster& c) {
  std::vector<std::vector<double>> total;
  for (const device& d : c.devices()) total.emplace_back(d.tiers.size(), 0);
  keyed<double> held;  // by device, tier and tensor
  for (const stage& s : p.stages) {
    for (std::size_t i = 0; i < s.devices.size() && !s.offload.empty(); ++i) {
      const device& d = c[s.devices[i].device];
      for (const offloaded_layer& o : s.offload) {
        const layer& l = model[o.layer];
        const memory_tier* tier = d.find_tier(o.tier);
        if (tier == nullptr) continue;
        const auto at = static_cast<std::size_t>(tier - d.tiers.data());
        const auto [is_shared, number] = tensor_of(l);
        const double weight = l.weight.value() * detail::part_of(l, s, s.column_of(i));
        double& most = held[{d.id, at, is_shared, number}];
        if (weight <= most) continue;
        total[d.id.index()][at] += weight - most;
        most = weight;
      }
    }
  }
  return total;
}

HETPLAN_INLINE double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                   const device& d, phase what, const token_pass& pass, std::size_t column) {
  std::span<const layer_id> layers = s.layers;
  std::vector<layer_id> some;
  if (pass.cached && !(pass.first && pass.last)) {
    for (const layer_id l : s.layers) {
      if (pass.runs(model[l])) some.push_back(l);
    }
    layers = some;
  }
  const auto total_s = [&](phase each, double before) {
    return detail::run_s(cost, model, s, layers, pass.asks(each, a.samples, a.tensor_parallel, s.fraction(column)), d, before);
  };
  return total_s(what, what == phase::backward_input ? repeated_s(cost, model, s, a, d, pass, column) : 0);
}

HETPLAN_INLINE std::vector<std::span<const layer_id>> repeated_layers(const planning_graph& model, const stage& s) {
  const std::span<const layer_id> all = s.layers;
  if (s.recompute == recomputation::none) return {};
  if (s.recompute == recomputation::stage) return {all};
  key_index keep;  // blocks
  for (const layer_id l : all) {
    if (model[l].block >= 0 && model[l].activation > bytes{}) keep.insert({model[l].block});
  }
  std::vector<std::span<const layer_id>> runs;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    const std::int32_t block = model[all[first]].block;
    for (last = first; last < all.size() && model[all[last]].block == block;) ++last;
    if (keep.contains({block})) runs.push_back(all.subspan(first, last - first));
  }
  return runs;
}

HETPLAN_INLINE double repeated_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                 const device& d, const token_pass& pass, std::size_t column) {
  double total = 0;
  const work_kind again = pass.asks(phase::forward, a.samples, a.tensor_parallel, s.fraction(column));
  for (const std::span<const layer_id> run : repeated_layers(model, s)) total = detail::run_s(cost, model, s, run, again, d, total);
  return total;
}

HETPLAN_INLINE double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                   const device& d, phase what, const token_passes& passes, std::size_t column) {
  return mean_over(passes, [&](const token_pass& pass) { return stage_time_s(cost, model, s, a, d, what, pass, column); });
}

HETPLAN_INLINE double memory_bound_s(const any_cost_model& cost, const planning_graph& model, const stage& s,
                                     std::span<const layer_id> layers, const work_kind& k, const device& d) {
  double total = 0;
  if (!cost.tells_parts() || !d.power.tells_memory()) return total;
  for (const layer_id l : layers) {
    work_kind mine = k;
    if (!s.offload.empty()) mine.tier_bandwidth = tier_bandwidth(s, l, d);
    total += checked_parts(cost, mine.of(model[l]), d).memory_bound().value();
  }
  return total;
}

HETPLAN_INLINE double stage_memory_bound_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                           const device& d, phase what, const token_pass& pass, std::size_t column) {
  if (!cost.tells_parts() || !d.power.tells_memory()) return 0;
  const auto total_s = [&](phase each, std::span<const layer_id> layers) {
    std::vector<layer_id> some;
    for (const layer_id l : layers) {
      if (pass.runs(model[l])) some.push_back(l);
    }
    return memory_bound_s(cost, model, s, some, pass.asks(each, a.samples, a.tensor_parallel, s.fraction(column)), d);
  };
  double total = total_s(what, s.layers);
  if (what != phase::backward_input) return total;
  for (const std::span<const layer_id> again : repeated_layers(model, s)) total += total_s(phase::forward, again);
  return total;
}

HETPLAN_INLINE std::vector<double> all_reduces_of(const planning_graph& model, const stage& s, phase what, const token_pass& pass) {
  if (what == phase::backward_weight) return {};
  std::vector<double> all;
  if (what == phase::backward_input) all = repeated_all_reduces(model, s, pass);
  detail::add_all_reduces(all, model, s.layers, what, pass);
  return all;
}

HETPLAN_INLINE std::vector<double> repeated_all_reduces(const planning_graph& model, const stage& s, const token_pass& pass) {
  std::vector<double> all;
  for (const std::span<const layer_id> run : repeated_layers(model, s)) detail::add_all_reduces(all, model, run, phase::forward, pass);
  return all;
}

HETPLAN_INLINE std::vector<std::vector<layer_id>> units_of(const stage& s) {
  if (!s.units.empty()) return s.units;
  std::vector<std::vector<layer_id>> alone;
  for (const layer_id l : s.layers) alone.push_back({l});
  return alone;
}

HETPLAN_INLINE tensor_key tensor_of(const layer& l) { return {l.weight_group >= 0, l.weight_group >= 0 ? l.weight_group : l.id.value}; }

HETPLAN_INLINE double stage_optimizer_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const device& d,
                                        std::size_t column) {
  if (!cost.times_optimizer()) return 0;
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) {
    if (l.trainable_weight().value() > 0) total += checked_optimizer_step_s(cost, l, d) * detail::part_of(l, s, column);
  });
  return total / s.state_shards();
}

HETPLAN_INLINE double trainable_bytes(const planning_graph& model, const stage& s, std::size_t column) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += l.trainable_weight().value() * detail::part_of(l, s, column); });
  return total;
}

HETPLAN_INLINE unit_bytes bytes_of_unit(const planning_graph& model, std::span<const layer_id> unit) {
  unit_bytes total;
  for_each_tensor(model, unit, [&](const layer& l) {
    total.gathered += l.weight.value();
    total.scattered += l.trainable_weight().value();
  });
  return total;
}

HETPLAN_INLINE double stage_cache_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches, std::size_t column) {
  if (w.mode != mode::generation) return 0;
  double cache = 0;
  for (const layer_id l : s.layers)
    cache += checked_bytes(memory.cache(model[l], w), "cache", model[l]) * detail::part_of(model[l], s, column);
  return cache * a.samples * microbatches;
}

HETPLAN_INLINE void device_workspace::add(const planning_graph& model, const stage& s, const assignment& a, const workload& w,
                                          std::size_t column) {
  long long samples = a.samples;  // of the longest pass
  if (!s.cuts.empty()) {
    long long size = 0, longest = 0;
    for (std::size_t row = 0; row < s.rows(); ++row) size += s.row(row).samples;
    for (const auto* cuts : {&s.cuts.forward, &s.cuts.backward}) {
      for (std::size_t k = 1; k < cuts->size(); ++k) longest = std::max(longest, (*cuts)[k] - (*cuts)[k - 1]);
    }
    samples = a.samples * longest / size;
  }
  for (const layer_id id : s.layers) {
    const layer& l = model[id];
    const double part = detail::part_of(l, s, column);
    const temporary_bytes mine = temporary_bytes_of(model, l, w);
    largest_ = std::max(largest_, mine.of(static_cast<double>(samples)) * part);
    if (w.mode != mode::training || l.weight_group < 0 || !seen_.insert({id})) continue;
    shared& group = groups_[{l.weight_group}];
    const double scratch = mine.fixed * part;
    group.least = group.layers++ == 0 ? scratch : std::min(group.least, scratch);
  }
}

HETPLAN_INLINE double device_workspace::bytes() const {
  double most = largest_;
  for (const shared& g : groups_.values()) {
    if (g.layers > 1) most = std::max(most, (g.layers + 1) * g.least);
  }
  return most;
}

HETPLAN_INLINE double stage_workspace_bytes(const planning_graph& model, const stage& s, const assignment& a, const workload& w,
                                            std::size_t column) {
  device_workspace all;
  all.add(model, s, a, w, column);
  return all.bytes();
}

namespace detail {

/// Returns what a stage holds on a device whose only stage it is, without the device's own overhead.
[[nodiscard]] HETPLAN_INLINE held_bytes stage_held_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                                         const assignment& a, const workload& w, int microbatches, std::size_t column) {
  held_bytes held{.cache = stage_cache_bytes(memory, model, s, a, w, microbatches, column),
                  .workspace = stage_workspace_bytes(model, s, a, w, column)};
  std::vector<layer_id> some;
  const std::span<const layer_id> kept = layers_in_memory(s, some);
  if (s.is_plain()) {
    held.state = memory.total_state(model, kept, w, s.state_shards());
    return held;
  }
  for_each_tensor(model, kept, [&](const layer& l) { held.state += state_of(memory, l, w, s, column); });
  held.workspace += gathered_bytes(model, s, w);
  return held;
}

}  // namespace detail

HETPLAN_INLINE double stage_static_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                         const workload& w, int microbatches, std::size_t column) {
  return detail::stage_held_bytes(memory, model, s, a, w, microbatches, column).all();
}

HETPLAN_INLINE std::vector<double> static_bytes(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                                const cluster& c) {
  std::vector<double> total;
  for (const held_bytes& held : held_by_devices(p, model, memory, c)) total.push_back(held.all());
  return total;
}

HETPLAN_INLINE std::vector<held_bytes> held_by_devices(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                                       const cluster& c) {
  std::vector<held_bytes> total(c.size());
  std::vector<int> stages_on(c.size(), 0);
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) ++stages_on[a.device.index()];
  }
  keyed<double> held;  // by device and tensor
  std::vector<layer_id> some;
  std::vector<device_workspace> workspace(c.size());
  for (const stage& s : p.stages) {
    for (std::size_t i = 0; i < s.devices.size(); ++i) {
      const assignment& a = s.devices[i];
      const std::size_t column = s.column_of(i);
      const int microbatches = p.microbatches_of(s);
      held_bytes& mine = total[a.device.index()];
      if (stages_on[a.device.index()] == 1) {
        mine = detail::stage_held_bytes(memory, model, s, a, p.workload, microbatches, column);
        continue;
      }
      for_each_tensor(model, detail::layers_in_memory(s, some), [&](const layer& l) {
        const double state = detail::state_of(memory, l, p.workload, s, column);
        const auto [is_shared, number] = tensor_of(l);
        double& most = held[{a.device, is_shared, number}];
        if (state <= most) return;
        mine.state += state - most;
        most = state;
      });
      mine.workspace += detail::gathered_bytes(model, s, p.workload);
      mine.cache += stage_cache_bytes(memory, model, s, a, p.workload, microbatches, column);
      workspace[a.device.index()].add(model, s, a, p.workload, column);
    }
  }
  for (const device& d : c.devices()) {
    const std::size_t i = d.id.index();
    if (stages_on[i] == 0) continue;
    total[i].workspace += workspace[i].bytes();
    total[i].overhead = d.memory_overhead.value();
  }
  return total;
}

HETPLAN_INLINE share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                               const assignment& a, const workload& w, double inputs, std::size_t column,
                                               const token_pass& pass) {
  const auto total = [&](const std::vector<layer_id>& layers) {
    if (s.columns.empty() && !pass.cached) return memory.total_activations(model, layers, w);
    any_memory_model::activation_bytes kept;
    for (const layer_id l : layers) {
      const auto [all, for_weights] = memory.total_activations(model, std::span(&l, 1), w);
      const double part = detail::part_of(model[l], s, column) * pass.share_of(model[l]);
      kept.all += all * part;
      kept.for_weights += for_weights * part;
    }
    return kept;
  };
  if (s.recompute == recomputation::blocks) {
    const detail::stage_blocks parts = detail::blocks_of(model, s);
    auto [kept, for_weights] = total(parts.outside);
    double largest = 0, all = 0;
    for (const auto& block : parts.blocks) {
      const any_memory_model::activation_bytes mine = total(block);
      largest = std::max(largest, mine.all);
      all += mine.all;
      for_weights += mine.for_weights;
    }
    return {(kept + parts.inputs) * a.samples, largest * a.samples, (parts.inputs + for_weights) * a.samples, all * a.samples};
  }
  const any_memory_model::activation_bytes kept = total(s.layers);
  if (s.recompute == recomputation::none) return {kept.all * a.samples, 0, kept.for_weights * a.samples};
  return {inputs * a.samples, kept.all * a.samples, (inputs + kept.for_weights) * a.samples};
}

HETPLAN_INLINE share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                               const assignment& a, const workload& w, double inputs, std::size_t column) {
  if (w.mode != mode::generation) return stage_share_memory(memory, model, s, a, w, inputs, column, token_pass{});
  share_memory most;
  for (const token_pass& shape : shapes_of(token_passes(w, model)))
    most.forward = std::max(most.forward, stage_share_memory(memory, model, s, a, w, inputs, column, shape).forward);
  return most;
}

HETPLAN_INLINE const stage_edge* stage_graph::find(stage_id from, stage_id to) const {
  const auto at =
      std::lower_bound(edges.begin(), edges.end(), std::pair(from, to),
                       [](const stage_edge& e, const std::pair<stage_id, stage_id>& ends) { return std::pair(e.from, e.to) < ends; });
  return at != edges.end() && at->from == from && at->to == to ? &*at : nullptr;
}

HETPLAN_INLINE double input_bytes(const stage_graph& g, stage_id s) {
  double total = 0;
  for (const std::size_t e : g[s].in) total += g.edges[e].forward_cut.value();
  return total;
}

HETPLAN_INLINE stage_graph make_stage_graph(const plan& p, const planning_graph& model, const token_pass& pass) {
  stage_graph g;
  g.nodes.resize(p.stages.size());
  std::vector<long long> first(p.pipeline_count() + 1, 0);
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) first[i + 1] = first[i] + p.pipeline_samples(static_cast<int>(i));

  std::vector<stage_id> stage_of(model.size() * p.pipeline_count());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    stage_graph::node& n = g.nodes[s];
    n.microbatch_size = p.size_of(st);
    n.microbatches = p.microbatches_of(st);
    n.cuts = st.cuts;
    n.first_sample = first[static_cast<std::size_t>(st.pipeline)];
    for (const layer_id l : st.layers) stage_of[static_cast<std::size_t>(st.pipeline) * model.size() + l.index()] = stage_id(s);
  }

  // One tensor per (producing layer, consuming stage): the largest of its edges.
  std::vector<stage_edge> tensors;
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) {
    const auto at = [&](layer_id l) { return stage_of[i * model.size() + l.index()]; };
    for (const layer& l : model.layers()) {
      const std::size_t begin = tensors.size();
      for (const layer_edge& e : model.out_edges(l.id)) {
        const stage_id from = at(l.id), to = at(e.to);
        if (from == to || !pass.runs(l) || !pass.runs(model[e.to])) continue;
        const double share = pass.share_of(l, model[e.to]);
        auto it = std::find_if(tensors.begin() + static_cast<std::ptrdiff_t>(begin), tensors.end(),
                               [&](const stage_edge& t) { return t.to == to; });
        if (it == tensors.end()) it = tensors.insert(it, {from, to, {}, {}});
        it->forward_cut = std::max(it->forward_cut, e.forward * share);
        it->backward_cut = std::max(it->backward_cut, e.gradient * share);
      }
    }
  }
  sort_by(tensors, [](const stage_edge& e) { return std::pair(e.from, e.to); });
  for (const stage_edge& t : tensors) {
    if (g.edges.empty() || g.edges.back().from != t.from || g.edges.back().to != t.to) {
      g.edges.push_back(t);
    } else {
      g.edges.back().forward_cut += t.forward_cut;
      g.edges.back().backward_cut += t.backward_cut;
    }
  }

  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const std::size_t from = g.edges[e].from.index(), to = g.edges[e].to.index();
    g.nodes[from].out.push_back(e);
    g.nodes[to].in.push_back(e);
    pairs.emplace_back(from, to);
  }
  for (const std::size_t s : topological_order(g.nodes.size(), pairs)) g.topological.push_back(stage_id(s));
  for (auto it = g.topological.rbegin(); it != g.topological.rend(); ++it) {
    stage_graph::node& n = g.nodes[it->index()];
    for (const std::size_t e : n.out) n.depth = std::max(n.depth, 1 + g.nodes[g.edges[e].to.index()].depth);
  }
  return g;
}

}  // namespace hetplan
