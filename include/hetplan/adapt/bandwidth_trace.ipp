// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/bandwidth_trace.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE void check_trace(const bandwidth_trace& t) {
  if (t.steps.empty()) throw invalid_input("bandwidth trace: expected at least one step");
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    const double at = t.steps[i].at.value(), rate = t.steps[i].rate.value();
    const std::string where = "bandwidth trace: step " + std::to_string(i) + ": ";
    if (!std::isfinite(at) || at < 0) throw invalid_input(where + "at = " + to_text(at) + "; expected finite seconds >= 0");
    if (i > 0 && at <= t.steps[i - 1].at.value())
      throw invalid_input(where + "at = " + to_text(at) + "; expected a time after " + to_text(t.steps[i - 1].at.value()) + " s");
    if (!std::isfinite(rate) || rate < 0) throw invalid_input(where + "rate = " + to_text(rate) + "; expected finite bytes/s >= 0");
  }
}

HETPLAN_INLINE seconds length(const bandwidth_trace& t, std::size_t step) {
  if (t.steps.size() < 2) return {};
  const std::size_t i = std::min(step, t.steps.size() - 2);
  return t.steps[i + 1].at - t.steps[i].at;
}

HETPLAN_INLINE seconds length(const bandwidth_trace& t) {
  if (t.steps.empty()) return {};
  return t.steps.back().at - t.steps.front().at + length(t, t.steps.size() - 1);
}

HETPLAN_INLINE bytes_per_second mean(const bandwidth_trace& t) {
  const seconds whole = length(t);
  if (t.steps.size() == 1) return t.steps.front().rate;
  double sum = 0;
  for (std::size_t i = 0; i < t.steps.size(); ++i) sum += t.steps[i].rate.value() * (length(t, i) / whole);
  return bytes_per_second(sum);
}

HETPLAN_INLINE bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target) {
  check_trace(t);
  if (!is_finite(target) || target.value() < 0)
    throw invalid_input("bandwidth trace: mean = " + to_text(target.value()) + "; expected finite bytes/s >= 0");
  const double now = mean(t).value();
  if (now == 0 && target.value() > 0)
    throw invalid_input("bandwidth trace: its mean is 0 and cannot become " + to_text(target.value()) + " bytes/s");
  if (now == 0) return t;
  for (bandwidth_trace::step& s : t.steps) {
    s.rate = bytes_per_second(s.rate.value() / now * target.value());
    if (!is_finite(s.rate))
      throw invalid_input("bandwidth trace: its mean cannot become " + to_text(target.value()) + " bytes/s, a rate would not be finite");
  }
  return t;
}

HETPLAN_INLINE std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration, past_the_end then) {
  check_trace(t);
  std::vector<event> events;
  const double whole = length(t).value();
  const bool again = then == past_the_end::repeats && whole > 0 && std::isfinite(whole);
  for (std::size_t round = 0;; ++round) {
    for (const bandwidth_trace::step& s : t.steps) {
      double at = round == 0 ? s.at.value() : s.at.value() + static_cast<double>(round) * whole;
      if (!events.empty()) at = std::max(at, events.back().at.value());  // rounding must not turn time back
      if (!(at < duration.value())) return events;
      if (events.size() == max_trace_events) {
        throw invalid_input("bandwidth trace: expected at most " + std::to_string(max_trace_events) + " steps in " +
                            to_text(duration.value()) + " s, got more");
      }
      events.push_back({seconds(at), capacity_becomes{resource, s.rate}});
    }
    if (!again) return events;
  }
}

}  // namespace hetplan::adapt
