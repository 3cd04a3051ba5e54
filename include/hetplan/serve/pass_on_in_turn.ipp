// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/pass_on_in_turn.hpp>

namespace hetplan::serve {

HETPLAN_INLINE decision pass_on_in_turn::handle(const pending_request& r, const server_view& here) {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  if (r.offloads() >= most_offloads_) return in_part_or(request_outcome::too_many_offloads, r, here);
  const auto others = here.others();
  if (others.empty()) return in_part_or(request_outcome::no_resources, r, here);
  if (turn_.size() <= r.here.index()) turn_.resize(r.here.index() + 1);
  return decision::pass_on(others[turn_[r.here.index()]++ % others.size()].server);
}

}  // namespace hetplan::serve
