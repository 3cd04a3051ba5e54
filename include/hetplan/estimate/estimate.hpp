// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Estimate of a plan's latency, energy and memory without simulation, cheap enough for a search.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/estimate/pipeline_steps.hpp>
#include <hetplan/plan/stage_costs.hpp>

namespace hetplan {

/// Estimator by the dominant step: the step whose work over all microbatches, begun when the first microbatch reaches it, ends last.
///
/// Stage h with total e_h and collective A_h, links (h,t) with total e_ht, backward b_ht and own traffic own_ht, M
/// microbatches; from the sinks to the sources, the maximum over all links that leave h:
///
///     training    D(h) = max(M e_h, max_t [e_h + max(own_ht, e_ht + D(t))]),  R(h) = max(A_h, max_t [R(t) - b_ht - b_h]);
///                 T = max D + max R, each over the sources; if every stage holds one microbatch at a time, microbatches do
///                 not overlap: M e_h and M e_ht replace the second e_h and e_ht in D
///     inference   S(h) = e_h + max_t (e_ht + S(t)),
///                 Z(h) = max(M e_h + max_t (e_ht + S(t)), e_h + max_t max(own_ht + S(t), e_ht + Z(t)));  T = max Z
///     generation  of the passes behind the first token D(h) = max(M e_h, max_t max(own_ht, D(t)));  time between tokens
///                 = max(D, S), the larger of a full pipeline's period and a token's path; the first token as in inference,
///                 of all chunks of a prompt;  T = the first token + the passes behind it times the time between tokens
///
/// This is the step law of the plan's mode (step_law.hpp). D and R grow with those behind them and with e and own, so a part of a
/// pipeline that is no worse in both is no worse in any whole.
/// Complexity   O(stages + links).
/// Source       Asteroid, section 3.2, eqs. 4-6: on a chain of single devices with own = M e this is its
///              max_s (T_w + T_e + T_a). Deviations: any DAG of stages; latency and full-duplex wires in own; inference
///              and generation, where the token's return to the first stage is left out.
struct dominant_step {
  [[nodiscard]] run_times times(const pipeline_steps& steps) const;
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const { return times(steps).makespan; }
};

/// Estimator by the critical path: warm-up, steady state and drain of a 1F1B pipeline around its dominant step d.
///
/// Steps 1..S of a chain are its stages and links in turn. K_i microbatches are in flight at step i: at a stage the plan's
/// number (2 depth - 1 by default), at a link one more than at its consumer, at most the producer's. With f and b the times
/// of a step and f^, b^ the delays of its next microbatch (without a link's latency),
///
///     start  = max_{p >= d} [ sum_{i <= p} f_i + (K_p - 1) max_{i <= p} f^_i + sum_{d < i <= p} b_i ]
///     end(s) = max_{p >= max(s,d)} [ sum_{s <= i <= p} b_i + (K_p - 1) max_{i <= p} b^_i + sum_{d < i <= p} f_i ]
///     T      = max( start + (M - K_d) period_d + max_s [ end(s) + collective_s ],
///                   max over stages i of [ sum_{j < i} total_j + ceil(M / K_i) sum_{j >= i} total_j ] )
///
/// where the second line of T covers the round trips of K_i microbatches at a time from i to the end (K = 1 serialises them).
/// The period of a stage is its total, that of a link its wire time (own - total) / (M - 1). Step d is the one whose own
/// work, begun when the first microbatch reaches it, ends last. On a DAG T is the largest over the stages v of the value
/// along the longest path from a source to a sink through v. Inference and generation use `dominant_step`.
/// Not monotone (a pipeline better in every step can score worse): suited to re-score plans, not to prune a search.
/// Complexity   O(stages^2 * (stages + links)) at most.
/// Determinism  of tied paths, the one through the smaller stage.
/// Source       Dora, appendix A, Algorithm 2. Deviations: as printed it counts warm-up and drain twice; latency and
///              full-duplex wires; other warm-ups than 2 depth - 1 and, for them, the round trips; DAGs.
struct critical_path {
  [[nodiscard]] run_times times(const pipeline_steps& steps) const;
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const { return times(steps).makespan; }

