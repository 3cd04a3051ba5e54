// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/search/fit_offload.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/solve/cheapest_tiers.hpp>

namespace hetplan {

namespace detail {

/// One device, or the devices of a stage that have no other: they offload together.
class offload_unit {
 public:
  /// @param stages  indices into the plan, all on the same devices
  offload_unit(const planning_problem& problem, const plan& p, std::vector<std::size_t> stages)
      : problem_(problem), plan_(p), stages_(std::move(stages)), devices_(p.stages[stages_.front()].devices),
        passes_(p.workload, problem.model) {
    for (const memory_tier& t : at(0).tiers) {
      double room = t.memory.value();
      bool everywhere = true;
      for (std::size_t i = 1; i < devices_.size(); ++i) {
        const memory_tier* same = at(i).find_tier(t.name);
        everywhere = everywhere && same != nullptr;
        if (same != nullptr) room = std::min(room, same->memory.value());
      }
      if (!everywhere) continue;
      names_.push_back(t.name);
      room_.push_back(room);
    }
    add_tensors();
  }

  /// Returns false if the devices' tiers cannot free so many bytes.
  [[nodiscard]] bool free(double need, plan& to) const {
    constexpr long long most_nodes = 100'000;
    const auto chosen = cheapest_tiers(items_, need, room_, most_nodes);
    if (!chosen) return false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      std::size_t next = 0;  // of the equal tensors
      for (std::size_t t = 0; t < names_.size(); ++t) {
        for (int n = 0; n < chosen->taken[i][t]; ++n) {
          for (const auto& [s, l] : tensors_[i][next]) to.stages[s].offload.push_back({l, names_[t]});
          ++next;
        }
      }
    }
    for (const std::size_t s : stages_) sort_by(to.stages[s].offload, &offloaded_layer::layer);
    return true;
  }

 private:
  using holder = std::pair<std::size_t, layer_id>;  ///< a stage and its layer
  [[nodiscard]] const device& at(std::size_t i) const { return problem_.cluster[devices_[i].device]; }

  void add_tensors() {
    struct tensor {
      std::vector<holder> holders = {};
      double state = 0, weight = 0;
    };
    keyed<tensor> tensors;
    for (const std::size_t s : stages_) {
      for (const layer_id id : plan_.stages[s].layers) {
        const layer& l = problem_.model[id];
        if (plan_.workload.mode == mode::training && l.trainable && l.weight.value() > 0) continue;
        const auto [shared, number] = tensor_of(l);
        tensor& t = tensors[{shared, number}];
        t.holders.emplace_back(s, id);
        t.state = std::max(t.state, checked_state(problem_.models.memory, l, plan_.workload, 1));
        t.weight = l.weight.value();
      }
    }
    keyed<std::size_t> equal;
    for (const tensor& t : tensors.values()) {
      if (!(t.state > 0)) continue;
      tier_item item{1, t.state, t.weight};
      for (std::size_t tier = 0; tier < names_.size(); ++tier) item.cost_s.push_back(cost_s(t.holders, tier));
      key_parts key{item.freed, item.weight};
      key.insert(key.end(), item.cost_s.begin(), item.cost_s.end());
      if (equal.insert(key, items_.size())) {
        items_.push_back(std::move(item));
        tensors_.push_back({t.holders});
      } else {
        const std::size_t same = *equal.find(key);
        ++items_[same].count;
        tensors_[same].push_back(t.holders);
      }
    }
  }

  /// Returns the seconds that a tensor in a tier adds to the run of the device that it delays most.
  [[nodiscard]] double cost_s(const std::vector<holder>& holders, std::size_t tier) const {
    double most = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      double sum = 0;
      for (const auto& [s, l] : holders) sum += cost_s(plan_.stages[s], l, s, i, tier);
      most = std::max(most, sum);
    }
    return most;
  }
  [[nodiscard]] double cost_s(const stage& s, layer_id l, std::size_t index, std::size_t i, std::size_t tier) const {
    const device& d = at(i);
    const memory_tier& from = *d.find_tier(names_[tier]);
    stage alone{.layers = {l}, .recompute = whole_stage_if(s.recomputes()), .columns = s.columns};
    const assignment& a = plan_.stages[index].devices[i];
    const auto time_s = [&](bool moved, const token_pass& pass) {
      alone.offload.clear();
      if (moved) alone.offload.push_back({l, from.name});
      double total = 0;
      for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
        if (what != phase::forward && plan_.workload.mode != mode::training) break;
        total += stage_time_s(problem_.cost, problem_.model, alone, a, d, what, pass, s.column_of(i));
        if (!moved || !from.shared.valid()) continue;
        for (const double bytes : stage_reads(problem_.model, alone, a, d, what, pass, s.column_of(i)))
          total += bytes / std::min(from.bandwidth, problem_.cluster.network()[from.shared].capacity).value();
      }
      return total;
    };
    double more = 0;
    for (std::size_t k = 0; k < passes_.distinct().size(); ++k) {
      const token_pass& pass = passes_.distinct()[k];
      if (pass.runs(problem_.model[l])) more += passes_.count_of(k) * (time_s(true, pass) - time_s(false, pass));
    }
    return std::max(0.0, more) * plan_.microbatches_of(s);
  }

  const planning_problem& problem_;
  const plan& plan_;
  std::vector<std::size_t> stages_;
  std::vector<assignment> devices_;
  token_passes passes_;
  std::vector<std::string> names_;  ///< of tiers
  std::vector<double> room_;
  std::vector<tier_item> items_;
  std::vector<std::vector<std::vector<holder>>> tensors_;  ///< by item: equal tensors
};

}  // namespace detail

HETPLAN_INLINE std::optional<plan> fit_offload(const planning_problem& problem, const plan& p, const evaluation& e) {
  const cluster& c = problem.cluster;
  plan fitted = p;
  std::vector<std::vector<std::size_t>> stages_on(c.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    for (const assignment& a : p.stages[s].devices) stages_on[a.device.index()].push_back(s);
  }
  const auto lacks = [&](device_id d) {
    const device_evaluation& x = e.devices[d.index()];
    return x.used ? x.peak_memory.value() - c[d].usable_memory().value() * (1 + limit_tolerance) : 0;
  };
  std::vector<char> done(p.stages.size(), 0);
  for (const device& d : c.devices()) {
    if (!(lacks(d.id) > 0)) continue;
    const std::vector<std::size_t>& mine = stages_on[d.id.index()];
    if (mine.empty() || d.tiers.empty()) return std::nullopt;
    const stage& first = p.stages[mine.front()];
    double need = lacks(d.id);
    if (first.devices.size() > 1) {  // together, once
      if (std::exchange(done[mine.front()], 1) != 0) continue;
      for (const assignment& a : first.devices) {
        if (stages_on[a.device.index()].size() > 1) return std::nullopt;
        need = std::max(need, lacks(a.device));
      }
      // A grid's column frees its part only.
      if (first.column_count() > 1 || (first.shard != sharding::none && first.shard != sharding::state)) return std::nullopt;
    }
    for (const std::size_t s : mine) {
      if (mine.size() > 1 && p.stages[s].devices.size() > 1) return std::nullopt;
    }
    if (!detail::offload_unit(problem, p, mine).free(need, fitted)) return std::nullopt;
  }
  return fitted;
}

}  // namespace hetplan
