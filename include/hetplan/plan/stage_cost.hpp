// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a stage costs on one of its devices: the one place where layers add up.

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace HETPLAN_NAMESPACE {

/// Bytes that a stage exchanges with other stages for every sample of its own.
struct stage_traffic {
  double sent = 0;
  double received = 0;
};

/// Seconds of one microbatch share in each phase; the sum over the stage's layers. A stage that recomputes has the time of its
/// forward in that of its backward's input part, too.
template <cost_model Cost>
[[nodiscard]] double stage_time_s(const Cost& cost, const planning_graph& model, const stage& s, const assignment& a, const device& d,
                                  phase what, int context) {
  double total = what == phase::backward_input && s.recompute ? stage_time_s(cost, model, s, a, d, phase::forward, context) : 0;
  for (const layer_id l : s.layers) {
    total += checked_time_s(cost,
                            {.layer = model[l],
                             .phase = what,
                             .batch = static_cast<double>(a.samples),
                             .tensor_parallel = a.tensor_parallel,
                             .context = context},
                            d);
  }
  return total;
}

/// Whose weights these are: (true, weight group), or (false, layer) where the layer shares them with nobody.
using tensor_key = std::pair<bool, std::int32_t>;
[[nodiscard]] inline tensor_key tensor_of(const layer& l) {
  return {l.weight_group >= 0, l.weight_group >= 0 ? l.weight_group : l.id.value};
}

/// The distinct tensors of a stage: a weight group counts once. Calls f(layer) for the first layer of each.
template <class F>
void for_each_tensor(const planning_graph& model, const stage& s, F&& f) {
  std::set<std::int32_t> seen;
  for (const layer_id l : s.layers) {
    if (model[l].weight_group >= 0 && !seen.insert(model[l].weight_group).second) continue;
    f(model[l]);
  }
}

/// Seconds of the optimizer's step for a stage on one of its devices: for each distinct trainable tensor the model's answer, or
/// the device's part of it where the state is shared out. 0 where the cost model has none.
template <cost_model Cost>
[[nodiscard]] double stage_optimizer_s(const Cost& cost, const planning_graph& model, const stage& s, const device& d) {
  static_assert(check_cost_model<Cost>());
  double total = 0;
  if constexpr (times_optimizer_step<Cost>) {
    for_each_tensor(model, s, [&](const layer& l) {
      if (l.trainable_weight().value() > 0) total += checked_optimizer_step_s(cost, l, d);
    });
  }
  return total / s.state_shards();
}

/// Trainable bytes of a stage: what its devices reduce among themselves.
[[nodiscard]] inline double trainable_bytes(const planning_graph& model, const stage& s) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += l.trainable_weight().value(); });
  return total;
}

/// Generation: the caches of every sequence that a device serves in a stage; 0 in the other modes.
template <memory_model Memory>
[[nodiscard]] double stage_cache_bytes(const Memory& memory, const planning_graph& model, const stage& s, const assignment& a,
                                       const workload& w, int microbatches) {
  if (w.mode != mode::generation) return 0;
  double cache = 0;
  for (const layer_id l : s.layers) cache += checked_bytes(memory.cache(model[l], w), "cache", model[l]);
  return cache * a.samples * microbatches;
}

/// Bytes that a device holds for its only stage all the time: state, and in generation every sequence's cache. For devices
/// that may hold several stages there is static_bytes.
template <memory_model Memory>
[[nodiscard]] double stage_static_bytes(const Memory& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += checked_state(memory, l, w, s.state_shards()); });
  return total + stage_cache_bytes(memory, model, s, a, w, microbatches);
}

/// Bytes that each device holds all the time. A tensor that several stages of a device hold is there once, at the largest of
/// their holdings, whichever mode and through whichever pipeline.
///
/// @param p        a valid plan.
/// @return         by device id.
/// Complexity      O(layers of all stages x devices per stage), log where a device holds several stages.
/// Source          semantics, section 2.
template <memory_model Memory>
[[nodiscard]] std::vector<double> static_bytes(const plan& p, const planning_graph& model, const Memory& memory, std::size_t devices) {
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

/// Bytes that one microbatch share takes and gives back.
struct share_memory {
  double forward = 0;      ///< taken when its F starts
  double backward = 0;     ///< taken on top when its B starts
  double for_weights = 0;  ///< of both, what B leaves to a W that runs apart; an unsplit backward releases everything

  [[nodiscard]] double whole() const { return forward + backward; }
  /// The most that a stage holds with so many microbatches in flight, of which one at a time is in its backward.
  [[nodiscard]] double at_most(int in_flight) const { return in_flight * forward + backward; }
};

/// What a microbatch share of a stage holds: its activations from F on; or, where the stage recomputes, its inputs from F on and
/// its activations from B on.
///
/// @param inputs  bytes that the stage reads from others per sample (input_bytes); counts where it recomputes.
/// Source         semantics, section 2.
template <memory_model Memory>
[[nodiscard]] share_memory stage_share_memory(const Memory& memory, const planning_graph& model, const stage& s, const assignment& a,
                                              const workload& w, double inputs) {
  double activations = 0, for_weights = 0;
  for (const layer_id l : s.layers) {
    activations += checked_bytes(memory.activations(model[l], w), "activations", model[l]);
    for_weights += checked_activations_for_weights(memory, model[l], w);
  }
  if (!s.recompute) return {activations * a.samples, 0, for_weights * a.samples};
  return {inputs * a.samples, activations * a.samples, (inputs + for_weights) * a.samples};
}

}  // namespace HETPLAN_NAMESPACE
