// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/m_etf.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/core/escaped.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/ranking.hpp>

namespace hetplan::place {

HETPLAN_INLINE operator_schedule earliest_start_first(const placement_table& t, const placement_rules& r, const start_rule& starts) {
  partial_schedule s(t, r);
  const std::vector<double> rank = upward_ranks(t);
  struct offer {
    double start_s = std::numeric_limits<double>::infinity();
    double end_s = std::numeric_limits<double>::infinity();
    std::size_t device = partial_schedule::none;
    bool fits = false;
  };
  // Room first, then a start that is allowed at all, then the least.
  const auto best_of = [&](std::size_t v) {
    offer best;
    for (std::size_t k = 0; k < t.devices(); ++k) {
      const trial at = s.try_on(v, k);
      if (!std::isfinite(at.end_s)) continue;
      const double start_s = starts ? starts(v, k, at, s) : at.start_s;
      const bool fits = s.memory().fits(v, k);
      const bool better = fits != best.fits ? fits : std::pair(start_s, at.end_s) < std::pair(best.start_s, best.end_s);
      if (best.device == partial_schedule::none || better) best = {start_s, at.end_s, k, fits};
    }
    return best;
  };
  using entry = std::tuple<double, double, std::size_t>;  // start, rank with the other sign, operator
  std::priority_queue<entry, std::vector<entry>, std::greater<>> ready;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>> reserve;
  // A trial costs in-edges: where operators have many, or are many, fewer are compared.
  const std::size_t n = t.size(),
                    most_compared = std::clamp<std::size_t>(std::min(512 * n / (n + t.edges().size()), 1'280'000 / n), 8, 128);
  std::vector<std::size_t> waits(t.size()), order;
  const auto enter = [&](std::size_t v, double start_s) {
    if (ready.size() < most_compared) ready.emplace(start_s, -rank[v], v);
    else reserve.emplace(-rank[v], v);
  };
  for (std::size_t v = 0; v < t.size(); ++v) {
    waits[v] = t.in_edges(v).size();
    if (waits[v] == 0) enter(v, 0);
  }
  bool over = false;
  while (!ready.empty()) {
    const auto [believed_s, sign, v] = ready.top();
    ready.pop();
    const offer now = best_of(v);
    if (now.device == partial_schedule::none)
      return {.status = {outcome::none_found,
                         "operator \"" + escaped(t.data().operators[v]) + "\" can run on no device that its inputs reach"}};
    if (now.start_s > believed_s && !ready.empty()) {
      ready.emplace(now.start_s, -rank[v], v);
      continue;
    }
    if (!reserve.empty()) {
      ready.emplace(0, reserve.top().first, reserve.top().second);
      reserve.pop();
    }
    over = over || !now.fits;
    s.place(v, now.device);
    order.push_back(v);
    for (const std::uint32_t e : t.out_edges(v)) {
      if (--waits[t.edges()[e].to] == 0) enter(t.edges()[e].to, s.end_s(v));
    }
  }
  if (!over) return std::move(s).result();
  std::vector<std::size_t> device;
  for (std::size_t v = 0; v < t.size(); ++v) device.push_back(s.device_of(v));
  return schedule_within_memory(t, r, order, device);
}

HETPLAN_INLINE operator_schedule m_etf(const placement_table& t, const placement_rules& r) {
  return or_one_device(t, r, earliest_start_first(t, r));
}

}  // namespace hetplan::place
