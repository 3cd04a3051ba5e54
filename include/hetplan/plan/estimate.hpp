// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan should cost, without simulating it: the evaluation that a search can afford.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/cost/any_energy_model.hpp>
#include <hetplan/plan/estimators.hpp>
#include <hetplan/plan/staged.hpp>

namespace HETPLAN_NAMESPACE {

namespace detail {

[[nodiscard]] stage_traffic traffic_per_sample(const pipeline_steps& steps, std::size_t s);

}  // namespace detail

/// Estimates a plan: latency by the estimator, and with it energy, peak memory and busy time of every device.
///
/// With R repeats (the tokens of a sequence in generation, else 1), M microbatches, and for device i the share x_i, the
/// times f_i and b_i of a microbatch and its cap on the busy share:
///
///     busy_i   = R M (f_i + b_i) + the optimizer's step
///     sent_i   = R M x_i (cuts forward out + cuts backward in) + 2(n-1)/n W if n > 1 devices train W > 0 bytes; received alike
///     T        = max(the estimator's, max_i busy_i / (R cap_i)): a capped device stretches the iteration
///     energy_i = idle power * R T + (active - idle power) * busy_i + per byte sent and received
///     memory_i = static bytes + K * activations of a share; K of 1F1B, M of GPipe, 1 outside training
///                (a stage that recomputes: + K * inputs of a share + activations of one)
///
/// @param estimator  of the latency; contention is relaxed in both that ship.
/// @return           latency R T, with time_between_tokens = T in generation; no bounds, no bytes by resource. Infinite
///                   latency and energy where a route is missing.
/// Units             SI.  Complexity  that of make_steps and of the estimator.
/// Throws            invalid_input, invalid_model as make_steps; invalid_model (a memory or energy model misbehaves).
/// Source            Dora, eq. 1 for energy; Asteroid, eq. 3 for memory. Deviations: tied tensors' bytes are not charged;
///                   an energy model is read as a line (exact for linear_power).
template <latency_estimator Estimator = dominant_step>
[[nodiscard]] evaluation estimate(const staged& whole, const any_energy_model& energy = {}, const Estimator& estimator = {}) {
  const plan& p = whole.plan;
  const cluster& c = whole.cluster;
  const pipeline_steps steps = make_steps(whole);
  const bool training = steps.mode == mode::training, generation = steps.mode == mode::generation;
  const double repeats = p.workload.steps();
  const double M = steps.microbatches;

  evaluation e;
  e.devices.resize(c.size());
  double period_s = estimator.latency(steps).value();
  for (const auto& stage : steps.stages) {
    for (const auto& d : stage.devices) {
      const double busy_s = repeats * M * (d.forward_s + d.backward_s) + d.optimizer_s;
      e.devices[d.device.index()].busy = seconds(busy_s);
      period_s = std::max(period_s, busy_s / (repeats * c[d.device].max_busy));
    }
  }
  e.latency = seconds(repeats * period_s);
  if (generation) e.time_between_tokens = seconds(period_s);

  for (std::size_t s = 0; s < steps.stages.size(); ++s) {
    const auto& stage = steps.stages[s];
    const double ring = training ? ring_share(stage.devices.size()) * whole.stages[s].trainable_bytes : 0;
    const stage_traffic traffic = detail::traffic_per_sample(steps, s);
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
      const auto& d = stage.devices[i];
      device_evaluation& out = e.devices[d.device.index()];
      const energy_slopes rates = slopes_of(energy, c[d.device]);
      const double samples = repeats * M * d.samples;
      const double dynamic = rates.busy_W * out.busy.value() + rates.send_J_per_byte * (samples * traffic.sent + ring) +
                             rates.receive_J_per_byte * (samples * traffic.received + ring);
      out.used = true;
      out.energy = joules(std::isfinite(period_s) ? dynamic + rates.idle_W * repeats * period_s : period_s);  // 0 W for ever: no NaN
      out.peak_memory = bytes(whole.static_bytes[d.device.index()] + whole.stages[s].devices[i].kept.at_most(stage.in_flight));
    }
  }
  return e;
}
template <latency_estimator Estimator = dominant_step>
[[nodiscard]] evaluation estimate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                  const any_memory_model& memory = {}, const any_energy_model& energy = {},
                                  const Estimator& estimator = {}) {
  return estimate(staged(p, model, c, cost, memory), energy, estimator);
}

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/estimate.ipp>
#endif
