// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A measured bandwidth over time, scaled and turned into events.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/adapt/timeline.hpp>

namespace hetplan::adapt {

/// From each step's time on its rate holds until the next.
///
/// Source  semantics, section 10: capacities are piecewise constant in time; the lengths of steps are ours.
struct bandwidth_trace {
  struct step {
    seconds at;
    bytes_per_second rate;
    friend bool operator==(const step&, const step&) = default;
  };
  std::vector<step> steps;

  friend bool operator==(const bandwidth_trace&, const bandwidth_trace&) = default;
};

/// What comes after the last step.
enum class past_the_end {
  holds,   ///< the last rate
  repeats  ///< the whole trace, again and again
};

/// More events than a timeline may take from one trace: repeated milliseconds over a day would fill the memory.
inline constexpr std::size_t max_trace_events = 2'000'000;

/// Throws invalid_input that names the step: none at all, a time that is not finite, negative, or not after the one before it,
/// a rate that is not finite or negative.
inline void check_trace(const bandwidth_trace& t) {
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

/// How long a step holds. The last one is taken to be as long as the one before it; a step that is alone has no length.
[[nodiscard]] inline seconds length(const bandwidth_trace& t, std::size_t step) {
  if (t.steps.size() < 2) return {};
  const std::size_t i = std::min(step, t.steps.size() - 2);
  return t.steps[i + 1].at - t.steps[i].at;
}

/// From the first step to the end of the last: what is averaged, and what is repeated.
[[nodiscard]] inline seconds length(const bandwidth_trace& t) {
  if (t.steps.empty()) return {};
  return t.steps.back().at - t.steps.front().at + length(t, t.steps.size() - 1);
}

/// The average over the length of a valid trace, each rate weighted by how long it holds; that of the step if it is alone.
///
/// Complexity  O(steps).
[[nodiscard]] inline bytes_per_second mean(const bandwidth_trace& t) {
  const seconds whole = length(t);
  if (t.steps.size() == 1) return t.steps.front().rate;
  double sum = 0;
  for (std::size_t i = 0; i < t.steps.size(); ++i) sum += t.steps[i].rate.value() * (length(t, i) / whole);
  return bytes_per_second(sum);
}

/// The trace with all rates multiplied so that their mean is `target`.
///
/// Throws  invalid_input: a trace that check_trace refuses, a target that is not finite or negative, a mean of 0 where the target
///         is above it, rates that would not be finite.
[[nodiscard]] inline bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target) {
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

/// What a trace does to a resource before `duration`: an event per step, also where the rate stays as it is.
///
/// Times count from the timeline's start. Before the first step the resource keeps the capacity that it has.
/// Throws      invalid_input: a trace that check_trace refuses, more than max_trace_events. Ids are left to check_timeline.
/// Complexity  O(events).
[[nodiscard]] inline std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration,
                                                  past_the_end then = past_the_end::holds) {
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
