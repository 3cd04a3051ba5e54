// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/handle_locally.hpp>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here) {
  for (const auto where : standings) {
    std::optional<instance_id> best;
    double best_value = 0;
    for (const auto i : here.own(where)) {
      if (!here.works(i)) continue;
      if (r.is_stream) {
        const double rate = here.free_rate(i);
        if (here.has_whole_rate(i) && (!best || rate > best_value)) {
          best = i;
          best_value = rate;
        }
      } else {
        const auto end = here.expected_end(i);
        if (end <= r.deadline && (!best || end.value() < best_value)) {
          best = i;
          best_value = end.value();
        }
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

HETPLAN_INLINE std::optional<instance_id> most_free_rate(const server_view& here) {
  std::optional<instance_id> best;
  double most = 0;
  for (const auto where : standings) {
    for (const auto i : here.own(where)) {
      if (!here.works(i)) continue;
      if (const double rate = here.free_rate(i); rate > most) {
        best = i;
        most = rate;
      }
    }
  }
  return best;
}

HETPLAN_INLINE decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here) {
  if (r.is_stream) {
    if (const auto i = most_free_rate(here)) return decision::serve(*i);
  }
  return decision::turn_down(refusal);
}

HETPLAN_INLINE decision serve_locally::handle(const pending_request& r, const server_view& here) const {
  if (r.now >= r.deadline) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace HETPLAN_NAMESPACE::serve
