// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_program.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/place/device_memory.hpp>
#include <hetplan/place/printed_rows.hpp>
#include <hetplan/place/tight_rows.hpp>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

/// Of a program, in units. More than 1: where the schedule that is known is at a bound, rows and a limit of 1 would leave so thin a slice
/// that solvers, which work within 1e-7, take it for none.
inline constexpr double makespan_limit = 1 + 1e-4;

/// Everything one after another on its slowest device: if any placement is possible, its operators in that order take no longer.
[[nodiscard]] HETPLAN_INLINE double serial_s(const placement_table& t, const placement_rules& r) {
  double sum = 0;
  const auto add_longest = [&](auto seconds, std::size_t choices) {
    double longest = 0;
    for (std::size_t i = 0; i < choices; ++i) {
      if (const double s = seconds(i); std::isfinite(s)) longest = std::max(longest, s);
    }
    sum += longest;
  };
  const std::size_t d = t.devices();
  for (std::size_t v = 0; v < t.size(); ++v) add_longest([&](std::size_t k) { return t.time_s(v, k); }, d);
  for (std::size_t e = 0; e < t.edges().size(); ++e)
    add_longest([&](std::size_t pair) { return carried_s(t, r.copies, e, pair / d, pair % d); }, d * d);
  return sum > 0 ? sum : 1;
}

/// What a placement makes of a program's nodes: which of them there are, and what they hold.
class placed_nodes {
 public:
  placed_nodes(const placement_columns& c, const std::vector<std::size_t>& device) : columns_(c), device_(device) {
    const placement_table& t = *c.table;
    const std::size_t n = t.size();
    for (std::size_t a = 0; a < c.nodes(); ++a) {
      ways_.push_back(c.is_operator(a) ? nullptr : c.way_of(c.transfer(a), device));
      there_.push_back(c.is_operator(a) || ways_[a] != nullptr);
    }
    carrier_.assign(t.edges().size(), none);
    for (std::size_t a = n; a < c.nodes(); ++a) {
      if (ways_[a] == nullptr) continue;
      for (const std::uint32_t e : c.transfer(a).edges) {
        if (device[t.edges()[e].to] == ways_[a]->to) carrier_[e] = a;
      }
    }
  }

  static constexpr std::size_t none = ~std::size_t{0};

  [[nodiscard]] bool there(std::size_t node) const { return there_[node]; }
  [[nodiscard]] const possible_transfer::way& way(std::size_t node) const { return *ways_[node]; }
  /// The transfer that serves an edge.
  [[nodiscard]] std::size_t carrier(std::size_t e) const { return carrier_[e]; }
  /// Is every edge between devices carried?
  [[nodiscard]] bool complete() const {
    const auto edges = columns_.table->edges();
    for (std::size_t e = 0; e < edges.size(); ++e) {
      if (device_[edges[e].from] != device_[edges[e].to] && carrier_[e] == none) return false;
    }
    return true;
  }
  /// Devices, and channels behind them.
  [[nodiscard]] std::vector<std::size_t> machines(std::size_t node) const {
    if (columns_.is_operator(node)) return {device_[node]};
    std::vector<std::size_t> held;
    for (const std::size_t h : columns_.holds.of(ways_[node]->from, ways_[node]->to)) held.push_back(columns_.table->devices() + h);
    return held;
  }
  [[nodiscard]] double takes_s(std::size_t node) const {
    if (columns_.is_operator(node)) return columns_.table->time_s(node, device_[node]);
    return carried_s(*columns_.table, columns_.rules.copies, columns_.transfer(node).edges[0], ways_[node]->from, ways_[node]->to);
  }
  /// Does an order of the program speak of this placement?
  [[nodiscard]] bool asks(const node_order& o) const {
    if (!there_[o.first] || !there_[o.second]) return false;
    const auto a = machines(o.first), b = machines(o.second);
    return std::any_of(a.begin(), a.end(), [&](std::size_t m) {
      return (o.machine == node_order::any_machine || o.machine == m) && std::find(b.begin(), b.end(), m) != b.end();
    });
  }

 private:
  const placement_columns& columns_;
  const std::vector<std::size_t>& device_;
  std::vector<const possible_transfer::way*> ways_;
  std::vector<char> there_;
  std::vector<std::size_t> carrier_;
};

/// The earliest times of a placement's nodes in a program's orders.
///
/// Nodes without duration may be ordered in a circle at one instant. Then the one whose time is least in the answer goes first.
class order_reader {
 public:
  order_reader(const placement_columns& c, const placed_nodes& p, const std::vector<double>& x)
      : columns_(c), placed_(p), x_(x), after_(c.nodes()), paths_(c.nodes(), 0), orders_(c.nodes(), 0), start_(c.nodes(), 0) {
    const placement_table& t = *c.table;
    for (std::size_t e = 0; e < t.edges().size(); ++e) {
      const auto [from, to, bytes] = t.edges()[e];
      if (const std::size_t a = p.carrier(e); a != placed_nodes::none) precede(a, to, paths_);
      else precede(from, to, paths_);
    }
    for (std::size_t a = t.size(); a < c.nodes(); ++a) {
      if (p.there(a)) precede(c.transfer(a).producer, a, paths_);
    }
    path_ends_.resize(c.nodes());
    for (std::size_t a = 0; a < c.nodes(); ++a) path_ends_[a] = after_[a].size();
    for (const node_order& o : c.orders) {
      if (!p.asks(o)) continue;
      if (o.column == node_order::always || value(o.column) > 0.5) precede(o.first, o.second, orders_);
      else if (o.reverses) precede(o.second, o.first, orders_);
    }
  }

