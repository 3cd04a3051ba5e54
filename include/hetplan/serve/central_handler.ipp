// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/central_handler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::serve {

HETPLAN_INLINE central_handler::central_handler(seconds pair_time, int group) : pair_time_(pair_time), group_(group) {
  if (!std::isfinite(pair_time.value()) || pair_time.value() < 0)
    throw invalid_input("central_handler: pair_time = " + to_text(pair_time.value()) + " s; expected a finite time >= 0");
  if (group < 1) throw invalid_input("central_handler: group = " + std::to_string(group) + "; expected >= 1");
}

HETPLAN_INLINE decision central_handler::handle(const pending_request& r, const server_view& here) {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (r.offloads() > 0) {  // it is where the scheduler wanted it
    if (const auto i = own_capacity(r, here)) return decision::serve(*i);
    return in_part_or(request_outcome::no_resources, r, here);
  }
  const auto ring = group_of(r, here);
  const seconds takes = pair_time_ * (static_cast<double>(ring.count) * static_cast<double>(ring.count));
  if (takes.value() > 0 && under_way_.insert(r.number).second) {
    const auto key = static_cast<std::size_t>(ring.first);
    if (round_end_.size() <= key) round_end_.resize(key + 1);
    // Who comes while a round is decided is decided in the next one.
    auto& end = round_end_[key];
    const auto has_come = [&](seconds at) { return at_most(at.value(), r.now.value(), takes.value()); };
    if (has_come(end)) {
      end = r.now + takes;
    } else if (has_come(end - takes)) {
      end += takes;
    }
    return decision::ask_again(end);
  }
  under_way_.erase(r.number);
  return decide(r, here);
}

HETPLAN_INLINE ring_sync::ring central_handler::group_of(const pending_request& r, const server_view& here) const {
  const auto ring = here.ring();
  const std::int32_t before = (r.here.value - ring.first) / group_ * group_;
  return {ring.first + before, std::min(group_, ring.count - before)};
}

HETPLAN_INLINE decision central_handler::decide(const pending_request& r, const server_view& here) const {
  const auto ring = group_of(r, here);
  std::optional<server_id> best;
  seconds best_end;
  double best_rate = 0;
  for (std::int32_t n = 0; n < ring.count; ++n) {
    const server_id s(ring.first + n);
    if (r.is_stream) {
      const double rate = here.free_rate_at(s);
      if (at_most(rate, best_rate)) continue;
      best_rate = rate;
      best = s;
    } else {
      const auto end = here.expected_end_at(s);
      if (!end || !r.in_time(*end) || (best && at_most(best_end.value(), end->value(), r.latency.value()))) continue;
      best_end = *end;
      best = s;
    }
  }
  if (!best) return decision::turn_down(request_outcome::no_resources);
  if (*best != r.here) return decision::pass_on(*best);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace hetplan::serve
