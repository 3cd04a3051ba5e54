// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/v_search.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

namespace hetplan::schedule::detail {

inline constexpr int slots_of_a_microbatch = 6;

/// The four passes of a device and the two gradients of weights that fill the slots left over.
struct v_passes {
  std::array<int, 4> at = {};       ///< forwards of the first and the second stage, gradients of the second and the first
  std::array<int, 2> weights = {};  ///< of the second and the first stage
};

HETPLAN_INLINE std::array<int, 4> passes_of(const v_block& b, int device, int devices) {
  const int last = devices - 1;
  std::array<int, 4> at{};
  at[0] = device * b.step[0];
  at[1] = last * b.step[0] + b.turn[0] + (last - device) * b.step[1];
  at[2] = last * (b.step[0] + b.step[1]) + b.turn[0] + b.turn[1] + device * b.step[2];
  at[3] = last * (b.step[0] + b.step[1] + b.step[2]) + b.turn[0] + b.turn[1] + b.turn[2] + (last - device) * b.step[3];
  return at;
}

/// The most half activations that a device holds when the block is repeated; 0: passes meet.
HETPLAN_INLINE int peak_of(const std::array<int, 4>& at) {
  std::array<bool, slots_of_a_microbatch> taken{};
  for (const int x : at) {
    bool& slot = taken[static_cast<std::size_t>(x % slots_of_a_microbatch)];
    if (slot) return 0;
    slot = true;
  }
  std::array<int, 2> weights{};
  for (std::size_t i = 0; i < 2; ++i) {
    int w = at[2 + i] + 1;
    while (taken[static_cast<std::size_t>(w % slots_of_a_microbatch)]) ++w;
    taken[static_cast<std::size_t>(w % slots_of_a_microbatch)] = true;
    weights[i] = w;
  }
  // A forward takes two halves when it starts; gradients give one back each when they end.
  int peak = 0;
  for (int now = 0; now < slots_of_a_microbatch; ++now) {
    const auto begun = [&](int x, int after) {  // how many of a pass that comes every six slots, up to a time far on
      const int t = slots_of_a_microbatch * 1000 + now - after - x;
      return t < 0 ? 0 : t / slots_of_a_microbatch + 1;
    };
    peak = std::max(
        peak, 2 * (begun(at[0], 0) + begun(at[1], 0)) - begun(at[2], 1) - begun(at[3], 1) - begun(weights[0], 1) - begun(weights[1], 1));
  }
  return peak;
}

HETPLAN_INLINE bool is_v_shape(const tick_table& t) {
  const std::size_t n = t.stages.size();
  if (n != 2 * t.devices.size()) return false;
  for (std::size_t s = 0; s < n; ++s) {
    if (t.stages[s].device != std::min(s, n - 1 - s)) return false;
    if (t.stages[s].ahead.size() != (s > 0 ? 1U : 0U) || (s > 0 && t.stages[s].ahead.front().stage != s - 1)) return false;
  }
  return true;
}

HETPLAN_INLINE std::vector<v_block> v_blocks(std::size_t devices, double memory, std::size_t most) {
  const int p = static_cast<int>(devices);
  constexpr int widest = slots_of_a_microbatch;
  std::vector<v_block> blocks;
  v_block b;
  for (b.step[0] = 1; b.step[0] <= widest; ++b.step[0])
    for (b.step[1] = 1; b.step[1] <= widest; ++b.step[1])
      for (b.step[2] = 1; b.step[2] <= widest; ++b.step[2])
        for (b.step[3] = 1; b.step[3] <= widest; ++b.step[3])
          for (b.turn[0] = 1; b.turn[0] <= widest; ++b.turn[0])
            for (b.turn[1] = 1; b.turn[1] <= widest; ++b.turn[1])
              for (b.turn[2] = 1; b.turn[2] <= widest; ++b.turn[2]) {
                int peak = 0;
                bool meet = false;
                for (int d = 0; d < p && !meet; ++d) {
                  const int mine = peak_of(passes_of(b, d, p));
                  meet = mine == 0 || mine > 2 * memory;
                  peak = std::max(peak, mine);
                }
                if (meet) continue;
                b.slots = passes_of(b, 0, p)[3] + 1;
                b.peak = peak / 2.0;
                blocks.push_back(b);
              }
  const auto key = [](const v_block& x) { return std::tuple(x.slots, x.peak, x.step, x.turn); };
  std::sort(blocks.begin(), blocks.end(), [&](const v_block& x, const v_block& y) { return key(x) < key(y); });
  if (blocks.size() > most) blocks.resize(most);
  return blocks;
}

HETPLAN_INLINE std::vector<partial_orders::task> orders_of_block(const tick_table& t, const v_block& block,
                                                                 const std::vector<gap_rule>& gaps, bool pull) {
  const int p = static_cast<int>(t.devices.size());
  std::vector<std::vector<partial_orders::task>> passes(t.devices.size());
  for (int d = 0; d < p; ++d) {
    const std::array<int, 4> at = passes_of(block, d, p);
    const auto first = static_cast<std::uint32_t>(d), second = static_cast<std::uint32_t>(2 * p - 1 - d);
    const std::array<partial_orders::task, 4> tasks{{{first, 0}, {second, 0}, {second, 1}, {first, 1}}};
    std::vector<std::pair<int, partial_orders::task>> timed;
    for (int k = 0; k < static_cast<int>(t.m); ++k) {
      for (std::size_t i = 0; i < tasks.size(); ++i) timed.emplace_back(slots_of_a_microbatch * k + at[i], tasks[i]);
    }
    std::sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [slot, task] : timed) passes[static_cast<std::size_t>(d)].push_back(task);
  }
  return filled_orders(t, std::move(passes), gaps, pull);
}

HETPLAN_INLINE std::vector<partial_orders::task> zero_bubble_v(const tick_table& t, const std::vector<gap_rule>& gaps, bool pull) {
  const std::size_t p = t.devices.size();
  std::vector<std::vector<partial_orders::task>> passes(p);
  for (std::size_t d = 0; d < p; ++d) {
    std::array<std::size_t, 4> left{t.m, t.m, t.m, t.m};
    const auto first = static_cast<std::uint32_t>(d), second = static_cast<std::uint32_t>(2 * p - 1 - d);
    const std::array<partial_orders::task, 4> tasks{{{first, 0}, {second, 0}, {second, 1}, {first, 1}}};
    const auto pass = [&](std::size_t i) {
      if (left[i] == 0) return;
      --left[i];
      passes[d].push_back(tasks[i]);
    };
    for (std::size_t k = 0; k < 2 * (p - d) - 1; ++k) pass(0);
    for (std::size_t k = 0; k < d; ++k) {
      pass(1);
      pass(0);
    }
    for (std::size_t k = 0; k < p - d; ++k) {
      pass(1);
      pass(2);
    }
    while (left[1] > 0) {
      pass(0);
      pass(3);
      pass(1);
      pass(2);
    }
    while (left[3] > 0) {
      pass(3);
      pass(2);
    }
  }
  return filled_orders(t, std::move(passes), gaps, pull);
}

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

}  // namespace hetplan::schedule::detail
