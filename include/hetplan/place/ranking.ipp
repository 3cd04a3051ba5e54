// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/ranking.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include <hetplan/core/linkage.hpp>

namespace hetplan::place {

namespace detail {

/// Over the devices that can run it.
[[nodiscard]] HETPLAN_INLINE double mean_time_s(const placement_table& t, std::size_t op) {
  double sum = 0;
  int devices = 0;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (!std::isfinite(t.time_s(op, k))) continue;
    sum += t.time_s(op, k);
    ++devices;
  }
  return devices == 0 ? 0 : sum / devices;
}

}  // namespace detail

HETPLAN_INLINE double mean_transfer_s(const placement_table& t, std::size_t edge) {
  double sum = 0;
  int pairs = 0;
  for (std::size_t a = 0; a < t.devices(); ++a) {
    for (std::size_t b = 0; b < t.devices(); ++b) {
      const double s = t.transfer_s(edge, a, b);
      if (a == b || !std::isfinite(s)) continue;
      sum += s;
      ++pairs;
    }
  }
  return pairs == 0 ? 0 : sum / pairs;
}

HETPLAN_INLINE std::vector<double> upward_ranks(const placement_table& t) {
  std::vector<double> rank(t.size(), 0);
  for (std::size_t i = t.size(); i-- > 0;) {
    const std::size_t v = t.order()[i];
    double behind = 0;
    for (const std::uint32_t e : t.out_edges(v)) behind = std::max(behind, mean_transfer_s(t, e) + rank[t.edges()[e].to]);
    rank[v] = detail::mean_time_s(t, v) + behind;
  }
  return rank;
}

HETPLAN_INLINE std::vector<double> tails_s(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> tail(t.size() * d, 0);
  for (std::size_t i = t.size(); i-- > 0;) {
    const std::size_t v = t.order()[i];
    for (std::size_t k = 0; k < d; ++k) {
      double behind = 0;
      for (const std::uint32_t e : t.out_edges(v)) {
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, t.transfer_s(e, k, j) + tail[t.edges()[e].to * d + j]);
        behind = std::max(behind, best);
      }
      tail[v * d + k] = t.time_s(v, k) + behind;
    }
  }
  return tail;
}

HETPLAN_INLINE std::vector<double> heads_s(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> head(t.size() * d, 0);
  for (const std::size_t v : t.order()) {
    for (std::size_t k = 0; k < d; ++k) {
      double before = 0;
      for (const std::uint32_t e : t.in_edges(v)) {
        const std::size_t u = t.edges()[e].from;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, head[u * d + j] + t.time_s(u, j) + t.transfer_s(e, j, k));
        before = std::max(before, best);
      }
      head[v * d + k] = before;
    }
  }
  return head;
}

HETPLAN_INLINE std::vector<std::size_t> order_by(const placement_table& t, const std::vector<double>& priority) {
  std::vector<std::size_t> waits(t.size(), 0), order;
  const auto later = [&](std::size_t a, std::size_t b) { return std::pair(priority[a], b) < std::pair(priority[b], a); };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
  for (std::size_t v = 0; v < t.size(); ++v) {
    waits[v] = t.in_edges(v).size();
    if (waits[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const std::uint32_t e : t.out_edges(v)) {
      if (--waits[t.edges()[e].to] == 0) ready.push(t.edges()[e].to);
    }
  }
  return order;
}

}  // namespace hetplan::place