  [[nodiscard]] std::vector<double> starts_s() && {
    std::vector<double> free_s(columns_.table->devices() + columns_.holds.size(), 0);
    std::vector<std::size_t> left;
    for (std::size_t a = 0; a < columns_.nodes(); ++a) {
      if (placed_.there(a)) left.push_back(a);
    }
    while (!left.empty()) {
      const auto next = std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
      const std::size_t a = *next;
      left.erase(next);
      const auto machines = placed_.machines(a);
      for (const std::size_t m : machines) start_[a] = std::max(start_[a], free_s[m]);
      const double end_s = start_[a] + placed_.takes_s(a);
      for (const std::size_t m : machines) free_s[m] = end_s;
      for (std::size_t i = 0; i < after_[a].size(); ++i) {
        const std::size_t b = after_[a][i];
        const bool path = i < path_ends_[a];
        --(path ? paths_ : orders_)[b];
        if (path) start_[b] = std::max(start_[b], end_s);
      }
    }
    return std::move(start_);
  }

 private:
  void precede(std::size_t a, std::size_t b, std::vector<int>& waits) {
    after_[a].push_back(b);
    ++waits[b];
  }
  [[nodiscard]] double value(int column) const { return x_[static_cast<std::size_t>(column)]; }
  /// Smaller goes first: what waits for nothing; then what waits for orders alone.
  [[nodiscard]] std::tuple<bool, bool, double, std::size_t> key(std::size_t a) const {
    const int start = columns_.start[a];
    const double start_s = start < 0 ? 0 : value(start) * columns_.unit_s;
    return {paths_[a] > 0, orders_[a] > 0, start_s + placed_.takes_s(a) / 2, a};
  }

  const placement_columns& columns_;
  const placed_nodes& placed_;
  const std::vector<double>& x_;
  std::vector<std::vector<std::size_t>> after_;  ///< along paths, then in orders
  std::vector<std::size_t> path_ends_;
  std::vector<int> paths_, orders_;  ///< that a node waits for
  std::vector<double> start_;
};

}  // namespace detail

HETPLAN_INLINE placement_program::placement_program(const placement_table& t, const placement_rules& r, const operator_schedule& known,
                                                    formulation f)
    : columns_(t, r, known.found() ? known.makespan_s : detail::serial_s(t, r), detail::makespan_limit) {
  if (f == formulation::printed) add_printed_rows(columns_);
  else add_tight_rows(columns_);
}

HETPLAN_INLINE std::vector<double> placement_program::start_of(const operator_schedule& s) const {
  const placement_columns& c = columns_;
  const placement_table& t = *c.table;
  std::vector<double> x(c.program.relaxation.objective.size(), 0);
  const auto set = [&](int column) {
    if (column >= 0) x[static_cast<std::size_t>(column)] = 1;
  };
  const detail::placed_nodes placed(c, s.device);
  std::vector<std::tuple<double, double, std::size_t>> when(c.nodes());
  for (std::size_t v = 0; v < t.size(); ++v) {
    set(c.on(v, s.device[v]));
    when[v] = {s.start_s[v], s.start_s[v] + t.time_s(v, s.device[v]), v};
  }
  for (std::size_t a = t.size(); a < c.nodes(); ++a) {
    if (!placed.there(a)) continue;
    set(c.transfer(a).needed);
    set(placed.way(a).column);
  }
  for (const scheduled_transfer& y : s.transfers) {
    if (const std::size_t a = placed.carrier(y.edge); a != detail::placed_nodes::none) when[a] = {y.start_s, y.end_s, a};
  }
  for (const node_order& o : c.orders) {
    if (placed.asks(o) && when[o.first] < when[o.second]) set(o.column);
  }
  return x;
}

HETPLAN_INLINE operator_schedule placement_program::read(const std::vector<double>& x) const {
  const placement_columns& c = columns_;
  const placement_table& t = *c.table;
  std::vector<std::size_t> device;
  for (std::size_t v = 0; v < t.size(); ++v) {
    std::size_t k = 0;
    while (k < t.devices() && !(x[static_cast<std::size_t>(c.on(v, k))] > 0.5)) ++k;
    if (k == t.devices() || !std::isfinite(t.time_s(v, k))) return {};
    device.push_back(k);
  }
  const detail::placed_nodes placed(c, device);
  if (!placed.complete()) return {};
  operator_schedule s;
  s.device = device;
  s.start_s = detail::order_reader(c, placed, x).starts_s();
  s.makespan_s = 0;
  for (std::size_t a = t.size(); a < c.nodes(); ++a) {
    if (!placed.there(a)) continue;
    const auto& edges = c.transfer(a).edges;
    const std::uint32_t e = *std::find_if(edges.begin(), edges.end(), [&](std::uint32_t i) { return placed.carrier(i) == a; });
    s.transfers.push_back({e, placed.way(a).from, placed.way(a).to, s.start_s[a], s.start_s[a] + placed.takes_s(a)});
  }
  s.start_s.resize(t.size());
  for (std::size_t v = 0; v < t.size(); ++v) s.makespan_s = std::max(s.makespan_s, s.start_s[v] + t.time_s(v, device[v]));
  sort_transfers(s.transfers);
  return s;
}

HETPLAN_INLINE bool placement_program::forbid_overflow(const std::vector<std::size_t>& device) {
  const placement_table& t = *columns_.table;
  device_memory memory(t);
  for (const std::size_t v : t.order()) memory.add(v, device[v]);
  bool any = false;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (memory.free_bytes(k) >= 0) continue;
    any = true;
    std::vector<std::size_t> held;
    for (std::size_t v = 0; v < t.size(); ++v) {
      if (device[v] == k && t.shared_out_bytes(v) + t.working_bytes(v) > 0) held.push_back(v);
    }
    columns_.forbid(held, k);
  }
  return any;
}

}  // namespace HETPLAN_NAMESPACE::place
