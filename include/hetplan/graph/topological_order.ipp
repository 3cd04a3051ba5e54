// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/topological_order.hpp>

#include <algorithm>
#include <functional>

namespace hetplan {

HETPLAN_INLINE std::vector<std::size_t> topological_order(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges) {
  std::vector<std::size_t> first(n + 1, 0), waiting(n, 0), targets(edges.size());
  for (const auto& [from, to] : edges) {
    ++first[from + 1];
    ++waiting[to];
  }
  for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
  auto next = first;
  for (const auto& [from, to] : edges) targets[next[from]++] = to;

  std::vector<std::size_t> ready, order;  // ready: a heap with the smallest node on top
  const auto push = [&](std::size_t node) {
    ready.push_back(node);
    std::push_heap(ready.begin(), ready.end(), std::greater<>{});
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) push(i);
  }
  order.reserve(n);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>{});
    const std::size_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (std::size_t e = first[node]; e < first[node + 1]; ++e) {
      if (--waiting[targets[e]] == 0) push(targets[e]);
    }
  }
  return order;
}

HETPLAN_INLINE std::pair<std::size_t, std::size_t> edge_on_cycle(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges,
                                                                 std::span<const std::size_t> order) {
  std::vector<char> left(n, 1);
  for (const std::size_t node : order) left[node] = 0;
  // Every node that is left has a predecessor that is left: going back must come round.
  std::vector<std::size_t> before(n, n);
  for (const auto& [from, to] : edges) {
    if (left[from] && left[to]) before[to] = from;
  }
  auto node = static_cast<std::size_t>(std::find(left.begin(), left.end(), 1) - left.begin());
  for (std::size_t steps = 0; steps < n; ++steps) node = before[node];
  return {before[node], node};
}

}  // namespace hetplan
