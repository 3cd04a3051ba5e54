// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/part_table.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE std::vector<part_of_series> list_parts(const series_parts& s) {
  std::vector<part_of_series> all;
  for (std::size_t i = 0; i < s.parts.size(); ++i) {
    part_of_series p{.operators = {}, .entry = i > 0, .exit = i < s.milestones.size()};
    if (p.entry) p.operators.push_back(s.milestones[i - 1]);
    p.operators.insert(p.operators.end(), s.parts[i].begin(), s.parts[i].end());
    if (p.exit) p.operators.push_back(s.milestones[i]);
    all.push_back(std::move(p));
  }
  return all;
}

namespace detail {

/// The operators of a part by number, with their place in it.
[[nodiscard]] HETPLAN_INLINE std::vector<std::pair<std::size_t, std::size_t>> places_in(const part_of_series& p) {
  std::vector<std::pair<std::size_t, std::size_t>> place;
  for (std::size_t i = 0; i < p.operators.size(); ++i) place.emplace_back(p.operators[i], i);
  std::sort(place.begin(), place.end());
  return place;
}
/// p.operators.size(): not in the part.
[[nodiscard]] HETPLAN_INLINE std::size_t place_of(const std::vector<std::pair<std::size_t, std::size_t>>& place, std::size_t op) {
  const auto it = std::lower_bound(place.begin(), place.end(), std::pair(op, std::size_t{0}));
  return it == place.end() || it->first != op ? place.size() : it->second;
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::size_t> part_edges(const placement_table& t, const part_of_series& p) {
  const auto place = detail::places_in(p);
  std::vector<std::size_t> edges;
  for (const std::size_t v : p.operators) {
    for (const std::uint32_t e : t.out_edges(v)) {
      if (detail::place_of(place, t.edges()[e].to) < place.size()) edges.push_back(e);
    }
  }
  return edges;
}

HETPLAN_INLINE placement_data part_data(const placement_table& t, const part_of_series& p) {
  const placement_data& all = t.data();
  const std::size_t d = t.devices();
  placement_data part{.operators = std::vector<std::string>(p.operators.size()),
                      .devices = all.devices,
                      .capacity_bytes = all.capacity_bytes,
                      .pairs = all.pairs,
                      .resources = all.resources};
  for (const std::size_t v : p.operators) {
    for (std::size_t k = 0; k < d; ++k) part.time_s.push_back(t.time_s(v, k));
    part.held_bytes.push_back(t.held_bytes(v));
    if (!all.working_bytes.empty()) part.working_bytes.push_back(t.working_bytes(v));
  }
  const auto place = detail::places_in(p);
  for (const tied_tensor& x : t.tied()) {
    tied_tensor inside{.bytes = x.bytes};
    for (const std::size_t v : x.operators) {
      if (const std::size_t at = detail::place_of(place, v); at < place.size() && (at > 0 || !p.entry)) inside.operators.push_back(at);
    }
    std::sort(inside.operators.begin(), inside.operators.end());
    if (inside.operators.size() == x.operators.size()) {
      part.tied.push_back(std::move(inside));
      continue;
    }
    for (const std::size_t at : inside.operators) part.held_bytes[at] += x.bytes / static_cast<double>(x.operators.size());
  }
  for (const std::size_t e : part_edges(t, p)) {
    const auto [from, to, size] = t.edges()[e];
    part.edges.push_back({detail::place_of(place, from), detail::place_of(place, to), size});
    if (all.edge_time_s.empty()) continue;
    const auto first = all.edge_time_s.begin() + static_cast<std::ptrdiff_t>(e * d * d);
    part.edge_time_s.insert(part.edge_time_s.end(), first, first + static_cast<std::ptrdiff_t>(d * d));
  }
  return part;
}

HETPLAN_INLINE placement_table part_table(placement_data data, const part_of_series& p, std::optional<std::size_t> entry_on,
                                          std::optional<std::size_t> exit_on) {
  HETPLAN_ASSERT(p.entry == entry_on.has_value() && p.exit == exit_on.has_value());
  constexpr double never_s = std::numeric_limits<double>::infinity();
  const std::size_t d = data.devices.size(), last = data.operators.size() - 1;
  if (p.entry) {
    for (std::size_t k = 0; k < d; ++k) data.time_s[k] = k == *entry_on ? 0 : never_s;
    data.held_bytes.front() = 0;
    if (!data.working_bytes.empty()) data.working_bytes.front() = 0;
  }
  for (std::size_t k = 0; p.exit && k < d; ++k) {
    if (k != *exit_on) data.time_s[last * d + k] = never_s;
  }
  return placement_table(std::move(data));
}

}  // namespace HETPLAN_NAMESPACE::place
