// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan's steps amount to: the door for latency estimators.

#include <concepts>

#include <hetplan/plan/pipeline_steps.hpp>

namespace hetplan {

template <class E>
concept estimates_latency = requires(const E& e, const pipeline_steps& s) {
  { e.latency(s) } -> std::same_as<seconds>;  // >= 0; infinite where a route is missing; pure
};
/// Seconds of an iteration (training, inference) or between two tokens of a sequence (generation).
template <class E>
concept latency_estimator = estimates_latency<E>;

template <class E>
consteval bool check_latency_estimator() {
  static_assert(estimates_latency<E>, "latency_estimator needs: hetplan::seconds latency(const hetplan::pipeline_steps&) const");
  return latency_estimator<E>;
}

}  // namespace hetplan
