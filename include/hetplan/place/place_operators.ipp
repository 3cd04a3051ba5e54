// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/place_operators.hpp>

#include <algorithm>
#include <array>
#include <numeric>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan::place {

namespace detail {

HETPLAN_INLINE std::size_t renumber(std::vector<std::size_t>& label) {
  key_index numbers;
  for (std::size_t& l : label) l = numbers.number({l});
  return numbers.size();
}

/// Returns the edges between the labels of their ends, without duplicates and loops.
HETPLAN_INLINE std::vector<std::pair<std::size_t, std::size_t>> lifted(const std::vector<std::pair<std::size_t, std::size_t>>& edges,
                                                                       const std::vector<std::size_t>& label) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const auto& [from, to] : edges) {
    if (label[from] != label[to]) all.emplace_back(label[from], label[to]);
  }
  sort_distinct(all);
  return all;
}

/// Returns the edges of the order that contiguity requires: forward edges, and reversed backward edges if the color of an end has no
/// forward operator to represent it.
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

/// Returns the units that the labels define, without leaves_take_memory.
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
  keyed<placement_units::tensor> tensors;  // by units
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].empty() || w.operators[i].transfer.value() == 0) continue;
    sort_distinct(ends[i]);
    placement_units::tensor& t = tensors[parts_of(ends[i])];
    t.transfer_s += w.operators[i].transfer.value();
    t.units = std::move(ends[i]);
  }
  for (const std::size_t i : tensors.keys().in_order()) u.tensors.push_back(std::move(tensors.values()[i]));
  u.edges = lifted(edges, label);
  u.unit_of = std::move(label);
  return u;
}

/// Returns for each unit a neighbour that it can follow to any device at no cost, or itself. Such a leaf has no work and a single
/// neighbour in the order of parts, which also uses each of its tensors.
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
    // Zero time on an accelerator implies that an accelerator can run the unit.
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
  keyed<std::size_t> first_of_color;
  std::vector<std::size_t> label(w.operators.size());
  for (std::size_t i = 0; i < label.size(); ++i) {
    label[i] = i;
    if (const auto& color = w.operators[i].color; color && !first_of_color.insert({*color}, i)) label[i] = *first_of_color.find({*color});
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
      if (host[host[v]] == v) host[host[v]] = host[v];  // of two leaves that could follow each other, one stays
    }
    u.leaves_take_memory = leaves_take_memory;
    if (n == 0) return u;
    for (std::size_t i = 0; i < label.size(); ++i) {
      label[i] = u.unit_of[i];
      while (host[label[i]] != label[i]) label[i] = host[label[i]];
    }
  }
}

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
  const auto order = sorted_indices(n, [&](std::size_t a, std::size_t b) { return u.accelerator_s[a] > u.accelerator_s[b]; });
  std::vector<double> most(n, inf);  // upper bound on each unit's least cost on an accelerator
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

HETPLAN_INLINE placement_load::placement_load(const placement_units& units, double memory_bytes)
    : units_(units), memory_bytes_(memory_bytes), tensors_of_(units.size()), inside_(units.tensors.size(), 0) {
  for (std::size_t t = 0; t < units.tensors.size(); ++t) {
    for (const std::size_t v : units.tensors[t].units) tensors_of_[v].push_back(t);
  }
}

HETPLAN_INLINE void placement_load::add(std::size_t unit) {
  sums s = sums_.back();
  s.accelerator_s += units_.accelerator_s[unit];
  s.cpu_s += units_.cpu_s[unit];
  s.size_bytes += units_.size_bytes[unit];
  for (const std::size_t t : tensors_of_[unit]) {
    const placement_units::tensor& tensor = units_.tensors[t];
    ++inside_[t];
    if (inside_[t] == 1) s.transfer_s += tensor.transfer_s;
    if (inside_[t] == tensor.units.size()) s.transfer_s -= tensor.transfer_s;
  }
  sums_.push_back(s);
}

