// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/place_operators.hpp>

#include <algorithm>
#include <array>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/place/cheapest_part.hpp>

namespace hetplan::place {

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
  // Rounding may leave a little less than nothing of the transfers.
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
  if (found.bound >= found.value * (1 - 1e-12)) p.bound = p.value;  // sums of the same numbers in another order
  return p;
}

/// Under which no merged leaf costs the optimum.
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
