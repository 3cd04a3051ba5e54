// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_units.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>

namespace hetplan::place {

namespace detail {

HETPLAN_INLINE std::size_t renumber(std::vector<std::size_t>& label) {
  std::map<std::size_t, std::size_t> number;
  for (std::size_t& l : label) l = number.emplace(l, number.size()).first->second;
  return number.size();
}

/// Edges between the labels of their ends, none twice, none from a label to itself.
HETPLAN_INLINE std::vector<std::pair<std::size_t, std::size_t>> lifted(const std::vector<std::pair<std::size_t, std::size_t>>& edges,
                                                                       const std::vector<std::size_t>& label) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const auto& [from, to] : edges) {
    if (label[from] != label[to]) all.emplace_back(label[from], label[to]);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// What contiguity asks of operators: forward edges; and backward edges turned round where a color of one end has no forward
/// operator that could speak for it.
HETPLAN_INLINE std::vector<std::pair<std::size_t, std::size_t>> contiguity_edges(const placement_workload& w,
                                                                                 const std::vector<std::size_t>& color) {
  std::vector<char> has_forward(w.operators.size(), 0);
  for (std::size_t i = 0; i < color.size(); ++i) {
    if (!w.operators[i].backward) has_forward[color[i]] = 1;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const auto& [from, to] : w.edges) {
    if (!w.operators[to].backward) edges.emplace_back(from, to);
    else if (w.operators[from].backward && !(has_forward[color[from]] && has_forward[color[to]])) edges.emplace_back(to, from);
  }
  return edges;
}

/// Everything about units but who they are.
HETPLAN_INLINE placement_units units_of(const placement_workload& w, const std::vector<std::pair<std::size_t, std::size_t>>& edges,
                                        std::vector<std::size_t> label) {
  placement_units u;
  const std::size_t n = renumber(label);
  u.accelerator_s.assign(n, 0);
  u.cpu_s.assign(n, 0);
  u.size_bytes.assign(n, 0);
  for (std::size_t i = 0; i < label.size(); ++i) {
    const placed_operator& o = w.operators[i];
    u.accelerator_s[label[i]] += o.on_accelerator ? o.accelerator_time.value() : std::numeric_limits<double>::infinity();
    u.cpu_s[label[i]] += o.cpu_time.value();
    u.size_bytes[label[i]] += o.size.value();
  }
  std::vector<std::vector<std::size_t>> ends(label.size());
  for (const auto& [from, to] : w.edges) {
    if (label[to] == label[from]) continue;
    if (ends[from].empty()) ends[from].push_back(label[from]);
    ends[from].push_back(label[to]);
  }
  std::map<std::vector<std::size_t>, double> transfer_s;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].empty() || w.operators[i].transfer.value() == 0) continue;
    std::sort(ends[i].begin(), ends[i].end());
    ends[i].erase(std::unique(ends[i].begin(), ends[i].end()), ends[i].end());
    transfer_s[ends[i]] += w.operators[i].transfer.value();
  }
  for (const auto& [units, time_s] : transfer_s) u.tensors.push_back({time_s, units});
  u.edges = lifted(edges, label);
  u.unit_of = std::move(label);
  return u;
}

/// For each unit, a neighbour that it can follow wherever that one goes at no cost to anybody, or itself: a unit without work whose
/// only neighbour in the order of parts also has to do with each of its tensors.
HETPLAN_INLINE std::vector<std::size_t> free_leaves(const placement_units& u) {
  std::vector<std::size_t> host(u.size()), neighbours(u.size(), 0);
  std::iota(host.begin(), host.end(), std::size_t{0});
  for (const auto& [from, to] : u.edges) {
    ++neighbours[from];
    ++neighbours[to];
    host[from] = to;
    host[to] = from;
  }
  for (std::size_t v = 0; v < host.size(); ++v) {
    // No time on an accelerator also says that it can be there.
    if (neighbours[v] != 1 || u.accelerator_s[v] != 0 || u.cpu_s[v] != 0) host[v] = v;
  }
  for (const placement_units::tensor& t : u.tensors) {
    for (const std::size_t v : t.units) {
      if (!std::binary_search(t.units.begin(), t.units.end(), host[v])) host[v] = v;
    }
  }
  return host;
}

}  // namespace detail

HETPLAN_INLINE placement_units make_placement_units(const placement_workload& w) {
  std::map<long long, std::size_t> first_of_color;
  std::vector<std::size_t> label(w.operators.size());
  for (std::size_t i = 0; i < label.size(); ++i) {
    label[i] = w.operators[i].color ? first_of_color.emplace(*w.operators[i].color, i).first->second : i;
  }
  std::size_t n = detail::renumber(label);
  const auto edges = detail::contiguity_edges(w, label);
  {
    const auto between = detail::lifted(edges, label);
    using graph = boost::compressed_sparse_row_graph<boost::directedS>;
    const graph g(boost::edges_are_sorted, between.begin(), between.end(), n);
    std::vector<std::size_t> component(n);
    boost::strong_components(g, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, g)));
    for (std::size_t& l : label) l = component[l];
  }
  bytes size;
  for (const placed_operator& o : w.operators) size += o.size;
  const bool memory_is_short = size > w.accelerator_memory;
  bool leaves_take_memory = false;
  while (true) {
    placement_units u = detail::units_of(w, edges, label);
    std::vector<std::size_t> host = detail::free_leaves(u);
    n = 0;
    for (std::size_t v = 0; v < host.size(); ++v) {
      if (host[v] == v) continue;
      ++n;
      leaves_take_memory = leaves_take_memory || (memory_is_short && u.size_bytes[v] > 0);
      if (host[host[v]] == v) host[host[v]] = host[v];  // of two that could follow each other one stays
    }
    u.leaves_take_memory = leaves_take_memory;
    if (n == 0) return u;
    for (std::size_t i = 0; i < label.size(); ++i) {
      label[i] = u.unit_of[i];
      while (host[label[i]] != label[i]) label[i] = host[label[i]];
    }
  }
}

}  // namespace hetplan::place
