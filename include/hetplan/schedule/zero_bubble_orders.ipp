// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/zero_bubble_orders.hpp>

#include <algorithm>

#include <hetplan/core/error.hpp>
#include <hetplan/schedule/round_search.hpp>
#include <hetplan/schedule/v_search.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE orders_by_device zero_bubble_orders(const pipeline_times& p, order_goal goal) {
  check(p);
  const detail::tick_table t(p);
  return detail::orders_of(t, detail::best_rounds(t, goal).sequence);
}

HETPLAN_INLINE orders_by_device v_orders(const pipeline_times& p, v_schedule v, order_goal goal) {
  check(p);
  if (!detail::is_v_shape(detail::tick_table(p))) {
    throw invalid_input("V orders: device d must hold stages d and 2 devices - 1 - d of a chain");
  }
  pipeline_times within = p;
  within.memory.resize(p.devices());
  for (std::size_t d = 0; d < p.devices(); ++d) {
    const double both = p.stages[d].activation + p.stages[p.stages.size() - 1 - d].activation;
    within.memory[d] = std::min(p.memory_of(d), both * static_cast<double>(held_by(v, p.devices())));
  }
  check(within);
  const detail::tick_table t(within);
  long long steps = 1000 * static_cast<long long>(t.tasks());
  return detail::orders_of(t, detail::searched_v(t, goal, 0, 1, steps).gaps_chosen.front().sequence);
}

}  // namespace hetplan::schedule
