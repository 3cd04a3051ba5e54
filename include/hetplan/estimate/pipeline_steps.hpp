// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Times of a plan's stages and links for one microbatch, as latency estimators read them.

#include <concepts>
#include <cstddef>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network.hpp>
#include <hetplan/plan/stage_costs.hpp>

namespace hetplan {

/// Execution steps (stages) and communication steps (links) of one pipeline. Seconds are of one microbatch unless stated; every backward
/// is 0 outside training. A missing route makes its step infinite.
struct pipeline_steps {
  /// Share of a stage on one device.
  struct device_step {
    device_id device;
    int samples = 1;
    double forward_s = 0;
    double backward_s = 0;   ///< input and weight gradients
    double optimizer_s = 0;  ///< once an iteration
  };
  struct stage_step {
    double forward_s = 0;     ///< largest of the stage's devices
    double backward_s = 0;    ///< largest of the stage's devices
    double total_s = 0;       ///< largest forward + backward of one device: at most forward_s + backward_s
    double first_s = 0;       ///< generation: forward_s of a pass until the first token, where forward_s is the mean of all passes
    double later_s = 0;       ///< generation: of a pass behind it
    double input_bytes = 0;   ///< per sample, from other stages
    double collective_s = 0;  ///< once an iteration: the stage's ring, tensors shared with later stages, the optimizer's step
    int depth = 1;
    int in_flight = 1;  ///< K: microbatches whose activations the stage holds at once; 1 outside training
    std::vector<device_step> devices = {};
    std::vector<std::size_t> in = {};  ///< indices of links
    std::vector<std::size_t> out = {};
  };
  struct link_step {
    std::size_t from = 0;
    std::size_t to = 0;
    double forward_cut = 0;     ///< bytes per sample
    double backward_cut = 0;    ///< bytes per sample; 0 outside training
    double forward_s = 0;       ///< latency included
    double backward_s = 0;      ///< latency included; 0 without gradients
    double forward_wire_s = 0;  ///< wire occupied, latency excluded; the next microbatch waits this long
    double backward_wire_s = 0;
    double total_s = 0;      ///< forward + backward
    double own_s = 0;        ///< whole traffic of the link in an iteration, microbatches back to back
    double first_s = 0;      ///< generation: forward_s of a pass until the first token
    double first_own_s = 0;  ///< generation: whole traffic of all those passes
    double later_s = 0;      ///< generation: forward_s of a pass behind it
    double later_own_s = 0;  ///< generation: whole traffic of such a pass
  };

  hetplan::mode mode = mode::training;
  int microbatches = 1;
  int first_passes = 1;            ///< generation: passes until the first token; see run_part
  int later_passes = 0;            ///< generation: passes behind it
  int chunks_in_flight = 0;        ///< generation: most chunks of a prompt that are under way; 0: any number
  std::vector<stage_step> stages;  ///< in the plan's order, which is topological
  std::vector<link_step> links;    ///< by (from, to)

