// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/goal.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE bool serving::beats(const serving& other) const {
  if (!at_most(other.late_s, late_s)) return true;
  return at_most(late_s, other.late_s) && !at_most(other.score, score);
}

HETPLAN_INLINE goal::goal(job j, const qoe_target& wanted, seconds now, long long done)
    : now_s_(now.value()), latency_(wanted.latency), objective_(with(std::move(j), wanted)) {
  if (!wanted.deadline || !wanted.iterations) return;
  deadline_s_ = wanted.deadline->value();
  left_ = static_cast<double>(std::max(0LL, *wanted.iterations - done));
}

HETPLAN_INLINE serving goal::of(const iteration& i) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!i.ended) return {never, never};
  if (!deadline_s_) {
    return {
        0, objective_.score(evaluation{
               .latency = seconds(i.took_s), .time_between_tokens = seconds(i.response_s), .devices = {{.energy = joules(i.energy_J())}}})};
  }
  const double end_s = now_s_ + left_ * i.took_s;
  return {at_most(end_s, *deadline_s_) ? 0 : end_s - *deadline_s_, left_ * i.energy_J()};
}

HETPLAN_INLINE std::optional<bool> goal::keeps_latency(const iteration& i, double spare) const {
  if (!latency_) return std::nullopt;
  return i.ended && at_most(i.response_s, (1 - spare) * latency_->value());
}

HETPLAN_INLINE job goal::with(job j, const qoe_target& wanted) {
  j.qoe = wanted;
  return j;
}

}  // namespace hetplan::adapt
