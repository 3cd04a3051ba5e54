// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/tight_rows.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/core/version.hpp>

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

/// Windows of operators on devices within a program's limit. Each reader of an output is on the best device for that output, as if paths
/// did not meet again. A device on which an operator leaves no room for the others is lost to it: the column is fixed.
///
/// Shapes      head, tail: operators x devices, in the program's unit.
/// Complexity  O(edges x devices^2).   Source  ours; see tails_s.
struct placement_windows {
  explicit placement_windows(placement_columns& c);

  std::vector<double> head;  ///< earliest start
  std::vector<double> tail;  ///< least time from the start to the end of the schedule; infinite: not on this device
  double path = 0;           ///< lower bound on the makespan; infinite if nothing keeps the limit
};

HETPLAN_INLINE placement_windows::placement_windows(placement_columns& c) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const placement_table& t = *c.table;
  const std::size_t n = t.size(), d = t.devices();
  const auto carried = [&](std::size_t e, std::size_t k, std::size_t l) { return carried_s(t, c.rules.copies, e, k, l) / c.unit_s; };
  head.assign(n * d, 0);
  tail.assign(n * d, never);
  for (const std::size_t v : t.order()) {
    for (std::size_t k = 0; k < d; ++k) {
      for (const std::uint32_t e : t.in_edges(v)) {
        const std::size_t u = t.edges()[e].from;
        double best = never;
        for (std::size_t j = 0; j < d; ++j) {
          if (c.may_be_on(u, j)) best = std::min(best, head[u * d + j] + c.time(u, j) + carried(e, j, k));
        }
        head[v * d + k] = std::max(head[v * d + k], best);
      }
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t v = t.order()[i];
    double through = never;
    for (std::size_t k = 0; k < d; ++k) {
      double behind = 0;
      for (const std::uint32_t e : t.out_edges(v)) {
        double best = never;
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, carried(e, k, j) + tail[t.edges()[e].to * d + j]);
        behind = std::max(behind, best);
      }
      const double whole = c.may_be_on(v, k) ? head[v * d + k] + c.time(v, k) + behind : never;
      if (whole <= c.limit) tail[v * d + k] = c.time(v, k) + behind;
      else c.upper(c.on(v, k)) = 0;
      through = std::min(through, whole);
    }
    path = std::max(path, through);
  }
}

/// Nodes without duration on any device at the ends of a graph, such as virtual sources and sinks. Those that wait only for such nodes
/// may come first on their machines, and those that only such nodes wait for may come last. Among themselves they follow paths.
/// Complexity  O(operators x devices + edges x devices^2).   Source  ours: moving them there delays nothing.
class instant_nodes {
 public:
  explicit instant_nodes(const placement_columns& c);

  [[nodiscard]] bool any_of(std::size_t a, std::size_t b) const { return side_[a] != 0 || side_[b] != 0; }
  /// Returns the order of two nodes, at least one of which is an instant node.
  [[nodiscard]] node_order order_of(std::size_t a, std::size_t b) const;

 private:
  std::vector<int> side_;          ///< by node; -1: first; 1: last
  std::vector<std::size_t> rank_;  ///< by node; grows along paths
};

