// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a stage costs on one of its devices: the one place where layers add up.

#include <set>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// Bytes that a stage exchanges with other stages for every sample of its own.
struct stage_traffic {
  double sent = 0;
  double received = 0;
};

/// Seconds of one microbatch share in each phase; the sum over the stage's layers.
template <cost_model Cost>
[[nodiscard]] double stage_time_s(const Cost& cost, const planning_graph& model, const stage& s, const assignment& a,
                                  const device& d, phase what, int context) {
  double total = 0;
  for (const layer_id l : s.layers) {
    total += checked_time_s(cost,
                            {.layer = model[l], .phase = what, .batch = static_cast<double>(a.samples),
                             .tensor_parallel = a.tensor_parallel, .context = context},
                            d);
  }
  return total;
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

/// Trainable bytes of a stage: what its devices reduce among themselves.
[[nodiscard]] inline double trainable_bytes(const planning_graph& model, const stage& s) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += l.trainable_weight().value(); });
  return total;
}

/// Bytes that a device holds for a stage all the time: state, and in generation every sequence's cache.
template <memory_model Memory>
[[nodiscard]] double stage_static_bytes(const Memory& memory, const planning_graph& model, const stage& s, const assignment& a,
                                        const workload& w, int microbatches) {
  double total = 0;
  for_each_tensor(model, s, [&](const layer& l) { total += checked_bytes(memory.state(l, w), "state", l); });
  if (w.mode == mode::generation) {
    double cache = 0;
    for (const layer_id l : s.layers) cache += checked_bytes(memory.cache(model[l], w), "cache", model[l]);
    total += cache * a.samples * microbatches;
  }
  return total;
}

/// Bytes that one microbatch share keeps from its forward until its last backward part.
template <memory_model Memory>
[[nodiscard]] double stage_activation_bytes(const Memory& memory, const planning_graph& model, const stage& s,
                                            const assignment& a, const workload& w) {
  double per_sample = 0;
  for (const layer_id l : s.layers) per_sample += checked_bytes(memory.activations(model[l], w), "activations", model[l]);
  return per_sample * a.samples;
}

}  // namespace hetplan
