// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/handle_locally.hpp>

#include <algorithm>
#include <span>

#include <hetplan/core/at_most.hpp>

namespace hetplan::serve {

namespace detail {

/// The first of those with the most free rate, to one part in 10^9, among those that `takes` wants; not valid where there is none.
template <class Takes>
instance_id with_most_free_rate(std::span<const standing> places, const server_view& here, const Takes& takes) {
  double most = 0;
  const auto each = [&](const auto& f) {
    for (const auto where : places) {
      for (const auto i : here.own(where)) {
        if (here.works(i) && takes(i)) f(i, here.free_rate(i));
      }
    }
  };
  each([&](instance_id, double rate) { most = std::max(most, rate); });
  instance_id first;
  each([&](instance_id i, double rate) {
    if (!first.valid() && rate > 0 && at_most(most, rate)) first = i;
  });
  return first;
}

/// The first of those that would answer soonest, in time; not valid where there is none.
HETPLAN_INLINE instance_id soonest(standing where, const pending_request& r, const server_view& here) {
  instance_id best;
  seconds best_end;
  for (const auto i : here.own(where)) {
    if (!here.works(i)) continue;
    const auto end = here.expected_end(i);
    if (!r.in_time(end) || (best.valid() && at_most(best_end.value(), end.value(), r.latency.value()))) continue;
    best = i;
    best_end = end;
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here) {
  const auto whole = [&](instance_id i) { return here.has_whole_rate(i); };
  for (const auto where : standings) {
    const auto best = r.is_stream ? detail::with_most_free_rate({&where, 1}, here, whole) : detail::soonest(where, r, here);
    if (best.valid()) return best;
  }
  return std::nullopt;
}

HETPLAN_INLINE std::optional<instance_id> most_free_rate(const server_view& here) {
  const auto i = detail::with_most_free_rate(standings, here, [](instance_id) { return true; });
  return i.valid() ? std::optional(i) : std::nullopt;
}

HETPLAN_INLINE decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here) {
  if (r.is_stream) {
    if (const auto i = most_free_rate(here)) return decision::serve(*i);
  }
  return decision::turn_down(refusal);
}

HETPLAN_INLINE decision serve_locally::handle(const pending_request& r, const server_view& here) const {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace hetplan::serve
