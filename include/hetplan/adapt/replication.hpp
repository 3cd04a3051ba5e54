// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Topology-driven replication: which device backs up whose stage, and what that takes.

#include <algorithm>
#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/moved_bytes.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_cost.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// What a backup holds.
enum class backup_content {
  resume,  ///< what a resume needs: W (1 + optimizer_factor) where a layer learns, else W
  weights  ///< W: the optimizer starts anew
};

/// A stage that only one device runs, and the device that keeps a copy for it.
struct backup {
  stage_id stage;
  device_id from;
  device_id to = {};
  std::vector<layer_id> layers = {};  ///< one per tensor, as in fetch::layers
  bytes once = {};                    ///< immutable weights: sent once
  bytes each_time = {};               ///< what training changes: sent at every backup

  /// What it takes of the keeper's memory.
  [[nodiscard]] bytes held() const { return once + each_time; }
  friend bool operator==(const backup&, const backup&) = default;
};

struct replication {
  std::vector<backup> backups = {};
  /// One device runs it, and no other device of the plan has a way and the memory for a copy; or its devices share out the
  /// optimizer's state, of which no copies are made.
  std::vector<stage_id> unprotected = {};
  friend bool operator==(const replication&, const replication&) = default;
};

/// Bytes of each device's memory that a plan leaves free: what it may use less its state, caches and the activations of the
/// microbatches in flight (an upper bound of the peak: as many as the warm-up says; all of them for explicit orders).
///
/// Complexity  O(layers of all stages x devices per stage).
template <memory_model Memory = plain_memory>
[[nodiscard]] std::vector<double> free_bytes(const plan& p, const planning_graph& model, const cluster& c, const Memory& memory = {}) {
  std::vector<double> held = static_bytes(p, model, memory, c.size());
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

/// A stage on one device is backed up on a device of the next stage, the last stage on one of the first; of its devices the
/// one with most memory free (ties: the smaller id). Stages on several devices need no backup.
///
/// The next stage is the successor with the smallest id, for a sink the first stage of its pipeline. Deviations: only
/// tensors that no other device of the plan runs are backed up (weights tied to another stage are safe there, and so is a
/// layer that another pipeline runs); where the next stage has no other device with enough memory, the stages behind it
/// are asked in turn, then those from the first on.
///
/// @param p        a valid plan.
/// @return         backups by stage; every backup fits beside the plan and the backups before it.
/// Complexity      O(layers + stages^2 x devices per stage), and that of free_bytes.
/// Determinism     yes.
/// Source          Asteroid, section 3.4, which backs up "its stage model" and says nothing of the optimizer's state, of
///                 memory, or of graphs of stages.
template <memory_model Memory = plain_memory>
[[nodiscard]] replication replicate_by_topology(const plan& p, const planning_graph& model, const cluster& c,
                                                backup_content content = backup_content::resume, const Memory& memory = {}) {
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
    for (const layer_id l : mine.layers) b.layers.push_back(held.tensor_of(l));
    std::sort(b.layers.begin(), b.layers.end());
    b.layers.erase(std::unique(b.layers.begin(), b.layers.end()), b.layers.end());
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

/// The backups as something to run: one round. The first time everything is sent; later `split_immutable(...).second` is,
/// what training changes.
[[nodiscard]] migration backup_fetches(const replication& r, const planning_graph& model, const workload& w);

/// Holdings with the backups added: what a migration may fetch from. A copy of what training changes is older than the
/// original, so it counts only where nobody that is there holds the original; then the whole model goes back to it.
///
/// Complexity  O(layers x devices).
[[nodiscard]] holdings with_backups(const holdings& held, const replication& r, const planning_graph& model, const workload& w,
                                    const conditions& now);

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/replication.ipp>
#endif
