// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/share_out.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/place/device_memory.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

/// How much longer the way through an operator is on a device than where it is, by its longest transfers.
[[nodiscard]] HETPLAN_INLINE double detour_s(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& device,
                                             std::size_t v, std::size_t to) {
  const auto through_s = [&](std::size_t k) {
    double in_s = 0, out_s = 0;
    for (const std::uint32_t e : t.in_edges(v)) in_s = std::max(in_s, carried_s(t, r.copies, e, device[t.edges()[e].from], k));
    for (const std::uint32_t e : t.out_edges(v)) out_s = std::max(out_s, carried_s(t, r.copies, e, k, device[t.edges()[e].to]));
    return in_s + t.time_s(v, k) + out_s;
  };
  return through_s(to) - through_s(device[v]);
}

/// One round, from one schedule.
[[nodiscard]] HETPLAN_INLINE operator_schedule share_out_once(const placement_table& t, const placement_rules& r, operator_schedule base,
                                                              long long& tried) {
  const std::size_t d = t.devices();
  std::vector<double> load(d, 0);
  for (std::size_t v = 0; v < t.size(); ++v) load[base.device[v]] += t.time_s(v, base.device[v]);
  const auto home = static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
  std::vector<std::pair<double, std::size_t>> leaving;  // seconds that are lost at least, operator
  for (std::size_t v = 0; v < t.size(); ++v) {
    if (base.device[v] != home || t.time_s(v, home) <= 0) continue;
    double least_s = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < d; ++k) {
      if (k != home) least_s = std::min(least_s, detour_s(t, r, base.device, v, k));
    }
    if (std::isfinite(least_s)) leaving.emplace_back(least_s, v);
  }
  std::sort(leaving.begin(), leaving.end());
  const std::vector<std::size_t> sequence = sequence_of(t, base);
  operator_schedule best = std::move(base);
  const std::vector<std::size_t> before = best.device;
  constexpr int most_idle = 3;
  std::size_t last = 0;
  int idle = 0;
  for (std::size_t level = 1; level <= share_out_levels && idle < most_idle; ++level) {
    std::size_t n = leaving.size() * level / share_out_levels;
    while (n > 0 && n < leaving.size() && leaving[n].first == leaving[n - 1].first) ++n;
    if (n <= last) continue;
    last = n;
    std::vector<std::pair<double, std::size_t>> longest_first;
    std::vector<double> room = load;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t v = leaving[i].second;
      longest_first.emplace_back(-t.time_s(v, home), v);
      room[home] -= t.time_s(v, home);
    }
    std::sort(longest_first.begin(), longest_first.end());
    std::vector<std::size_t> device = before;
    device_memory memory(t);
    for (std::size_t v = 0; v < t.size(); ++v) memory.add(v, device[v]);
    for (const auto& [time, v] : longest_first) {
      memory.remove(v, home);
      std::size_t to = home;
      for (std::size_t k = 0; k < d; ++k) {
        if (room[k] + t.time_s(v, k) < room[to] + t.time_s(v, to) && memory.fits(v, k)) to = k;
      }
      room[to] += t.time_s(v, to);
      memory.add(v, to);
      device[v] = to;
    }
    ++tried;
    operator_schedule s = schedule_in_order(t, r, sequence, device);
    ++idle;
    if (s.makespan_s < best.makespan_s) best = std::move(s), idle = 0;
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE operator_schedule share_out(const placement_table& t, const placement_rules& r, operator_schedule base, long long& tried) {
  operator_schedule best = std::move(base);
  const auto take = [&](operator_schedule other) {
    const bool shorter = other.makespan_s < best.makespan_s;
    if (shorter) best = std::move(other);
    return shorter;
  };
  if (operator_schedule alone = one_device(t, r); alone.found())
    static_cast<void>(take(detail::share_out_once(t, r, std::move(alone), tried)));
  for (std::size_t round = 1; round < share_out_rounds && take(detail::share_out_once(t, r, best, tried)); ++round) {
  }
  return best;
}

}  // namespace HETPLAN_NAMESPACE::place
