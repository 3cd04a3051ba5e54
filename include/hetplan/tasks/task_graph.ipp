// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include <hetplan/solve/preemptive_machine.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE bytes task_graph::volume() const {
  double total = 0;
  for (const transfer& t : transfers) total += t.volume_bytes;
  return bytes(total);
}

HETPLAN_INLINE std::span<const node_id> task_graph::successors_of(node_id n) const {
  return std::span(successors).subspan(first_successor[n], first_successor[n + 1] - first_successor[n]);
}

HETPLAN_INLINE task_graph_builder::task_graph_builder(std::size_t devices) {
  graph_.device_order.resize(devices);
  graph_.static_bytes.assign(devices, 0);
  graph_.used.assign(devices, 0);
}

HETPLAN_INLINE task_graph_builder::handle task_graph_builder::add(const compute_task& t) {
  graph_.used[t.device.index()] = 1;
  graph_.computes.push_back(t);
  return {handle::kind::compute, static_cast<std::uint32_t>(graph_.computes.size() - 1)};
}

HETPLAN_INLINE task_graph_builder::handle task_graph_builder::add(const transfer& t) {
  graph_.used[t.from.index()] = graph_.used[t.to.index()] = 1;
  graph_.transfers.push_back(t);
  return {handle::kind::transfer, static_cast<std::uint32_t>(graph_.transfers.size() - 1)};
}

HETPLAN_INLINE std::uint32_t task_graph_builder::add_route(route r) {
  graph_.routes.push_back(std::move(r));
  return static_cast<std::uint32_t>(graph_.routes.size() - 1);
}

HETPLAN_INLINE void task_graph_builder::reserve(std::size_t computes, std::size_t transfers, std::size_t edges) {
  graph_.computes.reserve(computes);
  graph_.transfers.reserve(transfers);
  edges_.reserve(edges);
}

HETPLAN_INLINE task_graph task_graph_builder::build() && {
  const std::size_t n = graph_.size();
  graph_.first_successor.assign(n + 1, 0);
  graph_.predecessors.assign(n, 0);
  for (const auto& [before, after] : edges_) {
    ++graph_.first_successor[node(before) + 1];
    ++graph_.predecessors[node(after)];
  }
  std::partial_sum(graph_.first_successor.begin(), graph_.first_successor.end(), graph_.first_successor.begin());
  graph_.successors.resize(edges_.size());
  auto next = graph_.first_successor;
  for (const auto& [before, after] : edges_) graph_.successors[next[node(before)]++] = node(after);
  return std::move(graph_);
}

HETPLAN_INLINE node_id task_graph_builder::node(handle h) const {
  const std::size_t base = h.of == handle::kind::compute    ? 0
                           : h.of == handle::kind::transfer ? graph_.computes.size()
                                                            : graph_.computes.size() + graph_.transfers.size();
  return static_cast<node_id>(base + h.index);
}

HETPLAN_INLINE double work_s(const transfer& t, const resource_use& u, const network& net) {
  if (t.blocks()) return 0;
  return t.volume_bytes * u.weight / net[u.resource].capacity.value();
}

namespace detail {

HETPLAN_INLINE std::vector<node_id> next_on_device(const task_graph& g) {
  std::vector<node_id> next(g.computes.size(), static_cast<node_id>(g.size()));
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) next[order[i - 1]] = order[i];
  }
  return next;
}

}  // namespace detail

