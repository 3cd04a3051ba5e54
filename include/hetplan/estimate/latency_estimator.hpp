// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Concept for latency estimators, from the steps of a plan to its latency.

#include <concepts>

#include <hetplan/estimate/pipeline_steps.hpp>

namespace hetplan {

template <class E>
concept estimates_latency = requires(const E& e, const pipeline_steps& s) {
  { e.latency(s) } -> std::same_as<seconds>;  // >= 0; infinite where a route is missing; pure
};
/// Estimator of a whole plan's latency from the steps of its stages and links: seconds of an iteration (training, inference) or between
/// two tokens of a sequence (generation).
///
/// * `make_steps` derives the steps of any plan with one pipeline and one stage per device: the slowest share of each stage, both
///   transfers of each link at peak bandwidth, the reductions.
/// * An estimate relaxes contention, so it is no bound. `estimate` derives a whole evaluation from it, with the energy, busy time and
///   memory that the simulator would report at that latency.
///
/// Ships: `dominant_step`; `critical_path` (Dora's Algorithm 2 without its double counting, to re-score whole plans); every `step_law` as
/// an `any_step_law`. The search can minimise all but `critical_path`.
template <class E>
concept latency_estimator = estimates_latency<E>;

template <class E>
consteval bool check_latency_estimator() {
  static_assert(estimates_latency<E>, "latency_estimator needs: hetplan::seconds latency(const hetplan::pipeline_steps&) const");
  return latency_estimator<E>;
}

}  // namespace hetplan
