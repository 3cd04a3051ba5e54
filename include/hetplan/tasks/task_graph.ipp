// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/task_graph.hpp>

#include <numeric>

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

}  // namespace hetplan::tasks