HETPLAN_INLINE instant_nodes::instant_nodes(const placement_columns& c) : side_(c.nodes(), 0), rank_(c.nodes(), 0) {
  const placement_table& t = *c.table;
  const std::size_t n = t.size(), d = t.devices();
  const auto takes_none = [&](std::size_t v) {
    for (std::size_t k = 0; k < d; ++k) {
      if (c.may_be_on(v, k) && c.time(v, k) > 0) return false;
    }
    return true;
  };
  const auto carries_none = [&](std::uint32_t e) {
    for (std::size_t pair = 0; pair < d * d; ++pair) {
      if (const double s = carried_s(t, c.rules.copies, e, pair / d, pair % d); s > 0 && std::isfinite(s)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t v = t.order()[i];
    const auto in = t.in_edges(v);
    rank_[v] = 2 * i;
    const auto at_once = [&](std::uint32_t e) { return carries_none(e) && side_[t.edges()[e].from] < 0; };
    if (takes_none(v) && std::all_of(in.begin(), in.end(), at_once)) side_[v] = -1;
  }
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t v = t.order()[i];
    const auto out = t.out_edges(v);
    const auto at_once = [&](std::uint32_t e) { return carries_none(e) && side_[t.edges()[e].to] > 0; };
    if (side_[v] == 0 && takes_none(v) && std::all_of(out.begin(), out.end(), at_once)) side_[v] = 1;
  }
  for (std::size_t a = n; a < c.nodes(); ++a) {
    const possible_transfer& x = c.transfer(a);
    const auto read_last = [&](std::uint32_t e) { return side_[t.edges()[e].to] > 0; };
    rank_[a] = rank_[x.producer] + 1;
    if (!std::all_of(x.edges.begin(), x.edges.end(), carries_none)) continue;
    if (side_[x.producer] < 0) side_[a] = -1;
    else if (std::all_of(x.edges.begin(), x.edges.end(), read_last)) side_[a] = 1;
  }
}

HETPLAN_INLINE node_order instant_nodes::order_of(std::size_t a, std::size_t b) const {
  const bool back = std::pair(side_[b], rank_[b]) < std::pair(side_[a], rank_[a]);
  return {back ? b : a, back ? a : b, node_order::any_machine, node_order::always};
}

namespace detail {

class tight_builder {
 public:
  explicit tight_builder(placement_columns& c)
      : c_(c), t_(*c.table), n_(t_.size()), d_(t_.devices()), machines_(d_), window_(c), instants_(c), uses_(c.nodes()) {}

  void run() {
    if (!(window_.path <= c_.limit)) return;  // already infeasible
    for (std::size_t v = 0; v < n_; ++v) keep_in_window(v);
    for (std::size_t e = 0; e < t_.edges().size(); ++e) add_flow(e);
    for (std::size_t v = 0; v < n_; ++v) {
      for (std::size_t k = 0; k < d_; ++k) {
        if (!c_.may_be_on(v, k)) continue;
        uses_[v].push_back({k, {{c_.on(v, k), 1}}, {{c_.on(v, k), c_.time(v, k)}}, c_.time(v, k), head(v, k), tail(v, k) - c_.time(v, k)});
      }
    }
    if (c_.holds.size() > 0) add_transfers();
    const std::size_t timed = c_.holds.size() > 0 ? c_.nodes() : n_;
    ordered_.assign(timed * machines_, {});
    for (std::size_t a = 0; a < timed; ++a) {
      for (std::size_t b = a + 1; b < (a < n_ ? n_ : timed); ++b) {
        if (c_.precedes(a, b) || c_.precedes(b, a)) continue;
        if (instants_.any_of(a, b)) c_.orders.push_back(instants_.order_of(a, b));
        else if (a < n_) order_operators(a, b);
        else order_transfers(a, b);
      }
    }
    for (std::size_t a = 0; a < timed; ++a) {
      for (std::size_t m = a < n_ ? 0 : d_; m < machines_; ++m) add_loads_around(a, m);
    }
    for (std::size_t m = 0; m < machines_; ++m) add_load(m);
  }

 private:
  /// Use of a machine by a node.
  struct use {
    std::size_t machine;
    row_terms used, load;
    double least;             ///< lower bound on the load
    double earliest, behind;  ///< earliest start; least time after the end
  };
  /// Nodes that an order may put before or behind a node on a machine.
  struct ordered {
    struct part {
      int column;
      const use* other;
    };
    std::vector<part> before, behind;
  };

  [[nodiscard]] double carried(std::size_t e, std::size_t k, std::size_t l) const {
    return carried_s(t_, c_.rules.copies, e, k, l) / c_.unit_s;
  }
  [[nodiscard]] double head(std::size_t v, std::size_t k) const { return window_.head[v * d_ + k]; }
  [[nodiscard]] double tail(std::size_t v, std::size_t k) const { return window_.tail[v * d_ + k]; }

  void keep_in_window(std::size_t v) {
    row_terms after_head{{c_.start[v], 1}}, before_tail{{c_.makespan, 1}, {c_.start[v], -1}};
    for (std::size_t k = 0; k < d_; ++k) {
      if (!c_.may_be_on(v, k)) continue;
      after_head.emplace_back(c_.on(v, k), -head(v, k));
      before_tail.emplace_back(c_.on(v, k), -tail(v, k));
    }
    c_.add_row(std::move(after_head), 0);
    c_.add_row(std::move(before_tail), 0);
  }

  [[nodiscard]] int& flow(std::size_t e, std::size_t k, std::size_t l) { return flow_[(e * d_ + k) * d_ + l]; }

  /// Adds columns for the flow of an edge from device to device, -1 if there is no room. Its margins are the devices of its ends.
  void add_flow(std::size_t e) {
    const auto [from, to, bytes] = t_.edges()[e];
    flow_.resize((e + 1) * d_ * d_, -1);
    row_terms data{{c_.start[to], 1}, {c_.start[from], -1}};
    std::vector<row_terms> out(d_), in(d_);
    for (std::size_t k = 0; k < d_; ++k) {
      for (std::size_t l = 0; l < d_; ++l) {
        if (!c_.may_be_on(from, k) || !c_.may_be_on(to, l)) continue;
        const double takes = c_.time(from, k) + carried(e, k, l);
        if (!(head(from, k) + takes + tail(to, l) <= c_.limit)) continue;
        const int f = flow(e, k, l) = c_.add_column(0, 1);
        data.emplace_back(f, -takes);
        out[k].emplace_back(f, 1);
        in[l].emplace_back(f, 1);
      }
    }
    for (std::size_t k = 0; k < d_; ++k) {
      out[k].emplace_back(c_.on(from, k), -1);
      in[k].emplace_back(c_.on(to, k), -1);
      c_.add_row(std::move(out[k]), 0, 0);
      c_.add_row(std::move(in[k]), 0, 0);
    }
    c_.add_row(std::move(data), 0);
  }

  /// Adds ways, starts and channels of transfers. Channels of the same pairs of devices are one machine.
  void add_transfers() {
    std::vector<std::vector<std::size_t>> pairs_of(c_.holds.size());
    for (std::size_t pair = 0; pair < d_ * d_; ++pair) {
      for (const std::size_t h : c_.holds.of(pair / d_, pair % d_)) pairs_of[h].push_back(pair);
    }
    for (std::size_t h = 0; h < pairs_of.size(); ++h) {
      const auto alike = [&](std::size_t other) { return pairs_of[other] == pairs_of[h]; };
      if (!pairs_of[h].empty() && std::none_of(channel_.begin(), channel_.end(), alike)) channel_.push_back(h);
    }
    machines_ += channel_.size();
    for (std::size_t a = n_; a < c_.nodes(); ++a) {
      possible_transfer& x = c_.transfers[a - n_];
      add_ways(x);
      c_.start[a] = c_.add_column(0, c_.limit);
      row_terms ready{{c_.start[a], 1}, {c_.start[x.producer], -1}};
      c_.add_duration(ready, x.producer, -1);
      c_.add_row(std::move(ready), 0);
      double earliest = never, behind = never;
      for (std::size_t k = 0; k < d_; ++k) earliest = std::min(earliest, head(x.producer, k) + c_.time(x.producer, k));
      for (const std::uint32_t e : x.edges) {
        deliver(a, e);
        for (std::size_t k = 0; k < d_; ++k) behind = std::min(behind, tail(t_.edges()[e].to, k));
      }
      for (std::size_t m = 0; m < channel_.size(); ++m) {
        use u{d_ + m, {}, {}, never, earliest, behind};
        for (const auto& w : x.ways) {
          const auto& pairs = pairs_of[channel_[m]];
          if (!std::binary_search(pairs.begin(), pairs.end(), w.from * d_ + w.to)) continue;
          u.used.emplace_back(w.column, 1);
          u.load.emplace_back(w.column, w.takes);
          u.least = std::min(u.least, w.takes);
        }
        if (!u.used.empty()) uses_[a].push_back(std::move(u));
      }
    }
  }

  /// Adds the ways of a transfer: the flow of its edge; with copies per device, a way is taken if any reader's flow takes it.
  void add_ways(possible_transfer& x) {
    for (auto& w : x.ways) {
      if (c_.rules.copies == transfer_copies::per_edge) {
        w.column = flow(x.edges[0], w.from, w.to);
        continue;
      }
      for (const std::uint32_t e : x.edges) {
        const int f = flow(e, w.from, w.to);
        if (f < 0) continue;
        if (w.column < 0) {
          w.column = c_.add_column(0, 1);
          c_.add_row({{c_.on(x.producer, w.from), 1}, {w.column, -1}}, 0);
        }
        c_.add_row({{w.column, 1}, {f, -1}}, 0);
      }
    }
    std::erase_if(x.ways, [](const auto& w) { return w.column < 0; });
  }

  /// Adds the wait of an edge's reader for the transfer, if that transfer serves the edge.
  void deliver(std::size_t a, std::uint32_t e) {
    row_terms there{{c_.start[t_.edges()[e].to], 1}, {c_.start[a], -1}};
    const bool surely = c_.rules.copies == transfer_copies::per_edge;
    for (const auto& w : c_.transfer(a).ways) {
      if (const int f = flow(e, w.from, w.to); f >= 0) there.emplace_back(f, -w.takes - (surely ? 0 : c_.limit));
    }
    c_.add_row(std::move(there), surely ? 0 : -c_.limit);
  }

  /// Returns a new binary that puts one node before the other on a machine.
  [[nodiscard]] int add_order(std::size_t v, std::size_t w, const use& first, const use& second) {
    const std::size_t m = first.machine;
    const int column = c_.add_binary();
    if (!(first.earliest + first.least + second.least + second.behind <= c_.limit)) c_.upper(column) = 0;
    c_.orders.push_back({v, w, m < d_ ? m : d_ + channel_[m - d_], column});
    ordered_[w * machines_ + m].before.push_back({column, &first});
    ordered_[v * machines_ + m].behind.push_back({column, &second});
    return column;
  }

  /// Adds rows for one of two orders if both nodes use the machine, and for none if one of them does not.
  void one_of(int there, int back, const use& a, const use& b) {
    row_terms if_both{{there, 1}, {back, 1}};
    for (const use* u : {&a, &b}) {
      row_terms unless{{there, 1}, {back, 1}};
      for (const auto& [column, one] : u->used) {
        unless.emplace_back(column, -one);
        if_both.emplace_back(column, -one);
      }
      c_.add_row(std::move(unless), -never, 0);
    }
    c_.add_row(std::move(if_both), -1);
  }

  /// Orders two operators with one row for each direction, since an operator is on one device. M is the overlap of windows by device.
  void order_operators(std::size_t a, std::size_t b) {
    row_terms there{{c_.start[b], 1}, {c_.start[a], -1}}, back{{c_.start[a], 1}, {c_.start[b], -1}};
    const auto in_windows = [&](row_terms& row, std::size_t v, std::size_t w) {
      for (const use& u : uses_[v]) row.emplace_back(c_.on(v, u.machine), c_.limit - u.behind - u.least);
      for (const use& u : uses_[w]) row.emplace_back(c_.on(w, u.machine), -u.earliest);
    };
    in_windows(there, a, b);
    in_windows(back, b, a);
    for (const use& x : uses_[a]) {
      for (const use& y : uses_[b]) {
        if (x.machine != y.machine) continue;
        const int first = add_order(a, b, x, y), second = add_order(b, a, y, x);
        there.emplace_back(first, x.behind + y.earliest - c_.limit);
        back.emplace_back(second, y.behind + x.earliest - c_.limit);
        one_of(first, second, x, y);
      }
    }
    c_.add_row(std::move(there), 0);
    c_.add_row(std::move(back), 0);
  }

  /// Orders two transfers with a row for each order, since a transfer may hold several channels at once.
  void order_transfers(std::size_t a, std::size_t b) {
    const auto order = [&](std::size_t v, std::size_t w, const use& first, const use& second) {
      const int column = add_order(v, w, first, second);
      const double overlap = std::max(0.0, c_.limit - first.behind - second.earliest);
      row_terms after{{c_.start[w], 1}, {c_.start[v], -1}, {column, -overlap}};
      c_.add_duration(after, v, -1);
      c_.add_row(std::move(after), -overlap);
      return column;
    };
    for (const use& x : uses_[a]) {
      for (const use& y : uses_[b]) {
        if (x.machine == y.machine) one_of(order(a, b, x, y), order(b, a, y, x), x, y);
      }
    }
  }

  /// Adds the loads that paths and orders put before and behind a node on its machine.
  void add_loads_around(std::size_t a, std::size_t m) {
    row_terms before{{c_.start[a], 1}}, behind{{c_.makespan, 1}, {c_.start[a], -1}};
    c_.add_duration(behind, a, -1);
    double sooner = never, later = never;
    for (const use& u : uses_[a]) {
      sooner = std::min(sooner, u.earliest);
      later = std::min(later, u.behind);
    }
    if (uses_[a].empty()) return;
    int sides[2] = {0, 0};
    const auto subtract = [](row_terms& row, const use& u) {
      for (const auto& [column, load] : u.load) row.emplace_back(column, -load);
    };
    for (std::size_t b = 0; b < uses_.size(); ++b) {
      const auto u = std::find_if(uses_[b].begin(), uses_[b].end(), [&](const use& x) { return x.machine == m; });
      if (b == a || u == uses_[b].end()) continue;
      if (c_.precedes(b, a)) subtract(before, *u), sooner = std::min(sooner, u->earliest), ++sides[0];
      if (c_.precedes(a, b)) subtract(behind, *u), later = std::min(later, u->behind), ++sides[1];
    }
    for (const auto& [column, u] : ordered_[a * machines_ + m].before) {
      before.emplace_back(column, -u->least);
      sooner = std::min(sooner, u->earliest);
      ++sides[0];
    }
    for (const auto& [column, u] : ordered_[a * machines_ + m].behind) {
      behind.emplace_back(column, -u->least);
      later = std::min(later, u->behind);
      ++sides[1];
    }
    if (sides[0] > 1) c_.add_row(std::move(before), sooner);  // a single node adds nothing to its path
    if (sides[1] > 1) c_.add_row(std::move(behind), later);
  }

  void add_load(std::size_t m) {
    row_terms all{{c_.makespan, 1}};
    double sooner = never, later = never;
    for (const auto& uses : uses_) {
      for (const use& u : uses) {
        if (u.machine != m) continue;
        for (const auto& [column, load] : u.load) all.emplace_back(column, -load);
        sooner = std::min(sooner, u.earliest);
        later = std::min(later, u.behind);
      }
    }
    if (all.size() > 2) c_.add_row(std::move(all), std::min(sooner + later, window_.path));
  }

  static constexpr double never = std::numeric_limits<double>::infinity();

  placement_columns& c_;
  const placement_table& t_;
  std::size_t n_, d_, machines_;
  placement_windows window_;
  instant_nodes instants_;
  std::vector<int> flow_;             ///< edges x devices x devices
  std::vector<std::size_t> channel_;  ///< by machine behind the devices
  std::vector<std::vector<use>> uses_;
  std::vector<ordered> ordered_;  ///< nodes x machines
};

}  // namespace detail

HETPLAN_INLINE void add_tight_rows(placement_columns& c) { detail::tight_builder(c).run(); }

}  // namespace hetplan::place
