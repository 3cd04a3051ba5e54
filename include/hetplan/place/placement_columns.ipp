// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_columns.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/core/linkage.hpp>
#include <hetplan/place/device_memory.hpp>

namespace hetplan::place {

HETPLAN_INLINE placement_columns::placement_columns(const placement_table& t, const placement_rules& r, double unit, double most)
    : table(&t), rules(r), holds(t, r.contention), unit_s(unit), limit(most) {
  const device_memory empty(t);
  makespan = program.relaxation.add_column(1, 0, limit);
  for (std::size_t v = 0; v < t.size(); ++v) {
    row_terms one;
    for (std::size_t k = 0; k < t.devices(); ++k) {
      on_device.push_back(add_binary());
      const bool fits = empty.fits(v, k);
      if (!(time(v, k) <= limit) || !fits) upper(on(v, k)) = 0;
      one.emplace_back(on(v, k), 1);
    }
    add_row(std::move(one), 1, 1);
  }
  for (std::size_t v = 0; v < t.size(); ++v) start.push_back(add_column(0, limit));
  add_memory();
  find_transfers();
  find_paths();
  start.resize(nodes(), -1);
}

HETPLAN_INLINE int placement_columns::add_binary() {
  program.integers.push_back(add_column(0, 1));
  return program.integers.back();
}

HETPLAN_INLINE void placement_columns::add_row(row_terms terms, double lower, double upper_limit) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  program.relaxation.rows.push_back({std::move(terms), lower, upper_limit});
}

HETPLAN_INLINE void placement_columns::add_duration(row_terms& terms, std::size_t node, double sign) const {
  if (is_operator(node)) {
    for (std::size_t k = 0; k < table->devices(); ++k) {
      if (may_be_on(node, k)) terms.emplace_back(on(node, k), sign * time(node, k));
    }
  } else {
    for (const auto& w : transfer(node).ways) terms.emplace_back(w.column, sign * w.takes);
  }
}

HETPLAN_INLINE void placement_columns::forbid(const std::vector<std::size_t>& operators, std::size_t device) {
  row_terms all;
  for (const std::size_t v : operators) all.emplace_back(on(v, device), 1);
  add_row(std::move(all), -std::numeric_limits<double>::infinity(), static_cast<double>(operators.size()) - 1);
}

HETPLAN_INLINE const possible_transfer::way* placement_columns::way_of(const possible_transfer& x,
                                                                       const std::vector<std::size_t>& device) const {
  for (const std::uint32_t e : x.edges) {
    for (const auto& w : x.ways) {
      if (w.from == device[x.producer] && w.to == device[table->edges()[e].to]) return &w;
    }
  }
  return nullptr;
}

HETPLAN_INLINE bool placement_columns::precedes(std::size_t a, std::size_t b) const {
  const std::size_t v = is_operator(b) ? b : transfer(b).producer;
  if (is_operator(a)) return reaches(a, v) || (a == v && !is_operator(b));
  const auto& edges = transfer(a).edges;
  return std::all_of(edges.begin(), edges.end(), [&](std::uint32_t e) {
    const std::size_t reader = table->edges()[e].to;
    return reader == v || reaches(reader, v);
  });
}

HETPLAN_INLINE void placement_columns::find_paths() {
  const std::size_t n = table->size();
  reaches_.assign(n * n, 0);
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t v = table->order()[i];
    for (const std::uint32_t e : table->out_edges(v)) {
      const std::size_t w = table->edges()[e].to;
      reaches_[v * n + w] = 1;
      for (std::size_t u = 0; u < n; ++u) reaches_[v * n + u] |= reaches_[w * n + u];
    }
  }
}

HETPLAN_INLINE void placement_columns::add_memory() {
  const placement_table& t = *table;
  const double held = t.all_held_bytes();
  double working = 0;
  for (std::size_t v = 0; v < t.size(); ++v) working = std::max(working, t.working_bytes(v));
  for (std::size_t k = 0; k < t.devices(); ++k) {
    const double capacity = t.capacity_bytes(k);
    if (held + working <= capacity) continue;
    const double unit = capacity > 0 ? capacity : held + working;
    row_terms all;
    for (std::size_t v = 0; v < t.size(); ++v) all.emplace_back(on(v, k), t.held_bytes(v) / unit);
    for (const tied_tensor& x : t.tied()) {
      const int there = add_column(0, 1);
      all.emplace_back(there, x.bytes / unit);
      for (const std::size_t v : x.operators) add_row({{there, 1}, {on(v, k), -1}}, 0);
    }
    if (working > 0) {
      const int largest = add_column(0, std::numeric_limits<double>::infinity());
      all.emplace_back(largest, 1);
      for (std::size_t v = 0; v < t.size(); ++v) {
        if (t.working_bytes(v) > 0) add_row({{largest, 1}, {on(v, k), -t.working_bytes(v) / unit}}, 0);
      }
    }
    add_row(std::move(all), -std::numeric_limits<double>::infinity(), capacity / unit);
  }
}

HETPLAN_INLINE void placement_columns::find_transfers() {
  const placement_table& t = *table;
  const std::size_t d = t.devices();
  const auto add_way = [&](possible_transfer& x, std::uint32_t e, std::size_t from, std::size_t to) {
    const double takes = carried_s(t, rules.copies, e, from, to) / unit_s;
    if (from != to && takes <= limit) x.ways.push_back({from, to, takes, -1});
  };
  for (std::size_t v = 0; v < t.size(); ++v) {
    const auto out = t.out_edges(v);
    if (rules.copies == transfer_copies::per_edge) {
      for (const std::uint32_t e : out) {
        possible_transfer x{.producer = v, .edges = {e}, .ways = {}};
        for (std::size_t pair = 0; pair < d * d; ++pair) add_way(x, e, pair / d, pair % d);
        transfers.push_back(std::move(x));
      }
    } else if (!out.empty()) {
      for (std::size_t to = 0; to < d; ++to) {
        possible_transfer x{.producer = v, .to = to, .edges = {out.begin(), out.end()}, .ways = {}};
        for (std::size_t from = 0; from < d; ++from) add_way(x, out[0], from, to);
        transfers.push_back(std::move(x));
      }
    }
  }
}

}  // namespace hetplan::place
