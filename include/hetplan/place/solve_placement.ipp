// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/solve_placement.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace hetplan::place {

/// Adds Moirai's eqs. 4a, 4b, 6, 7 and 8 as the paper prints them, for comparison: a completion for every node, z and u for every
/// transfer, a big-M disjunction for every two operators on every device and every two transfers at every port. M^s = M^l = M^r is the
/// limit of the makespan, the least value that is always safe, since no start is below 0 and no completion above the limit.
/// Complexity  O(operators^2 x devices + transfers^2 x channels) rows.
/// Source      Moirai, section III-D. Deviations:
///             - Eq. 4a for direct successors; it implies that for indirect ones.
///             - Eqs. 6 and 8 once for every unordered pair: the other order has the same two rows with delta negated.
///             - Eq. 6 excludes pairs of which one is a successor of the other; so does eq. 8, in the augmented graph.
///             - Eq. 7: pairs of devices without a route have no u, and hence no two ends of an edge.
///             - Eq. 8 is printed for one port out and one port in per device, though the text speaks of channels. Channels per link
///               have the same rows with the u of a channel in place of z and x.
///             - Copies per device are ours: a node for each output and receiving device; a reader waits for its device's node.
void add_printed_rows(placement_columns& c);

namespace detail {

class printed_builder {
 public:
  explicit printed_builder(placement_columns& c) : c_(c), t_(*c.table), n_(t_.size()), d_(t_.devices()), large_(c.limit) {}

  void run() {
    for (std::size_t a = 0; a < c_.nodes(); ++a) {
      if (a >= n_) {
        c_.start[a] = c_.add_column(0, c_.limit);
        choose_channel(c_.transfers[a - n_]);
      }
      end_.push_back(c_.add_column(0, c_.limit));
      row_terms takes{{end_[a], 1}, {c_.start[a], -1}};  // eq. 4b, and the last row of eq. 7
      c_.add_duration(takes, a, -1);
      c_.add_row(std::move(takes), 0, 0);
      if (a < n_) c_.add_row({{c_.makespan, 1}, {end_[a], -1}}, 0);  // eq. 4
    }
    for (std::size_t a = n_; a < c_.nodes(); ++a) precede(a);
    for (std::size_t a = 0; a < c_.nodes(); ++a) {
      for (std::size_t b = a + 1; b < (a < n_ ? n_ : c_.nodes()); ++b) {
        if (c_.precedes(a, b) || c_.precedes(b, a)) continue;
        if (a < n_) share_device(a, b);
        else share_channels(a, b);
      }
    }
  }

 private:
  /// Adds z and u of a transfer, eq. 7.
  void choose_channel(possible_transfer& x) {
    x.needed = c_.add_binary();
    row_terms one{{x.needed, -1}};
    for (auto& w : x.ways) {
      w.column = c_.add_binary();
      one.emplace_back(w.column, 1);
    }
    c_.add_row(std::move(one), 0, 0);
    for (const std::uint32_t e : x.edges) {
      const std::size_t i = x.producer, j = t_.edges()[e].to;
      for (std::size_t k = 0; k < d_; ++k) {
        for (std::size_t l = 0; l < d_; ++l) {
          if (k == l || (c_.rules.copies == transfer_copies::per_device && l != x.to)) continue;
          row_terms chosen{{c_.on(i, k), -1}, {c_.on(j, l), -1}};
          const auto w = std::find_if(x.ways.begin(), x.ways.end(), [&](const auto& way) { return way.from == k && way.to == l; });
          if (w != x.ways.end()) chosen.emplace_back(w->column, 1);
          c_.add_row(std::move(chosen), -1);
        }
        if (c_.rules.copies == transfer_copies::per_device && k != x.to) continue;
        const int here = c_.on(i, k), there = c_.on(j, k);
        if (c_.rules.copies == transfer_copies::per_edge) {
          c_.add_row({{x.needed, 1}, {here, 1}, {there, 1}}, -infinite, 2);
          c_.add_row({{x.needed, 1}, {here, -1}, {there, 1}}, 0);
        }
        c_.add_row({{x.needed, 1}, {there, -1}, {here, 1}}, 0);
      }
    }
  }

  /// Adds eq. 4a around a transfer.
  void precede(std::size_t a) {
    const possible_transfer& x = c_.transfer(a);
    c_.add_row({{c_.start[a], 1}, {end_[x.producer], -1}}, 0);
    for (const std::uint32_t e : x.edges) {
      const std::size_t reader = t_.edges()[e].to;
      if (c_.rules.copies == transfer_copies::per_edge) {
        c_.add_row({{c_.start[reader], 1}, {end_[a], -1}}, 0);
        continue;
      }
      c_.add_row({{c_.start[reader], 1}, {end_[a], -1}, {c_.on(reader, x.to), -large_}}, -large_);
      // Every device has a transfer of the output, but this row is needed only once for each edge.
      if (x.to == 0) c_.add_row({{c_.start[reader], 1}, {end_[x.producer], -1}}, 0);
    }
  }

