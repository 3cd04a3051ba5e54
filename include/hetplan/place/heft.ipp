// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/heft.hpp>

#include <algorithm>
#include <vector>

namespace hetplan::place {

HETPLAN_INLINE operator_schedule peft(const placement_table& t, const placement_rules& r) {
  const std::size_t d = t.devices();
  const std::vector<double> tail = tails_s(t);
  std::vector<double> least(t.size());
  for (std::size_t v = 0; v < t.size(); ++v)
    least[v] =
        *std::min_element(tail.begin() + static_cast<std::ptrdiff_t>(v * d), tail.begin() + static_cast<std::ptrdiff_t>((v + 1) * d));
  return or_one_device(t, r, schedule_greedily(t, r, order_by(t, least), [&](std::size_t v, std::size_t k, const trial& at) {
                         return at.start_s + tail[v * d + k];
                       }));
}

}  // namespace hetplan::place
