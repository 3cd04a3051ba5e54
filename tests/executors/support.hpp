// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small networks, clusters and plans for the executors' tests.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/tasks/expand.hpp>

#include "executors/common/alone.hpp"
#include "executors/threads/train.hpp"

namespace executors::test {

using namespace hetplan;

inline neural_network small_mlp() { return mlp(12, 4); }
inline neural_network small_transformer() { return transformer(5, 8, 11, 2); }
inline neural_network small_towers() { return towers(12, 3); }

inline cluster devices(int count, double bytes_per_s = 1e9) {
  std::vector<device> all;
  for (int i = 0; i < count; ++i)
    all.push_back({.name = "d" + std::to_string(i), .memory = 1_GB, .compute = flops_per_second(1e9 / (1 + i))});
  return {"few", std::move(all), shared_medium{bytes_per_second(bytes_per_s), 1_ms}};
}

struct share {
  int device;
  int samples;
};
/// Returns a stage of layers [first, last) on these devices with their shares.
inline stage stage_of(int first, int last, const std::vector<share>& who, int microbatch_size = 0) {
  stage s{.name = "s" + std::to_string(first), .microbatch_size = microbatch_size};
  for (const share& w : who) s.devices.push_back({device_id(w.device), w.samples});
  for (int l = first; l < last; ++l) s.layers.emplace_back(l);
  return s;
}
inline plan plan_of(const neural_network& net, const cluster& c, std::vector<stage> stages, int microbatch_size, int microbatches) {
  return {.model = net.name,
          .cluster = c.name(),
          .microbatch_size = microbatch_size,
          .microbatches = microbatches,
          .stages = std::move(stages)};
}

inline program program_of(const plan& p, const neural_network& net, const cluster& c) {
  const planning_graph model = describe(net);
  return make_program(p, net, model, c, c, tasks::expand(p, model, c, roofline{}));
}

/// Returns what training has added to the parameters that a device holds.
inline tensors changes(tensors held, const neural_network& net, std::uint64_t seed) {
  for (std::size_t t = 0; t < held.size(); ++t) {
    if (held[t].size() > 0) held[t] -= net.first_parameters(t, seed);
  }
  return held;
}

/// Trains as planned and on one device; returns the largest relative difference of losses and parameter changes.
inline double difference_of(const plan& p, const neural_network& net, const cluster& c, std::vector<pace> paces = {}, int iterations = 4) {
  const training_settings settings{.seed = 3, .rate = 0.2, .paces = std::move(paces)};
  const program work = program_of(p, net, c);
  thread_training got;
  train_with_threads(net, work, c, settings, iterations, got, {.shaped = false, .timeout_s = 20});
  training_alone expected = train_alone(net, work.batch, settings, iterations);
  expected.parameters = changes(std::move(expected.parameters), net, settings.seed);
  double most = 0;
  for (const tensors& held : got.parameters) most = std::max(most, difference(got.iterations, changes(held, net, settings.seed), expected));
  return most;
}

}  // namespace executors::test
