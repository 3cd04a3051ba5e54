// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/expansion_size.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE plan expand_blocks(plan on_fused, const coarsen::blocks& b) {
  for (stage& s : on_fused.stages) {
    std::vector<layer_id> members;
    for (const layer_id l : s.layers) {
      if (!l.valid() || l.index() >= b.size()) {
        throw invalid_input("expand_blocks: stage \"" + escaped(s.name) + "\" names layer " + std::to_string(l.value) +
                            "; expected one of the " + std::to_string(b.size()) + " blocks");
      }
      members.insert(members.end(), b.layers[l.index()].begin(), b.layers[l.index()].end());
    }
    s.layers = std::move(members);
    std::vector<offloaded_layer> offload;
    for (const offloaded_layer& o : s.offload) {
      for (const layer_id l : b.layers[o.layer.index()]) offload.push_back({l, o.tier});
    }
    sort_by(offload, &offloaded_layer::layer);
    s.offload = std::move(offload);
  }
  return on_fused;
}

HETPLAN_INLINE expansion_size size_of_expansion(const plan& p, const planning_graph& model, const stage_graph& g) {
  const bool training = p.workload.mode == mode::training;
  const double steps = pass_count(p.workload, model.tokens_per_sample());
  const auto intervals = [&](std::size_t s) {
    const int most = std::max(g.nodes[s].passes(phase::forward), training ? g.nodes[s].passes(phase::backward_input) : 0);
    return static_cast<double>(most) * static_cast<double>(p.stages[s].devices.size());
  };
  const auto overlaps = [&](std::size_t s, std::size_t t) {
    if (!p.stages[s].is_plain() || !p.stages[t].is_plain()) return intervals(s) + intervals(t);
    const long long a = g.nodes[s].microbatch_size, b = g.nodes[t].microbatch_size, together = a / std::gcd(a, b) * b;
    return intervals(s) + intervals(t) - static_cast<double>(g.nodes[s].microbatches * a / together);
  };
  expansion_size size;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    const auto units = static_cast<double>(st.units.empty() ? st.layers.size() : st.units.size());
    size.tasks += intervals(s) * (training ? 2 : steps) * (st.shard == sharding::fsdp || st.shard == sharding::zero2 ? units : 1);
    key_index tiers;
    for (const offloaded_layer& o : st.offload) tiers.insert(parts_of(o.tier));
    size.transfers += intervals(s) * (training ? 2 : steps) * static_cast<double>(tiers.size());
    if (st.column_count() > 1) size.transfers += intervals(s) * 2 * steps;
    if (st.shard == sharding::fsdp || st.shard == sharding::zero2) size.transfers += intervals(s) * 3 * units;
  }
  for (const stage_edge& e : g.edges) {
    const double one_way = overlaps(e.from.index(), e.to.index());
    size.transfers += one_way * (training && e.backward_cut.value() > 0 ? 2 : steps);
  }
  if (p.workload.mode == mode::generation) {
    for (std::size_t t = 0; t < p.stages.size(); ++t) {
      for (std::size_t s = 0; s < p.stages.size(); ++s) {
        const bool token = g.nodes[t].out.empty() && g.nodes[s].in.empty() && p.stages[s].pipeline == p.stages[t].pipeline;
        if (token) size.transfers += overlaps(t, s) * (steps - 1);
      }
    }
  }
  const std::vector<reduction> reductions = training ? reductions_of(p, model) : std::vector<reduction>{};
  for (const transfer_rule& r : p.schedule.transfers) {
    const auto known = [&](stage_id s) { return s.valid() && s.index() < g.nodes.size(); };
    double spoken_of = 1;
    if (r.kind == transfer_kind::sync) {
      spoken_of = static_cast<double>(reductions.size());
    } else if (known(r.from_stage) && known(r.to_stage) && g[r.from_stage].microbatch_size != g[r.to_stage].microbatch_size) {
      spoken_of = g[r.from_stage].microbatch_size / g[r.to_stage].microbatch_size + 2;
    }
    size.transfers += spoken_of * steps;
  }
  if (!training) return size;
  for (const auto& order : p.schedule.orders) {
    size.tasks += static_cast<double>(
        std::count_if(order.begin(), order.end(), [](const order_entry& e) { return e.what == phase::backward_weight; }));
  }
  for (const stage& s : p.stages) {
    if (trainable_bytes(model, s) > 0) size.tasks += static_cast<double>(s.devices.size());
  }
  for (const reduction& r : reductions) {
    const auto members = static_cast<double>(r.members.size());
    size.transfers += r.is_across_stages() && p.parameter_server ? 2 * members : members;
  }
  return size;
}

HETPLAN_INLINE std::optional<double> too_large_an_expansion(const plan& p, const planning_graph& model) {
  double intervals = 0, held = 0;
  for (const stage& s : p.stages) {
    intervals += static_cast<double>(p.microbatches_of(s)) * static_cast<double>(s.devices.size());
    held += static_cast<double>(s.layers.size());
  }
  // Upper bound: each interval has its tasks, and overlaps at most one neighbour per direction and other stage. In addition at
  // most: a W per interval, an optimizer step and a ring transfer per device, two transfers per stage that shares a layer's tensor.
  const double stages = static_cast<double>(p.stages.size()),
               per_interval = std::max(2.0, 1.0 * pass_count(p.workload, model.tokens_per_sample()));
  const double most = intervals * (per_interval * (1 + 2 * stages) + 3) + 2 * held;
  const bool plain = std::all_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return s.is_plain() && s.offload.empty(); });
  if (plain && p.schedule.transfers.empty() && most <= max_expansion) return std::nullopt;
  const double size = size_of_expansion(p, model, make_stage_graph(p, model)).total();
  if (size <= max_expansion) return std::nullopt;
  return size;
}

}  // namespace hetplan