  /// Adds start of a >= end of b - M delta - M (what is missing), and the reverse with 1 - delta.
  void disjoint(std::size_t a, std::size_t b, int delta, const row_terms& missing, double constant) {
    row_terms a_behind{{c_.start[a], 1}, {end_[b], -1}, {delta, large_}}, b_behind{{c_.start[b], 1}, {end_[a], -1}, {delta, -large_}};
    for (const auto& [column, times] : missing) {
      a_behind.emplace_back(column, large_ * times);
      b_behind.emplace_back(column, large_ * times);
    }
    c_.add_row(std::move(a_behind), -large_ * constant);
    c_.add_row(std::move(b_behind), -large_ * (constant + 1));
  }

  /// Adds delta of two nodes, eqs. 6 and 8.
  [[nodiscard]] int add_delta(std::size_t a, std::size_t b) {
    const int delta = c_.add_binary();
    c_.orders.push_back({a, b, node_order::any_machine, delta, true});
    return delta;
  }

  /// Adds eq. 6 of two operators.
  void share_device(std::size_t a, std::size_t b) {
    const int delta = add_delta(a, b);
    for (std::size_t k = 0; k < d_; ++k) disjoint(a, b, delta, {{c_.on(a, k), -1}, {c_.on(b, k), -1}}, 2);
  }

  /// Adds eq. 8 of two transfers.
  void share_channels(std::size_t q, std::size_t r) {
    if (c_.holds.size() == 0) return;
    const possible_transfer &x = c_.transfer(q), &y = c_.transfer(r);
    const int delta = add_delta(q, r);
    if (c_.rules.contention == contention::one_port && c_.rules.copies == transfer_copies::per_edge) {
      const std::size_t a = x.producer, b = t_.edges()[x.edges[0]].to, c = y.producer, d = t_.edges()[y.edges[0]].to;
      for (std::size_t k = 0; k < d_; ++k) {
        for (const double leaves : {1.0, -1.0}) {
          row_terms missing{{x.needed, -1}, {y.needed, -1}};
          const auto add = [&](std::size_t v, double times) {
            const auto at = std::find_if(missing.begin(), missing.end(), [&](const auto& m) { return m.first == c_.on(v, k); });
            if (at == missing.end()) missing.emplace_back(c_.on(v, k), times);
            else at->second += times;
          };
          add(a, -leaves), add(c, -leaves), add(b, leaves), add(d, leaves);
          disjoint(q, r, delta, missing, 4);
        }
      }
      return;
    }
    for (std::size_t h = 0; h < c_.holds.size(); ++h) {
      row_terms missing;
      bool both = true;
      for (const possible_transfer* p : {&x, &y}) {
        const std::size_t before = missing.size();
        for (const auto& w : p->ways) {
          const auto held = c_.holds.of(w.from, w.to);
          if (std::binary_search(held.begin(), held.end(), h)) missing.emplace_back(w.column, -1);
        }
        both = both && missing.size() > before;
      }
      if (both) disjoint(q, r, delta, missing, 2);
    }
  }

  static constexpr double infinite = std::numeric_limits<double>::infinity();

  placement_columns& c_;
  const placement_table& t_;
  std::size_t n_, d_;
  double large_;          ///< M^s, M^l and M^r
  std::vector<int> end_;  ///< by node
};

}  // namespace detail

HETPLAN_INLINE void add_printed_rows(placement_columns& c) { detail::printed_builder(c).run(); }

namespace detail {

/// Limit of a program's makespan, in units. It exceeds 1 because a known schedule at a bound would leave a feasible region so thin that
/// solvers, which work within 1e-7, find it empty.
inline constexpr double makespan_limit = 1 + 1e-4;

/// Returns the sum of all operators and transfers at their slowest. If there is a placement, its operators in sequence take no longer.
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

/// Nodes of a program that a placement uses, and the machines that they hold.
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
  /// Returns the transfer that serves an edge.
  [[nodiscard]] std::size_t carrier(std::size_t e) const { return carrier_[e]; }
  /// Returns true if every edge between devices is carried.
  [[nodiscard]] bool complete() const {
    const auto edges = columns_.table->edges();
    for (std::size_t e = 0; e < edges.size(); ++e) {
      if (device_[edges[e].from] != device_[edges[e].to] && carrier_[e] == none) return false;
    }
    return true;
  }
  /// Returns the machines of a node; channels are numbered behind devices.
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
  /// Returns true if an order of the program applies to this placement.
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

/// Earliest times of a placement's nodes in a program's orders. Nodes without duration may be ordered in a cycle at one instant. Then the
/// one with the least time in the answer goes first.
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
  /// Returns the sort key of a node: first nodes that wait for nothing, then those that wait for orders alone.
  [[nodiscard]] std::tuple<bool, bool, double, std::size_t> key(std::size_t a) const {
    const int start = columns_.start[a];
    const double start_s = start < 0 ? 0 : value(start) * columns_.unit_s;
    return {paths_[a] > 0, orders_[a] > 0, start_s + placed_.takes_s(a) / 2, a};
  }

  const placement_columns& columns_;
  const placed_nodes& placed_;
  const std::vector<double>& x_;
  std::vector<std::vector<std::size_t>> after_;  ///< successors along paths, then in orders
  std::vector<std::size_t> path_ends_;
  std::vector<int> paths_, orders_;  ///< number of predecessors that a node waits for
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

}  // namespace hetplan::place

