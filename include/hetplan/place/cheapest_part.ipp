// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/cheapest_part.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace hetplan::place {

namespace detail {

HETPLAN_INLINE void flow_network::add_edge(std::size_t from, std::size_t to, double capacity) {
  out_[from].push_back(edges_.size());
  edges_.push_back({to, capacity, capacity});
  out_[to].push_back(edges_.size());
  edges_.push_back({from, 0, 0});
}

HETPLAN_INLINE double flow_network::maximum_flow(std::size_t source, std::size_t sink) {
  for (edge& e : edges_) e.left = e.capacity;
  double flow = 0;
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  while (true) {
    std::vector<std::size_t> came_by(out_.size(), none), queue{source};
    reached_.assign(out_.size(), 0);
    reached_[source] = 1;
    for (std::size_t i = 0; i < queue.size() && !reached_[sink]; ++i) {
      for (const std::size_t e : out_[queue[i]]) {
        if (edges_[e].left <= 0 || reached_[edges_[e].to]) continue;
        reached_[edges_[e].to] = 1;
        came_by[edges_[e].to] = e;
        queue.push_back(edges_[e].to);
      }
    }
    if (!reached_[sink]) return flow;
    double more = std::numeric_limits<double>::infinity();
    for (std::size_t v = sink; v != source; v = edges_[came_by[v] ^ 1].to) more = std::min(more, edges_[came_by[v]].left);
    for (std::size_t v = sink; v != source; v = edges_[came_by[v] ^ 1].to) {
      edges_[came_by[v]].left -= more;
      edges_[came_by[v] ^ 1].left += more;
    }
    flow += more;
  }
}

}  // namespace detail

HETPLAN_INLINE double cheapest_part_bound(const placement_units& u, int accelerators, int cpus) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t n = u.size(), sink = n + 2 * u.tensors.size();
  detail::flow_network network(sink + 1);
  for (std::size_t v = 0; v < n; ++v) network.add_edge(v, sink, u.accelerator_s[v]);
  for (std::size_t t = 0; t < u.tensors.size(); ++t) {
    const std::size_t some = n + 2 * t, all = some + 1;
    network.add_edge(some, all, u.tensors[t].transfer_s);
    for (const std::size_t v : u.tensors[t].units) {
      network.add_edge(v, some, inf);
      network.add_edge(all, v, inf);
    }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return u.accelerator_s[a] > u.accelerator_s[b]; });
  std::vector<double> most(n, inf);  // that a unit can need on an accelerator
  double bound = 0;
  for (const std::size_t v : order) {
    const double on_cpu = cpus > 0 ? u.cpu_s[v] : inf;
    if (std::min(most[v], on_cpu) <= bound) continue;
    double on_accelerator = inf;
    if (accelerators > 0 && u.accelerator_s[v] < inf) {
      on_accelerator = network.maximum_flow(v, sink);
      for (std::size_t w = 0; w < n; ++w) {
        if (network.reached(w)) most[w] = std::min(most[w], on_accelerator);
      }
    }
    bound = std::max(bound, std::min(on_accelerator, on_cpu));
  }
  return bound;
}

}  // namespace hetplan::place