HETPLAN_INLINE path_times longest_paths(const task_graph& g, const network& net, bool released) {
  path_times t;
  t.order.reserve(g.size());
  t.alone_s.assign(g.size(), 0);
  t.earliest_start_s.assign(g.size(), 0);
  t.earliest_end_s.assign(g.size(), std::numeric_limits<double>::infinity());
  t.tail_s.assign(g.size(), 0);

  std::vector<double> seconds_per_byte(g.routes.size(), 0);
  for (std::size_t r = 0; r < g.routes.size(); ++r) {
    for (const resource_use& u : g.routes[r].via) {
      seconds_per_byte[r] = std::max(seconds_per_byte[r], u.weight / net[u.resource].capacity.value());
    }
  }
  for (node_id n = 0; n < g.computes.size(); ++n) t.alone_s[n] = g.computes[n].duration_s;
  for (std::size_t i = 0; i < g.transfers.size(); ++i) {
    const transfer& x = g.transfers[i];
    if (!x.blocks()) t.alone_s[g.node_of_transfer(i)] = x.latency_s + x.volume_bytes * seconds_per_byte[x.route];
    if (released) t.earliest_start_s[g.node_of_transfer(i)] = x.release_s;
  }

  const std::vector<node_id> next = detail::next_on_device(g);
  const auto for_each_after = [&](node_id n, auto&& f) {
    for (const node_id m : g.successors_of(n)) f(m);
    if (g.is_compute(n) && next[n] < g.size()) f(next[n]);
  };
  std::vector<std::uint32_t> waiting = g.predecessors;
  for (const node_id n : next) {
    if (n < g.size()) ++waiting[n];
  }
  for (node_id n = 0; n < g.size(); ++n) {
    if (waiting[n] == 0) t.order.push_back(n);
  }
  for (std::size_t i = 0; i < t.order.size(); ++i) {
    const node_id n = t.order[i];
    t.earliest_end_s[n] = t.earliest_start_s[n] + t.alone_s[n];
    for_each_after(n, [&](node_id m) {
      t.earliest_start_s[m] = std::max(t.earliest_start_s[m], t.earliest_end_s[n]);
      if (--waiting[m] == 0) t.order.push_back(m);
    });
  }
  for (auto it = t.order.rbegin(); it != t.order.rend(); ++it) {
    for_each_after(*it, [&](node_id m) { t.tail_s[*it] = std::max(t.tail_s[*it], t.alone_s[m] + t.tail_s[m]); });
  }
  return t;
}

HETPLAN_INLINE seconds uncontended_bound(const task_graph& g, const path_times& paths) {
  double bound = 0;
  for (const double end : paths.earliest_end_s) bound = std::max(bound, end);
  std::vector<double> busy(g.device_order.size(), 0);
  for (const compute_task& t : g.computes) busy[t.device.index()] += t.duration_s;
  for (const double b : busy) bound = std::max(bound, b);
  return seconds(bound);
}

HETPLAN_INLINE seconds schedule_bound(const task_graph& g, const network& net, const path_times& paths) {
  double bound = uncontended_bound(g, paths).value();
  std::vector<double> load(net.resources().size(), 0);
  for (const transfer& t : g.transfers) {
    for (const resource_use& u : g.routes[t.route].via) {
      load[u.resource.index()] += work_s(t, u, net);
    }
  }
  for (const double l : load) bound = std::max(bound, l);
  return seconds(bound);
}

HETPLAN_INLINE seconds schedule_bound(const task_graph& g, const network& net) { return schedule_bound(g, net, longest_paths(g, net)); }

HETPLAN_INLINE seconds contention_bound(const task_graph& g, const network& net, const path_times& paths) {
  std::vector<std::vector<machine_job>> jobs(net.resources().size());
  for (std::size_t i = 0; i < g.transfers.size(); ++i) {
    const transfer& t = g.transfers[i];
    const node_id n = g.node_of_transfer(i);
    for (const resource_use& u : g.routes[t.route].via) {
      const double work = work_s(t, u, net);
      if (work > 0) jobs[u.resource.index()].push_back({paths.earliest_start_s[n] + t.latency_s, work, paths.tail_s[n]});
    }
  }
  double bound = schedule_bound(g, net, paths).value();
  for (auto& j : jobs) bound = std::max(bound, preemptive_machine_bound(j));
  return seconds(bound);
}

HETPLAN_INLINE seconds contention_bound(const task_graph& g, const network& net) { return contention_bound(g, net, longest_paths(g, net)); }

}  // namespace hetplan::tasks
