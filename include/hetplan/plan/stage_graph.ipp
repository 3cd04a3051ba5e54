// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/stage_graph.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>

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
    case sharding::zero2: return std::max(0.0, checked_state(memory, l, w, s.state_shards()) - l.trainable_weight().value() * (1 - 1 / n));
    case sharding::none:
    case sharding::state: break;
  }
  return checked_state(memory, l, w, s.state_shards()) * part_of(l, s, column);
}

/// Returns the buffer for whole units beside a device's own part: two gathered ones (in use, arriving), or one of summed gradients.
HETPLAN_INLINE double gathered_bytes(const planning_graph& model, const stage& s) {
  if (s.devices.size() < 2 || (s.shard != sharding::fsdp && s.shard != sharding::zero2)) return 0;
  double largest = 0;
  for (const auto& unit : units_of(s)) {
    const unit_bytes b = bytes_of_unit(model, unit);
    largest = std::max(largest, s.shard == sharding::fsdp ? 2 * b.gathered : b.scattered);
  }
  return largest;
}

}  // namespace detail

HETPLAN_INLINE bool runs(const stage& s, const planning_graph& model, const token_pass& pass) {
  if (!pass.cached || (pass.first && pass.last)) return true;
  return std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return pass.runs(model[l]); });
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
    return cost.total_s(model, layers, pass.asks(each, a.samples, a.tensor_parallel, s.fraction(column)), d, before);
  };
  return what == phase::backward_input && s.recompute ? total_s(what, total_s(phase::forward, 0)) : total_s(what, 0);
}

HETPLAN_INLINE double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                   const device& d, phase what, const token_passes& passes, std::size_t column) {
  return mean_over(passes, [&](const token_pass& pass) { return stage_time_s(cost, model, s, a, d, what, pass, column); });
}

HETPLAN_INLINE std::vector<double> all_reduces_of(const planning_graph& model, const stage& s, phase what, const token_pass& pass) {
  std::vector<double> all;
  const auto add = [&](phase each) {
    for (const layer_id l : s.layers) {
      const layer& x = model[l];
      const bool works = x.split == layer_split::rows && pass.runs(x) && work{x, each}.flops_per_sample().value() > 0;
      if (works && x.largest_output.value() > 0) all.push_back(x.largest_output.value() * pass.share_of(x));
    }
  };
  if (what == phase::backward_weight) return all;
  if (what == phase::backward_input && s.recompute) add(phase::forward);
  add(what);
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

HETPLAN_INLINE double stage_workspace_bytes(const planning_graph& model, const stage& s, const assignment& a, const workload& w,
                                            std::size_t column) {
  if (w.mode != mode::training) return 0;
  double largest = 0;
  for (const layer_id l : s.layers)
    largest = std::max(largest, model[l].workspace.value() * model[l].tokens_per_sample * detail::part_of(model[l], s, column));
  if (s.cuts.empty() || !(largest > 0)) return largest * a.samples;
  long long size = 0, longest = 0;  // of a microbatch, and of the longest pass
  for (std::size_t row = 0; row < s.rows(); ++row) size += s.row(row).samples;
  for (const auto* cuts : {&s.cuts.forward, &s.cuts.backward}) {
    for (std::size_t k = 1; k < cuts->size(); ++k) longest = std::max(longest, (*cuts)[k] - (*cuts)[k - 1]);
  }
  return largest * static_cast<double>(a.samples * longest / size);
}

HETPLAN_INLINE double stage_static_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                         const workload& w, int microbatches, std::size_t column) {
  const double cache = stage_cache_bytes(memory, model, s, a, w, microbatches, column) + stage_workspace_bytes(model, s, a, w, column);
  if (s.is_plain()) return memory.total_state(model, s.layers, w, s.state_shards()) + cache;
  double state = 0;
  for_each_tensor(model, s, [&](const layer& l) { state += detail::state_of(memory, l, w, s, column); });
  return state + detail::gathered_bytes(model, s) + cache;
}

HETPLAN_INLINE std::vector<double> static_bytes(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                                const cluster& c) {
  std::vector<double> total(c.size(), 0);
  std::vector<int> stages_on(c.size(), 0);
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) ++stages_on[a.device.index()];
  }
  keyed<double> held;  // by device and tensor
  std::vector<double> workspace(c.size(), 0);
  for (const stage& s : p.stages) {
    for (std::size_t i = 0; i < s.devices.size(); ++i) {
      const assignment& a = s.devices[i];
      const std::size_t column = s.column_of(i);
      const int microbatches = p.microbatches_of(s);
      double& mine = total[a.device.index()];
      if (stages_on[a.device.index()] == 1) {
        mine = stage_static_bytes(memory, model, s, a, p.workload, microbatches, column);
        continue;
      }
      double more = 0;
      for_each_tensor(model, s, [&](const layer& l) {
        const double state = detail::state_of(memory, l, p.workload, s, column);
        const auto [is_shared, number] = tensor_of(l);
        double& most = held[{a.device, is_shared, number}];
        if (state <= most) return;
        more += state - most;
        most = state;
      });
      mine += more + detail::gathered_bytes(model, s) + stage_cache_bytes(memory, model, s, a, p.workload, microbatches, column);
      double& largest = workspace[a.device.index()];
      largest = std::max(largest, stage_workspace_bytes(model, s, a, p.workload, column));
    }
  }
  for (const device& d : c.devices()) {
    const std::size_t i = d.id.index();
    if (stages_on[i] > 0) total[i] += workspace[i] + d.memory_overhead.value();
  }
  return total;
}

HETPLAN_INLINE share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                               const assignment& a, const workload& w, double inputs, std::size_t column,
                                               const token_pass& pass) {
  any_memory_model::activation_bytes kept;
  if (s.columns.empty() && !pass.cached) {
    kept = memory.total_activations(model, s.layers, w);
  } else {
    for (const layer_id l : s.layers) {
      const auto [all, for_weights] = memory.total_activations(model, std::span(&l, 1), w);
      const double part = detail::part_of(model[l], s, column) * pass.share_of(model[l]);
      kept.all += all * part;
      kept.for_weights += for_weights * part;
    }
  }
  if (!s.recompute) return {kept.all * a.samples, 0, kept.for_weights * a.samples};
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