namespace hetplan::place::detail {

/// Returns the rules of a program, in which transfers hold their channels to the end, latencies included.
[[nodiscard]] HETPLAN_INLINE placement_rules rules_of_program(placement_rules r) {
  if (r.contention == contention::shared) r.contention = contention::per_link;
  return r;
}

/// Returns the known schedule under the program's rules, or none. Throws invalid_input if it breaks a rule.
[[nodiscard]] HETPLAN_INLINE operator_schedule checked_schedule(const placement_table& t, const placement_rules& r,
                                                                const operator_schedule& known) {
  if (!known.found()) return known;
  if (const auto fault = find_broken_rule(t, r, known)) throw invalid_input("solve_placement: the known schedule: " + *fault);
  return r.contention == contention::shared ? schedule_in_order(t, rules_of_program(r), sequence_of(t, known), known.device) : known;
}

HETPLAN_INLINE placement_questions::placement_questions(const placement_table& t, const placement_rules& r, const operator_schedule& known,
                                                        formulation f)
    : table_(t), rules_(rules_of_program(r)), shares_(r.contention == contention::shared), known_(shares_ ? known : operator_schedule()),
      best_(checked_schedule(t, r, known)), given_bound_s_(known.bound_s),
      program_(t, rules_, best_.makespan_s > 0 ? best_ : operator_schedule{}, f) {
  best_.status = {};
  best_.steps = 0;
  best_.bound_s = 0;
  if (best_.found() && best_.makespan_s <= 0) open_ = false;
  if (best_.found()) return;
  if (status none = refute_placements(t); !none.ok()) {
    open_ = false;
    best_.status = std::move(none);
  }
}

HETPLAN_INLINE void placement_questions::take(const milp_solution& s) {
  constexpr double tolerance = 1e-6;
  constexpr int most_overfilled = 100;
  best_.steps += s.nodes;
  const double unit_s = program_.unit_s();
  if (s.status == milp_status::infeasible && !best_.found()) {
    open_ = false;
    best_.status = {
        outcome::infeasible, "no placement keeps memory and routes",
        infeasibility_proof{named_problem(table_) + ", as the mixed-integer program's solver says", {}, std::max(1LL, best_.steps)}};
    return;
  }
  if (s.status == milp_status::infeasible) return end("the solver says that there is no schedule, but one is known");
  if (s.status == milp_status::unbounded) return end("the solver says that makespans are unbounded");
  if (s.status == milp_status::unsolved) {
    raise_bound(s.bound * unit_s);
    return end("the solver met a limit after " + std::to_string(best_.steps) + " nodes");
  }
  if (s.x.size() != problem().relaxation.objective.size()) return end("the solver's answer has another size than its problem");
  operator_schedule found = program_.read(s.x);
  if (!found.found()) return end("the solver's answer is no placement");
  const bool optimal = s.status == milp_status::optimal;
  const double claimed_s = s.objective * unit_s, bound_s = (optimal ? s.objective : s.bound) * unit_s;
  if (largest_overflow_bytes(table_, found.device) > 0) {
    raise_bound(bound_s);
    program_.forbid_overflow(found.device);
    if (++overfilled_ == most_overfilled) end("the solver's placements exceed memory");
    return;
  }
  HETPLAN_ASSERT(!find_broken_rule(table_, rules_, found));
  const bool confirmed = found.makespan_s <= claimed_s * (1 + tolerance);
  if (found.makespan_s < best_.makespan_s) {
    best_.device = std::move(found.device);
    best_.start_s = std::move(found.start_s);
    best_.transfers = std::move(found.transfers);
    best_.makespan_s = found.makespan_s;
  }
  if (!confirmed || bound_s > best_.makespan_s * (1 + tolerance)) return end("the schedule does not confirm what the solver says");
  raise_bound(optimal ? best_.makespan_s : bound_s);
  if (optimal) open_ = false;
  else end("the solver met a limit after " + std::to_string(best_.steps) + " nodes; the best so far");
}

HETPLAN_INLINE operator_schedule placement_questions::answer() && {
  if (shares_ && best_.found()) {
    if (known_.makespan_s < best_.makespan_s) {
      known_.status = std::move(best_.status);
      known_.steps = best_.steps;
      best_ = std::move(known_);
    }
    best_.bound_s = std::min(given_bound_s_, best_.makespan_s);
    return std::move(best_);
  }
  if (best_.found() && best_.status.ok()) best_.bound_s = best_.makespan_s;
  else if (best_.status.result != outcome::infeasible) raise_bound(given_bound_s_);
  return std::move(best_);
}

HETPLAN_INLINE void placement_questions::end(const std::string& why) {
  open_ = false;
  best_.status = {best_.found() ? outcome::stopped : outcome::none_found, "solve placement: " + why};
}

HETPLAN_INLINE void placement_questions::raise_bound(double bound_s) {
  best_.bound_s = std::max(best_.bound_s, std::min(bound_s, best_.makespan_s));
}

}  // namespace hetplan::place::detail