 private:
  struct step {
    double forward_s, backward_s;            ///< of one microbatch
    double next_forward_s, next_backward_s;  ///< delay of the next microbatch
    double total_s, period_s, own_s;
    double collective_s;
    int in_flight;
  };
  /// Links by which the longest path enters and leaves each stage; the number of links for none.
  struct extent {
    std::vector<std::size_t> before, after;
  };

  [[nodiscard]] static extent longest_ways(const pipeline_steps& steps);

  [[nodiscard]] static std::vector<step> way_through(const pipeline_steps& steps, const extent& ways, std::size_t v);

  [[nodiscard]] static double chain_s(const std::vector<step>& way, int microbatches);

  [[nodiscard]] static double round_trips_s(const std::vector<step>& way, int microbatches);

  [[nodiscard]] static double start_s(const std::vector<step>& way, std::size_t d);

  [[nodiscard]] static double end_s(const std::vector<step>& way, std::size_t d, std::size_t s);
};

static_assert(check_latency_estimator<dominant_step>() && check_latency_estimator<critical_path>());

namespace detail {

[[nodiscard]] stage_traffic traffic_per_sample(const pipeline_steps& steps, std::size_t s);

}  // namespace detail

/// Estimates a plan: its latency, and energy, peak memory and busy time of every device.
///
/// With R repeats (the passes of the run in generation, else 1), M microbatches, and for device i the share x_i, the
/// times f_i and b_i of a microbatch and its cap on the busy share:
///
///     busy_i   = R M (f_i + b_i) + the optimizer's step
///     sent_i   = R M x_i (cuts forward out + cuts backward in) + 2(n-1)/n W if n > 1 devices train W > 0 bytes; received alike
///     T        = max(the estimator's, max_i busy_i / cap_i): a capped device stretches the run
///     energy_i = idle power * T + (active - idle power) * busy_i + per byte sent and received
///     memory_i = static bytes + K * activations of a share; K of 1F1B, M of GPipe, 1 outside training
///                (a stage that recomputes: + K * inputs of a share + activations of one)
///
/// @param estimator  of the latency; both built-in ones relax contention.
/// @return           latency T, with ttft and time_between_tokens in generation; no bounds, no bytes by resource.
///                   Infinite latency and energy if a route is missing.
/// Units             SI.  Complexity  that of make_steps and of the estimator.
/// Throws            invalid_input, invalid_model as make_steps; invalid_model (a memory or energy model misbehaves).
/// Source            Dora, eq. 1 for energy; Asteroid, eq. 3 for memory. Deviations: tied tensors' bytes are not charged;
///                   an energy model is read as a line (exact for linear_power where power.memory is power.active: the estimate
///                   charges the active power for all work, the judge the memory-bound part by power.memory).
template <latency_estimator Estimator = dominant_step>
[[nodiscard]] evaluation estimate(const stage_costs& whole, const any_energy_model& energy = {}, const Estimator& estimator = {}) {
  const plan& p = whole.plan;
  const cluster& c = whole.cluster;
  const pipeline_steps steps = make_steps(whole);
  const bool training = steps.mode == mode::training;
  const double repeats = whole.passes.size();
  const double M = steps.microbatches;

  evaluation e;
  e.devices.resize(c.size());
  run_times times = times_by(estimator, steps);
  for (const auto& stage : steps.stages) {
    for (const auto& d : stage.devices) {
      const double busy_s = repeats * M * (d.forward_s + d.backward_s) + d.optimizer_s;
      e.devices[d.device.index()].busy = seconds(busy_s);
      stretch(times, busy_s / c[d.device].max_busy);
    }
  }
  const double total_s = times.makespan.value();
  e.latency = times.makespan;
  if (steps.mode == mode::generation) {
    e.ttft = times.ttft;
    if (p.workload.tokens > 1) e.time_between_tokens = times.between_tokens;
  }

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
      out.energy = joules(std::isfinite(total_s) ? dynamic + rates.idle_W * total_s : total_s);  // 0 * infinity is NaN
      out.peak_memory = bytes(whole.static_bytes[d.device.index()] + whole.stages[s].devices[i].kept.at_most(stage.in_flight));
    }
  }
  return e;
}
template <latency_estimator Estimator = dominant_step>
[[nodiscard]] evaluation estimate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                  const any_memory_model& memory = {}, const any_energy_model& energy = {},
                                  const Estimator& estimator = {}) {
  return estimate(stage_costs(p, model, c, cost, memory), energy, estimator);
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/estimate.ipp>
#endif
