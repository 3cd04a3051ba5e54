// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/v_search.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace HETPLAN_NAMESPACE::schedule::detail {

HETPLAN_INLINE v_orders searched_v(const tick_table& t, order_goal goal, ticks target, std::size_t most, long long& steps) {
  struct candidate {
    const v_block* block;  ///< none: ZB-V
    std::vector<gap_rule> gaps;
    bool pull;
    order_value value = {};
    std::vector<partial_orders::task> sequence = {};
  };
  constexpr std::size_t most_blocks = 64;
  double memory = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    double largest = 0;
    for (const std::size_t s : t.devices[d].stages) largest = std::max(largest, t.stages[s].activation);
    if (largest > 0) memory = std::min(memory, t.devices[d].memory / largest);
  }
  const std::vector<v_block> blocks = v_blocks(t.devices.size(), std::min(memory, 2.0 * static_cast<double>(t.m)), most_blocks);
  const auto run = [&](candidate& c) {
    c.sequence = c.block == nullptr ? zero_bubble_v(t, c.gaps, c.pull) : orders_of_block(t, *c.block, c.gaps, c.pull);
    c.value = valued(t, goal, c.sequence, target);
    steps -= static_cast<long long>(c.sequence.size());
  };
  std::vector<candidate> all;
  for (std::size_t i = 0; i <= blocks.size() && steps > 0; ++i) {
    for (const bool pull : {false, true}) {
      for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
        all.push_back({i == 0 ? nullptr : &blocks[i - 1], std::vector<gap_rule>(t.devices.size(), g), pull});
        run(all.back());
      }
    }
  }
  const auto best_first = [&] {
    std::stable_sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) { return a.value < b.value; });
    // Rules often come to the same orders.
    all.erase(std::unique(all.begin(), all.end(), [](const candidate& a, const candidate& b) { return a.sequence == b.sequence; }),
              all.end());
    if (all.size() > most) all.resize(most);
  };
  v_orders found;
  best_first();
  for (const candidate& c : all) found.as_they_are.push_back({c.sequence, c.value.goal});
  for (candidate& c : all) {
    for (bool moved = true; moved && c.value.goal > target;) {
      moved = false;
      for (std::size_t d = 0; d < t.devices.size(); ++d) {
        for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
          if (steps <= 0 || c.gaps[d] == g) continue;
          candidate other = c;
          other.gaps[d] = g;
          run(other);
          if (!(other.value < c.value)) continue;
          c = std::move(other);
          moved = true;
        }
      }
    }
  }
  best_first();
  for (candidate& c : all) found.gaps_chosen.push_back({std::move(c.sequence), c.value.goal});
  return found;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
