// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/request_handler.hpp>

#include <algorithm>

namespace hetplan::serve {

HETPLAN_INLINE std::optional<seconds> server_view::expected_end_at(server_id s) const {
  std::optional<seconds> soonest;
  for (const auto where : standings) {
    for (const auto i : run_->own(s, request_->what, where)) {
      if (!works(i)) continue;
      const seconds end(run_->expected_end_s(i, *request_, s));
      if (!soonest || end < *soonest) soonest = end;
    }
  }
  return soonest;
}

HETPLAN_INLINE double server_view::free_rate_at(server_id s) const {
  double most = 0;
  for (const auto where : standings) {
    for (const auto i : run_->own(s, request_->what, where)) {
      if (works(i)) most = std::max(most, free_rate(i));
    }
  }
  return most;
}

}  // namespace hetplan::serve