HETPLAN_INLINE void placement_load::remove(std::size_t unit) {
  for (const std::size_t t : tensors_of_[unit]) --inside_[t];
  sums_.pop_back();
}

HETPLAN_INLINE double placement_load::load(std::size_t kind) const {
  const sums& s = sums_.back();
  if (kind == 1) return s.cpu_s;
  // Rounding may leave transfer_s slightly negative.
  return s.size_bytes > memory_bytes_ ? std::numeric_limits<double>::infinity() : s.accelerator_s + std::max(0.0, s.transfer_s);
}

HETPLAN_INLINE double placement_load::work(std::size_t unit, std::size_t kind) const {
  if (kind == 1) return units_.cpu_s[unit];
  return units_.size_bytes[unit] > memory_bytes_ ? std::numeric_limits<double>::infinity() : units_.accelerator_s[unit];
}

namespace detail {

HETPLAN_INLINE auto graph_of(const placement_units& u) {
  return boost::compressed_sparse_row_graph<boost::directedS>(boost::edges_are_sorted, u.edges.begin(), u.edges.end(), u.size());
}

HETPLAN_INLINE operator_placement placement_of(const placement_workload& w, const placement_units& units, const ideal_partition& found) {
  operator_placement p{
      .status = found.status, .bound = seconds(found.bound), .units = units.size(), .ideals = found.ideals, .pairs = found.pairs};
  if (found.parts.empty()) return p;
  std::vector<std::size_t> device_of_unit(units.size());
  std::array<std::size_t, 2> next{0, static_cast<std::size_t>(w.accelerators)};
  for (const ideal_part& part : found.parts) {
    for (const std::size_t u : part.nodes) device_of_unit[u] = next[part.kind];
    ++next[part.kind];
  }
  for (const std::size_t u : units.unit_of) p.device.push_back(device_of_unit[u]);
  p.loads = device_loads(w, p.device);
  p.value = *std::max_element(p.loads.begin(), p.loads.end());
  if (found.bound >= found.value * (1 - 1e-12)) p.bound = p.value;  // equal up to the order of summation
  return p;
}

/// Returns the load without a memory limit, under which no merged leaf costs the optimum.
HETPLAN_INLINE placement_load without_memory_limit(const placement_units& u) { return {u, std::numeric_limits<double>::infinity()}; }

}  // namespace detail

HETPLAN_INLINE operator_placement place_operators_in_line(const placement_workload& w) {
  check_placement_workload(w);
  const placement_units units = make_placement_units(w);
  const std::array devices{w.accelerators, w.cpus};
  ideal_partition found = linear_partition(detail::graph_of(units), devices, placement_load(units, w.accelerator_memory.value()));
  if (units.leaves_take_memory) found.bound = partition_bound(units.size(), devices, detail::without_memory_limit(units));
  found.bound = std::max(found.bound, cheapest_part_bound(units, w.accelerators, w.cpus));
  return detail::placement_of(w, units, found);
}

HETPLAN_INLINE operator_placement place_operators(const placement_workload& w, const contiguous_options& o) {
  check_placement_workload(w);
  const placement_units units = make_placement_units(w);
  const std::array devices{w.accelerators, w.cpus};
  const auto graph = detail::graph_of(units);
  ideal_partition found = contiguous_partition(graph, devices, placement_load(units, w.accelerator_memory.value()), o);
  if (units.leaves_take_memory) {
    found.bound = std::min(found.value, contiguous_partition(graph, devices, detail::without_memory_limit(units), o).bound);
    if (found.status.result == outcome::infeasible) {
      found.status = {outcome::none_found,
                      found.status.reason + "; operators without work were kept with their only neighbour, which takes memory"};
    }
  }
  if (found.status.result == outcome::stopped) found.bound = std::max(found.bound, cheapest_part_bound(units, w.accelerators, w.cpus));
  return detail::placement_of(w, units, found);
}

}  // namespace hetplan::place
