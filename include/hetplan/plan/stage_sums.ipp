// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/stage_sums.hpp>

#include <map>

#include <hetplan/cluster/cluster.hpp>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE double stage_time_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const assignment& a,
                                   const device& d, phase what, int context) {
  const auto total_s = [&](phase each, double before) {
    return cost.total_s(model, s.layers,
                        {.phase = each, .batch = static_cast<double>(a.samples), .tensor_parallel = a.tensor_parallel, .context = context},
                        d, before);
  };
  return what == phase::backward_input && s.recompute ? total_s(what, total_s(phase::forward, 0)) : total_s(what, 0);
}

HETPLAN_INLINE tensor_key tensor_of(const layer& l) { return {l.weight_group >= 0, l.weight_group >= 0 ? l.weight_group : l.id.value}; }

HETPLAN_INLINE double stage_optimizer_s(const any_cost_model& cost, const planning_graph& model, const stage& s, const device& d) {
  if (!cost.times_optimizer()) return 0;
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) {
    if (l.trainable_weight().value() > 0) total += checked_optimizer_step_s(cost, l, d);
  });
  return total / s.state_shards();
}

HETPLAN_INLINE double trainable_bytes(const planning_graph& model, const stage& s) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += l.trainable_weight().value(); });
  return total;
}

HETPLAN_INLINE double stage_cache_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches) {
  if (w.mode != mode::generation) return 0;
  double cache = 0;
  for (const layer_id l : s.layers) cache += checked_bytes(memory.cache(model[l], w), "cache", model[l]);
  return cache * a.samples * microbatches;
}

HETPLAN_INLINE double stage_static_bytes(const any_memory_model& memory, const planning_graph& model, const stage& s, const assignment& a,
                                         const workload& w, int microbatches) {
  return memory.total_state(model, s.layers, w, s.state_shards()) + stage_cache_bytes(memory, model, s, a, w, microbatches);
}

HETPLAN_INLINE std::vector<double> static_bytes(const plan& p, const planning_graph& model, const any_memory_model& memory,
                                                std::size_t devices) {
  std::vector<double> total(devices, 0);
  std::vector<int> stages_on(devices, 0);
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) ++stages_on[a.device.index()];
  }
  std::map<std::pair<device_id, tensor_key>, double> held;
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) {
      const int microbatches = p.microbatches_of(s);
      double& mine = total[a.device.index()];
      if (stages_on[a.device.index()] == 1) {
        mine = stage_static_bytes(memory, model, s, a, p.workload, microbatches);
        continue;
      }
      double more = 0;
      for_each_tensor(model, s, [&](const layer& l) {
        const double state = checked_state(memory, l, p.workload, s.state_shards());
        double& most = held[{a.device, tensor_of(l)}];
        if (state <= most) return;
        more += state - most;
        most = state;
      });
      mine += more + stage_cache_bytes(memory, model, s, a, p.workload, microbatches);
    }
  }
  return total;
}

HETPLAN_INLINE share_memory stage_share_memory(const any_memory_model& memory, const planning_graph& model, const stage& s,
                                               const assignment& a, const workload& w, double inputs) {
  const auto [activations, for_weights] = memory.total_activations(model, s.layers, w);
  if (!s.recompute) return {activations * a.samples, 0, for_weights * a.samples};
  return {inputs * a.samples, activations * a.samples, (inputs + for_weights) * a.samples};
}

}  // namespace HETPLAN_NAMESPACE
