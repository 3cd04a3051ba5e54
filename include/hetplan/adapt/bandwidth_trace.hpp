// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A measured bandwidth over time, scaled and turned into events.

#include <cstddef>
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
void check_trace(const bandwidth_trace& t);

/// How long a step holds. The last one is taken to be as long as the one before it; a step that is alone has no length.
[[nodiscard]] seconds length(const bandwidth_trace& t, std::size_t step);

/// From the first step to the end of the last: what is averaged, and what is repeated.
[[nodiscard]] seconds length(const bandwidth_trace& t);

/// The average over the length of a valid trace, each rate weighted by how long it holds; that of the step if it is alone.
///
/// Complexity  O(steps).
[[nodiscard]] bytes_per_second mean(const bandwidth_trace& t);

/// The trace with all rates multiplied so that their mean is `target`.
///
/// Throws  invalid_input: a trace that check_trace refuses, a target that is not finite or negative, a mean of 0 where the target
///         is above it, rates that would not be finite.
[[nodiscard]] bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target);

/// What a trace does to a resource before `duration`: an event per step, also where the rate stays as it is.
///
/// Times count from the timeline's start. Before the first step the resource keeps the capacity that it has.
/// Throws      invalid_input: a trace that check_trace refuses, more than max_trace_events. Ids are left to check_timeline.
/// Complexity  O(events).
[[nodiscard]] std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration,
                                           past_the_end then = past_the_end::holds);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/bandwidth_trace.ipp>
#endif