  /// Returns true if every route that the plan needs exists; otherwise every estimate is infinite.
  [[nodiscard]] bool connected() const;
};

namespace detail {

[[nodiscard]] std::vector<device_id> devices_of(const stage& s);

/// Returns the bytes of the weight groups that stage s trains and some later stage also holds.
[[nodiscard]] double tied_bytes(const plan& p, const planning_graph& model, std::size_t s);

/// Returns the seconds that end stage s's iteration in training: ring, tied tensors, optimizer.
[[nodiscard]] double collective_s(const stage_costs& whole, std::size_t s);

}  // namespace detail

/// Returns the times of a link that every microbatch crosses, with `forward_cut` bytes per sample forward and `backward_cut` back.
/// own = forward + backward + (M - 1) wire, where wire is the larger of both directions on a full-duplex wire, else their sum.
[[nodiscard]] pipeline_steps::link_step time_link(const exchange_cost& x, int microbatch_size, int microbatches, double forward_cut,
                                                  double backward_cut);

/// Adds the times of generation to a link.
///
/// @param first_cut, later_cut  bytes per sample of a pass until the first token, and of one behind it.
void add_passes(pipeline_steps::link_step& link, const exchange_cost& x, int microbatch_size, int microbatches, int first_passes,
                double first_cut, double later_cut);

/// Times the steps of a plan; every link has its peak bandwidth to itself. A stage takes the time of its slowest device, a link that of
/// the slowest pair between its two groups. A stage's collective is its ring, then the exchange of tensors that a later stage also holds,
/// at the cluster's worst pair both ways, then the slowest device's optimizer step. Every stage but the last sends forward once a pass,
/// every stage but the first back, and in generation the last one tokens; that takes its devices' send_overhead.
///
/// @param s         of one pipeline, one microbatch size, 1F1B or GPipe, no parameter server; stages in topological order.
/// Units            SI.  Complexity  O(layers x devices of their stage + pairs of devices).
/// Throws           invalid_input (an invalid or unsupported plan); invalid_model (a cost is not finite or negative).
/// Source           Asteroid, section 3.2, eqs. 4 and 5. Deviations: latency; full-duplex wires; rings on shared resources;
///                  tied tensors, which the paper does not have, belong to the earlier stage. The plan's transfer rules and
///                  network policy are not read.
[[nodiscard]] pipeline_steps make_steps(const stage_costs& s);
[[nodiscard]] pipeline_steps make_steps(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost);

// Concept for latency estimators, from the steps of a plan to its latency.

template <class E>
concept estimates_latency = requires(const E& e, const pipeline_steps& s) {
  { e.latency(s) } -> std::same_as<seconds>;  // >= 0; infinite where a route is missing; pure
};
/// Estimator of a whole plan's latency from the steps of its stages and links: seconds of an iteration (training, inference) or of a
/// pass of the mean (generation).
///
/// * `make_steps` derives the steps of any plan with one pipeline and one stage per device: the slowest share of each stage, both
///   transfers of each link at peak bandwidth, the reductions.
/// * Optional: `run_times times(steps) const`, for generation, where latency is then not asked. Without it a run of generation takes as
///   many latencies as it has passes.
/// * An estimate relaxes contention, so it is no bound. `estimate` derives a whole evaluation from it, with the energy, busy time and
///   memory that the simulator would report at that latency.
///
/// Ships: `dominant_step`; `critical_path` (Dora's Algorithm 2 without its double counting, to re-score whole plans); every `step_law` as
/// an `any_step_law`. The search can minimise all but `critical_path`.
template <class E>
concept latency_estimator = estimates_latency<E>;
template <class E>
concept estimates_times = requires(const E& e, const pipeline_steps& s) {
  { e.times(s) } -> std::same_as<run_times>;
};

/// Makes a run take at least `least_s`, as a cap on the busy share of a device does. Times that are those of the whole run stay so.
inline void stretch(run_times& t, double least_s) {
  if (t.makespan.value() >= least_s) return;
  for (seconds* const time : {&t.ttft, &t.between_tokens}) {
    if (*time == t.makespan) *time = seconds(least_s);
  }
  t.makespan = seconds(least_s);
}

/// Returns the times of a run by an estimator.
template <class E>
[[nodiscard]] run_times times_by(const E& estimator, const pipeline_steps& steps) {
  if constexpr (estimates_times<E>) {
    return estimator.times(steps);
  } else {
    const seconds pass = estimator.latency(steps), all = (steps.first_passes + steps.later_passes) * pass;
    return {all, steps.first_passes * pass, steps.later_passes > 0 ? pass : all};
  }
}

template <class E>
consteval bool check_latency_estimator() {
  static_assert(estimates_latency<E>, "latency_estimator needs: hetplan::seconds latency(const hetplan::pipeline_steps&) const");
  return latency_estimator<E>;
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/pipeline_steps.ipp>
#endif
