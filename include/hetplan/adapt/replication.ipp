// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/replication.hpp>

#include <range/v3/action/sort.hpp>
#include <range/v3/action/unique.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE std::optional<mix::switch_cost> estimate_switch(const planning_problem& problem, const holdings& held, const plan& next,
                                                               const conditions& now) {
  const migration m = delta_migration(held, next, problem.model, problem.cluster, now);
  if (!m.status.ok()) return std::nullopt;
  if (m.empty()) return mix::switch_cost{};
  const migration_run run = run_migration(m, problem.cluster, now, problem.models.energy);
  double extra = 0;
  for (const device& d : problem.cluster.devices()) {
    const joules idle = checked_energy(problem.models.energy, {.total = run.time}, d);
    if (run.energy[d.id.index()].value() > 0) extra += (run.energy[d.id.index()] - idle).value();
  }
  return mix::switch_cost{run.time.value(), std::max(0.0, extra)};
}

HETPLAN_INLINE std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                            const cluster& c, const any_memory_model& memory) {
  auto [beside, stopped] = split_immutable(all);
  if (beside.empty()) return {std::move(beside), std::move(stopped)};
  std::vector<double> room = free_bytes(running, model, c, memory);
  for (const auto& round : beside.rounds) {
    for (const fetch& f : round) room[f.to.index()] -= f.volume.value();
  }
  for (auto& round : beside.rounds) {
    const auto no_room = std::stable_partition(round.begin(), round.end(), [&](const fetch& f) { return room[f.to.index()] >= 0; });
    if (no_room != round.end()) stopped.rounds.emplace_back(no_room, round.end());
    round.erase(no_room, round.end());
  }
  std::erase_if(beside.rounds, [](const auto& round) { return round.empty(); });
  return {std::move(beside), std::move(stopped)};
}

HETPLAN_INLINE migration backup_fetches(const replication& r, const planning_graph& model, const workload& w) {
  migration m;
  std::vector<fetch> round;
  for (const backup& b : r.backups) {
    for (const bool immutable : {true, false}) {
      fetch f{b.from, b.to, immutable ? b.once : b.each_time, immutable, {}};
      for (const layer_id l : b.layers) {
        if (is_immutable(model[l], w) == immutable) f.layers.push_back(l);
      }
      if (!f.layers.empty()) round.push_back(std::move(f));
    }
  }
  if (!round.empty()) m.rounds.push_back(std::move(round));
  return m;
}

HETPLAN_INLINE holdings with_backups(const holdings& held, const replication& r, const planning_graph& model, const workload& w,
                                     const conditions& now) {
  holdings all = held;
  for (const backup& b : r.backups) {
    for (const layer_id l : b.layers) {
      const auto holders = held.holders(l);
      const bool there = std::any_of(holders.begin(), holders.end(), [&](device_id d) { return now.present[d.index()] != 0; });
      if (!there || is_immutable(model[l], w)) all.add(b.to, l);
    }
  }
  return all;
}

HETPLAN_INLINE std::vector<double> free_bytes(const plan& p, const planning_graph& model, const cluster& c,
                                              const any_memory_model& memory) {
  std::vector<double> held = static_bytes(p, model, memory, c);
  const stage_graph g = make_stage_graph(p, model);
  const std::vector<int> warmup = resolve_warmup(p, g);
  const bool training = p.workload.mode == mode::training;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const int count = g.nodes[s].microbatches;
    const int kept = !training ? 1 : p.schedule.kind == schedule_kind::one_f_one_b ? std::min(warmup[s], count) : count;
    for (const assignment& a : p.stages[s].devices) {
      held[a.device.index()] += stage_share_memory(memory, model, p.stages[s], a, p.workload, input_bytes(g, stage_id(s))).at_most(kept);
    }
  }
  std::vector<double> free;
  for (const device& d : c.devices()) free.push_back(d.usable_memory().value() - held[d.id.index()]);
  return free;
}

HETPLAN_INLINE replication replicate_by_topology(const plan& p, const planning_graph& model, const cluster& c, backup_content content,
                                                 const any_memory_model& memory) {
  const holdings held = holdings_of(p, model, c.size());
  const stage_graph g = make_stage_graph(p, model);
  std::vector<double> free = free_bytes(p, model, c, memory);
  replication r;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& mine = p.stages[s];
    if (mine.devices.size() != 1) {
      if (mine.state_shards() > 1) r.unprotected.push_back(stage_id(s));
      continue;
    }
    backup b{.stage = stage_id(s), .from = mine.devices.front().device};
    b.layers = mine.layers | ranges::views::transform([&](layer_id l) { return held.tensor_of(l); }) | ranges::to<std::vector>() |
               ranges::actions::sort | ranges::actions::unique;
    std::erase_if(b.layers, [&](layer_id l) { return model[l].weight.value() == 0 || held.holders(l).size() > 1; });
    for (const layer_id l : b.layers) {
      const bytes size = content == backup_content::weights ? model[l].weight : moved_bytes(model[l], p.workload);
      (is_immutable(model[l], p.workload) ? b.once : b.each_time) += size;
    }
    if (b.layers.empty()) continue;
    std::vector<std::size_t> ask;
    if (!g.nodes[s].out.empty()) ask.push_back(g.edges[g.nodes[s].out.front()].to.index());
    const auto in_turn = [&](std::size_t from, std::size_t to) {
      for (std::size_t t = from; t < to; ++t) {
        if (p.stages[t].pipeline == mine.pipeline) ask.push_back(t);
      }
    };
    if (!g.nodes[s].out.empty()) in_turn(s + 1, p.stages.size());
    in_turn(0, p.stages.size());
    for (const std::size_t t : ask) {
      for (const assignment& a : p.stages[t].devices) {
        const double room = free[a.device.index()];
        if (a.device == b.from || room < b.held().value() || c.network().find(b.from, a.device) == nullptr) continue;
        if (!b.to.valid() || room > free[b.to.index()] || (room == free[b.to.index()] && a.device < b.to)) b.to = a.device;
      }
      if (b.to.valid()) break;
    }
    if (!b.to.valid()) {
      r.unprotected.push_back(b.stage);
      continue;
    }
    free[b.to.index()] -= b.held().value();
    r.backups.push_back(std::move(b));
  }
  return r;
}

}  // namespace hetplan::adapt
