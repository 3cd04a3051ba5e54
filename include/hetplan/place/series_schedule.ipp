// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/series_schedule.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/relaxed_placement.hpp>

namespace hetplan::place {

namespace detail {

/// Longest path of a table, and the position of all other operators beside it.
class beside_a_path {
 public:
  explicit beside_a_path(const placement_table& t) : table_(t), up_(t.size(), -1), down_(t.size()) {
    find_path();
    const auto length = static_cast<std::int64_t>(path_.size());
    std::fill(down_.begin(), down_.end(), length);
    for (std::int64_t i = 0; i < length; ++i) up_[path_[at(i)]] = down_[path_[at(i)]] = i;
    for (const std::size_t v : t.order()) {
      for (const std::uint32_t e : t.in_edges(v)) up_[v] = std::max(up_[v], up_[t.edges()[e].from]);
    }
    for (std::size_t i = t.size(); i-- > 0;) {
      const std::size_t v = t.order()[i];
      for (const std::uint32_t e : t.out_edges(v)) down_[v] = std::min(down_[v], down_[t.edges()[e].to]);
    }
    measure();
  }

  [[nodiscard]] const std::vector<std::size_t>& path() const { return path_; }
  /// Returns the distinct amounts of work parallel to an operator of the path, ascending [s].
  [[nodiscard]] std::vector<double> levels() const {
    std::vector<double> all(beside_s_.begin(), beside_s_.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  /// Returns the parts if operators with at most so much parallel work are milestones, and how much of all work is left out [s].
  [[nodiscard]] std::pair<series_parts, double> cut(double most_beside_s) const {
    series_parts s;
    std::vector<std::size_t> before(path_.size() + 1, 0);  // milestones on the path before each index
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const bool milestone = beside_s_[i] <= most_beside_s;
      if (milestone) s.milestones.push_back(path_[i]);
      before[i + 1] = before[i] + milestone;
    }
    // Number of milestones strictly between two indices of the path.
    const auto between = [&](std::int64_t after, std::int64_t until) {
      return until <= after ? 0 : before[at(until)] - before[at(after + 1)];
    };
    std::vector<char> is_side(table_.size(), 0);
    s.parts.resize(s.milestones.size() + 1);
    double dropped_s = 0;
    for (const std::size_t v : table_.order()) {
      if (up_[v] == down_[v] && beside_s_[at(up_[v])] <= most_beside_s) continue;
      if (between(up_[v], down_[v]) > 0 && up_[v] != down_[v]) {
        is_side[v] = 1;
        s.sides.push_back(v);
        dropped_s += table_.fastest_s(v);
      } else {
        s.parts[before[at(up_[v] + 1)]].push_back(v);
      }
    }
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [u, w, size] = table_.edges()[e];
      if (is_side[u] || is_side[w] || between(down_[u] - (up_[u] != down_[u]), up_[w] + (up_[w] != down_[w])) == 0) continue;
      ++s.crossing_edges;
      dropped_s += mean_transfer_s(table_, e);
    }
    return {std::move(s), dropped_s};
  }

 private:
  [[nodiscard]] static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void find_path() {
    std::vector<std::pair<double, std::size_t>> longest(table_.size());  // (seconds, operators) from here on
    std::vector<std::size_t> next(table_.size(), table_.size());
    std::size_t first = table_.size();
    for (std::size_t i = table_.size(); i-- > 0;) {
      const std::size_t v = table_.order()[i];
      std::pair<double, std::size_t> rest{0, 0};
      for (const std::uint32_t e : table_.out_edges(v)) {
        const std::size_t w = table_.edges()[e].to;
        if (next[v] != table_.size() && !(longest[w] > rest)) continue;
        rest = longest[w];
        next[v] = w;
      }
      const double own_s = std::isfinite(table_.fastest_s(v)) ? table_.fastest_s(v) : 0;
      longest[v] = {rest.first + own_s, rest.second + 1};
      if (first == table_.size() || longest[v] >= longest[first]) first = v;
    }
    for (std::size_t v = first; v != table_.size(); v = next[v]) path_.push_back(v);
  }

  /// Measures the work that is neither before nor behind each operator of the path, and the edges that bypass the operator.
  void measure() {
    std::vector<double> change(path_.size() + 1, 0);
    std::vector<std::int64_t> count(path_.size() + 1, 0);
    const auto add = [&](std::int64_t first, std::int64_t last, double s) {
      if (last < first) return;
      change[at(first)] += s;
      change[at(last) + 1] -= s;
      ++count[at(first)];
      --count[at(last) + 1];
    };
    for (std::size_t v = 0; v < table_.size(); ++v) {
      if (up_[v] != down_[v]) add(up_[v] + 1, down_[v] - 1, std::isfinite(table_.fastest_s(v)) ? table_.fastest_s(v) : 0);
    }
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [u, w, size] = table_.edges()[e];
      const std::int64_t first = down_[u] + (up_[u] == down_[u]), last = up_[w] - (up_[w] == down_[w]);
      if (first <= last) add(first, last, mean_transfer_s(table_, e));
    }
    double now_s = 0;
    std::int64_t beside = 0;
    for (std::size_t i = 0; i < path_.size(); ++i) {
      now_s += change[i];
      beside += count[i];
      // A sum that rose and fell again is not quite 0, and operators without duration also count as parallel.
      beside_s_.push_back(beside == 0 ? 0 : std::max(now_s, std::numeric_limits<double>::min()));
    }
  }

  const placement_table& table_;
  std::vector<std::size_t> path_;
  std::vector<std::int64_t> up_, down_;  ///< by operator: index of the last path operator before it, of the first behind it
  std::vector<double> beside_s_;         ///< by index on the path
};

}  // namespace detail

HETPLAN_INLINE series_parts find_series_parts(const placement_table& t, const series_options& options) {
  const detail::beside_a_path beside(t);
  double all_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) all_s += t.fastest_s(v);
  const auto largest = [](const series_parts& s) {
    std::size_t most = 0;
    for (const auto& part : s.parts) most = std::max(most, part.size());
    return most;
  };
  series_parts best;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  std::vector<double> levels = beside.levels();
  constexpr std::size_t most_levels = 16;
  for (std::size_t i = 0; i < std::min(levels.size(), most_levels) && smallest > options.wanted_operators; ++i) {
    auto [s, dropped_s] = beside.cut(levels[i]);
    if (levels[i] > 0 && dropped_s > options.most_dropped * all_s) break;
    if (largest(s) >= smallest) continue;
    smallest = largest(s);
    best = std::move(s);
  }
  if (best.parts.empty()) best.parts.emplace_back(t.order().begin(), t.order().end());
  return best;
}

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

/// Returns the operators of a part by number, with their positions in the part.
[[nodiscard]] HETPLAN_INLINE std::vector<std::pair<std::size_t, std::size_t>> places_in(const part_of_series& p) {
  std::vector<std::pair<std::size_t, std::size_t>> place;
  for (std::size_t i = 0; i < p.operators.size(); ++i) place.emplace_back(p.operators[i], i);
  sort_stably(place);
  return place;
}
/// Returns the position of an operator; place.size() if it is not in the part.
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

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::uint64_t fingerprint(const placement_data& d) {
  std::uint64_t h = d.edges.size();
  const auto add = [&](std::uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29; };
  for (const double s : d.time_s) add(std::bit_cast<std::uint64_t>(s));
  for (const double s : d.edge_time_s) add(std::bit_cast<std::uint64_t>(s));
  for (const operator_edge& e : d.edges) add(e.from * 1'000'003 + e.to), add(std::bit_cast<std::uint64_t>(e.bytes));
  return h;
}

}  // namespace detail

HETPLAN_INLINE known_parts::known_parts(const placement_table& t, const placement_rules& r, const series_parts& s,
                                        const series_search_options& o)
    : table_(t), rules_(r), series_(s), options_(o), parts_(list_parts(s)), left_(o.steps) {
  keyed<std::vector<std::size_t>> alike;
  for (const part_of_series& p : parts_) {
    placement_data data = part_data(t, p);
    auto& candidates = alike[{detail::fingerprint(data)}];
    const auto it = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t k) {
      return kinds_[k].like.entry == p.entry && kinds_[k].like.exit == p.exit && kinds_[k].data == data;
    });
    kind_of_.push_back(it == candidates.end() ? kinds_.size() : *it);
    if (it != candidates.end()) continue;
    candidates.push_back(kinds_.size());
    kinds_.push_back({p, std::move(data), std::vector<part_between>((p.entry ? t.devices() : 1) * (p.exit ? t.devices() : 1))});
  }
}

HETPLAN_INLINE placement_table known_parts::table_between(const part_kind& kind, std::size_t pair) const {
  const std::size_t from = pair / exits(kind), to = pair % exits(kind);
  return part_table(kind.data, kind.like, kind.like.entry ? std::optional(from) : std::nullopt,
                    kind.like.exit ? std::optional(to) : std::nullopt);
}

HETPLAN_INLINE long long known_parts::steps_of_node(const part_kind& kind) const {
  return steps_per_node(kind.data.operators.size(), kind.data.edges.size(), table_.devices());
}

HETPLAN_INLINE bool known_parts::look() {
  const auto first_steps = [&](const part_kind& kind) {
    return 8 * static_cast<long long>(kind.data.operators.size()) + 4 * steps_of_node(kind);
  };
  long long needed = 0;
  for (const part_kind& kind : kinds_) needed += first_steps(kind) * static_cast<long long>(kind.between.size());
  if (needed > left_) return false;
  for (part_kind& kind : kinds_) {
    for (std::size_t pair = 0; pair < kind.between.size(); ++pair) search(kind, pair, first_steps(kind));
  }
  return true;
}

HETPLAN_INLINE void known_parts::search(part_kind& kind, std::size_t pair, long long steps) {
  part_between& b = kind.between[pair];
  b.steps = steps;
  const placement_table t = table_between(kind, pair);
  operator_schedule s = b.best;
  const bool large = t.size() > options_.exact_operators;
  if (!s.found()) {
    s = heft(t, rules_);
    s.status = {};  // a failed list schedule proves nothing
    if (large) b.lower_s = bounds_of(t).best_s();
  }
  s.steps = 0;
  s.bound_s = std::min(b.lower_s, s.makespan_s);
  if (large) s = improve_schedule(t, rules_, std::move(s), {.steps = steps});
  const long long steps_of_proof = large ? steps / 2 : steps;
  s = optimal_schedule(t, rules_, std::move(s), {.steps = steps_of_proof});
  left_ -= s.steps + 2 * steps_of_node(kind);  // the searches and their setup
  if (s.status.result == outcome::infeasible) {
    b.lower_s = std::numeric_limits<double>::infinity();
    searched_ += s.status.proof->searched;
    return;
  }
  b.exhausted = s.status.ok();
  b.lower_s = std::max(b.lower_s, s.bound_s);
  b.best = std::move(s);
}

HETPLAN_INLINE bool known_parts::relax(const part_path& path) {
  bool any = false;
  for (std::size_t i = 0; options_.lp.exists() && left_ > 0 && i < path.steps.size(); ++i) {
    part_kind& kind = kinds_[kind_of_[i]];
    const std::size_t pair = pair_of(kind, path.steps[i]);
    part_between& b = kind.between[pair];
    // A small part is searched to the end sooner than its program helps.
    if (b.relaxed || b.settled() || kind.data.operators.size() <= options_.exact_operators) continue;
    const relaxed_bound bound = relax_placement(table_between(kind, pair), rules_, b.upper_s(), options_.lp);
    b.relaxed = any = true;
    b.lower_s = std::max(b.lower_s, std::min(bound.bound_s, b.upper_s()));
    left_ -= bound.steps;
  }
  return any;
}

HETPLAN_INLINE bool known_parts::refine(std::initializer_list<const part_path*> paths) {
  key_index open;
  for (const part_path* path : paths) {
    for (std::size_t i = 0; i < path->steps.size(); ++i) {
      const part_kind& kind = kinds_[kind_of_[i]];
      const std::size_t pair = pair_of(kind, path->steps[i]);
      if (!kind.between[pair].settled()) open.insert({kind_of_[i], pair});
    }
  }
  bool any = false;
  for (const std::size_t i : open.in_order()) {
    const auto kind = static_cast<std::size_t>(open.key_of(i)[0].value), pair = static_cast<std::size_t>(open.key_of(i)[1].value);
    const long long before = kinds_[kind].between[pair].steps, most = (left_ - reserved_) / (2 * static_cast<long long>(open.size()));
    if (most <= before) continue;
    search(kinds_[kind], pair, std::min(4 * before, most));
    any = true;
  }
  return any;
}

HETPLAN_INLINE void known_parts::add_elsewhere() {
  for (part_kind& kind : kinds_) {
    for (std::size_t b = 0; b < kind.between.size(); ++b) {
      if (!kind.between[b].best.found()) continue;
      const placement_table t = table_between(kind, b);
      const std::size_t entry = b / exits(kind), exit = b % exits(kind);
      for (std::size_t k = 0; k < table_.devices(); ++k) {
        if (!(kind.like.entry && k == entry) && !(kind.like.exit && k == exit)) continue;
        std::vector<std::size_t> device(t.size(), k);
        if (kind.like.entry) device.front() = entry;
        if (kind.like.exit) device.back() = exit;
        operator_schedule s = schedule_in_order(t, rules_, {t.order().begin(), t.order().end()}, device);
        if (s.found()) kind.between[b].elsewhere.push_back(std::move(s));
      }
    }
  }
}

/// Returns the schedules of a path's parts one after the other. If the series is not exact, sides are on no
/// device and transfers are left out.
/// Complexity  O((operators + edges) log operators).
/// Source      ours: between milestones the makespan is a sum (series_parts).
[[nodiscard]] operator_schedule compose_parts(const known_parts& known, const part_path& path);

/// Returns a schedule of all operators: that of compose_parts or, with sides or crossing edges, a list schedule in the order of the
/// parts' starts, with each side where it ends first.
/// Complexity  schedule_greedily's.
/// Source      ours: a list schedule (list_schedule.hpp) in the order of the solved parts.
[[nodiscard]] operator_schedule schedule_sides(const known_parts& known, const operator_schedule& parts);

HETPLAN_INLINE operator_schedule compose_parts(const known_parts& known, const part_path& path) {
  const placement_table& t = known.table();
  operator_schedule s{.device = std::vector<std::size_t>(t.size(), partial_schedule::none), .start_s = std::vector<double>(t.size(), 0)};
  double before_s = 0;
  for (std::size_t i = 0; i < known.parts().size(); ++i) {
    const operator_schedule& part = known.chosen(i, path.steps[i]);
    for (std::size_t j = known.parts()[i].entry; j < known.parts()[i].operators.size(); ++j) {
      s.device[known.parts()[i].operators[j]] = part.device[j];
      s.start_s[known.parts()[i].operators[j]] = before_s + part.start_s[j];
    }
    if (known.series().exact()) {
      const std::vector<std::size_t> edges = part_edges(t, known.parts()[i]);
      for (scheduled_transfer x : part.transfers) {
        x.edge = edges[x.edge];
        x.start_s += before_s;
        x.end_s += before_s;
        s.transfers.push_back(x);
      }
    }
    before_s += part.makespan_s;
  }
  s.makespan_s = before_s;
  return s;
}

HETPLAN_INLINE operator_schedule schedule_sides(const known_parts& known, const operator_schedule& parts) {
  if (known.series().exact()) return parts;
  const placement_table& t = known.table();
  std::vector<double> start_s = parts.start_s;
  for (const std::size_t v : t.order()) {
    for (const std::uint32_t e : t.in_edges(v)) start_s[v] = std::max(start_s[v], start_s[t.edges()[e].from]);
  }
  std::vector<std::size_t> order(t.order().begin(), t.order().end());
  sort_by(order, [&](std::size_t v) { return start_s[v]; });
  return schedule_greedily(
      t, known.rules(), order, [](std::size_t, std::size_t, const trial& at) { return at.end_s; },
      [&](std::size_t v, std::size_t k) { return parts.device[v] == partial_schedule::none || parts.device[v] == k; });
}

struct priced_schedule {
  operator_schedule schedule;      ///< within memory; or none found
  std::vector<double> price = {};  ///< by device [s per byte], of the path of parts with the least excess
};

/// Returns the best schedule within memory over rounds of prices. Prices rise on devices that hold too much and fall on devices with
/// room. Every part chooses between its best schedule and one on a milestone's device alone. The path with the least excess is repaired.
///
/// @param length_s  length of the shortest path without prices.
/// Complexity       200 rounds of the shortest path, and of a schedule of all if one fits.
/// Determinism      yes.
/// Source           Lagrangian relaxation of Moirai's eq. 5; prices are tilted along the path, because equal layers would move at once.
[[nodiscard]] priced_schedule schedule_by_prices(known_parts& known, double length_s);

/// Returns a lower bound by prices of bytes: every part costs at least its linear program's optimum, and all capacity is paid back.
/// Prices move with the excess of the programs' solutions.
///
/// @param price  initial prices.
/// @return       0 without a solver.
/// Complexity    12 rounds of a few linear programs.   Source  the dual of schedule_by_prices' relaxation.
[[nodiscard]] double bound_by_prices(known_parts& known, std::vector<double> price);

namespace detail {

/// Returns, by kind and pair of devices, the bytes of the inside and the exit: choices x devices.
[[nodiscard]] HETPLAN_INLINE std::vector<std::vector<std::vector<double>>> bytes_of_choices(const known_parts& known) {
  const std::size_t d = known.table().devices();
  std::vector<std::vector<std::vector<double>>> all;
  for (const part_kind& kind : known.kinds()) {
    auto& of_kind = all.emplace_back();
    const std::vector<double> held = shared_out_bytes(kind.data);
    for (const part_between& b : kind.between) {
      auto& of_pair = of_kind.emplace_back((1 + b.elsewhere.size()) * d, 0.0);
      for (std::size_t c = 0; c <= b.elsewhere.size(); ++c) {
        const operator_schedule& s = b.schedule(c);
        for (std::size_t i = kind.like.entry; i < s.device.size(); ++i) of_pair[c * d + s.device[i]] += held[i];
      }
    }
  }
  return all;
}

/// Returns the bound at given prices.
/// @param load   raised by the bytes of the path's parts in their programs' solutions.
/// @param bases  of the programs at other prices, by kind and pair of devices.
[[nodiscard]] HETPLAN_INLINE double bound_at(known_parts& known, const std::vector<double>& price, std::vector<double>& load,
                                             keyed<std::vector<lp_basis>>& bases) {
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  const auto cheapest = [&](double bytes) { return bytes * *std::min_element(price.begin(), price.end()); };
  std::vector<std::vector<relaxed_bound>> at(known.kinds().size());
  std::vector<std::vector<char>> asked(known.kinds().size());
  for (std::size_t i = 0; i < known.kinds().size(); ++i) {
    double least = 0;
    const std::vector<double> held = shared_out_bytes(known.kinds()[i].data);
    for (std::size_t j = known.kinds()[i].like.entry; j < held.size(); ++j) least += cheapest(held[j]);
    for (const part_between& b : known.kinds()[i].between) at[i].push_back({.bound_s = b.lower_s + least});
    asked[i].assign(known.kinds()[i].between.size(), 0);
  }
  part_path path;
  for (bool any = true; any && known.steps_left() > 0;) {
    path = known.shortest([&](std::size_t part, std::size_t b, std::size_t) { return at[known.kind_of(part)][b].bound_s; });
    any = false;
    for (std::size_t i = 0; i < path.steps.size(); ++i) {
      const part_kind& kind = known.kind(i);
      const std::size_t b = known.pair_of(kind, path.steps[i]);
      if (asked[known.kind_of(i)][b]) continue;
      asked[known.kind_of(i)][b] = 1;
      any = true;
      std::vector<lp_basis>& start = bases[{known.kind_of(i), b}];
      relaxed_bound bound = relax_placement(known.table_between(kind, b), known.rules(), std::numeric_limits<double>::infinity(),
                                            known.options().lp, {.byte_price = price, .start = std::move(start)});
      start = std::move(bound.bases);
      known.spend(bound.steps);
      bound.bound_s = std::max(bound.bound_s, at[known.kind_of(i)][b].bound_s);
      at[known.kind_of(i)][b] = std::move(bound);
    }
  }
  double bound_s = path.length_s;
  for (const std::size_t v : known.series().sides) bound_s += cheapest(t.shared_out_bytes(v));
  for (std::size_t k = 0; k < d; ++k) {
    if (price[k] > 0) bound_s -= price[k] * t.capacity_bytes(k);
  }
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const part_kind& kind = known.kind(i);
    const auto& held = at[known.kind_of(i)][known.pair_of(kind, path.steps[i])].held_bytes;
    for (std::size_t k = 0; k < held.size(); ++k) load[k] += held[k];
  }
  return bound_s;
}

}  // namespace detail

HETPLAN_INLINE priced_schedule schedule_by_prices(known_parts& known, double length_s) {
  constexpr int rounds = 200;
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  const double held = t.all_held_bytes();
  known.add_elsewhere();
  const auto bytes = detail::bytes_of_choices(known);
  // A price moves by a step that shrinks after an overshoot.
  std::vector<double> price(d, 0), step(d, length_s / held / 4), before(d, 0);
  std::vector<std::size_t> nearest;  // devices of the path with the least excess
  double least_excess = std::numeric_limits<double>::infinity();
  priced_schedule answer{.schedule = {.status = {outcome::none_found, "memory: no path of parts that fits was found"}}};
  operator_schedule& best = answer.schedule;
  for (int round = 0; round < rounds && (round == 0 || known.steps_left() > 0); ++round) {
    known.spend(known.steps_of_path() * static_cast<long long>(d));
    // Equal parts would all change their devices at once. Prices are tilted along the path, so that one part after another changes.
    const auto tilted = [&](std::size_t part, std::size_t k) {
      const double along = static_cast<double>(part) / static_cast<double>(known.parts().size()) - 0.5;
      return price[k] * (1 + 0.2 * along * (2 * static_cast<double>(k) / static_cast<double>(std::max<std::size_t>(1, d - 1)) - 1));
    };
    const part_path path = known.shortest(
        [&](std::size_t part, std::size_t pair, std::size_t choice) {
          double sum = known.kind(part).between[pair].schedule(choice).makespan_s;
          const double* held_by = &bytes[known.kind_of(part)][pair][choice * d];
          for (std::size_t k = 0; k < d; ++k) sum += tilted(part, k) * held_by[k];
          return sum;
        },
        true);
    const operator_schedule s = compose_parts(known, path);
    const std::vector<double> excess = excess_bytes(t, s.device);
    const double over = std::accumulate(excess.begin(), excess.end(), 0.0, [](double sum, double x) { return sum + std::max(0.0, x); });
    if (over <= 0 && s.makespan_s < best.makespan_s) {
      operator_schedule whole = schedule_sides(known, s);
      if (whole.makespan_s < best.makespan_s) best = std::move(whole);
    }
    if (over > 0 && over < least_excess) {
      least_excess = over;
      nearest = s.device;
      answer.price = price;
    }
    for (std::size_t k = 0; k < d; ++k) {
      if (!std::isfinite(excess[k])) continue;
      if (before[k] * excess[k] < 0) step[k] /= 2;
      else step[k] *= 1.1;
      price[k] = std::max(0.0, price[k] + (excess[k] > 0 ? step[k] : -step[k]));
      before[k] = excess[k];
    }
  }
  if (known.series().exact() && !nearest.empty()) {
    operator_schedule repaired = schedule_within_memory(t, known.rules(), {t.order().begin(), t.order().end()}, nearest);
    if (repaired.makespan_s < best.makespan_s) best = std::move(repaired);
  }
  return answer;
}

HETPLAN_INLINE double bound_by_prices(known_parts& known, std::vector<double> price) {
  constexpr int rounds = 12;
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  double best_s = 0;
  std::vector<double> step(d, *std::max_element(price.begin(), price.end()) / 8), before(d, 0);
  keyed<std::vector<lp_basis>> bases;
  for (int round = 0; round < rounds && known.options().lp.exists() && known.steps_left() > 0; ++round) {
    std::vector<double> load(d, 0);
    const double bound_s = detail::bound_at(known, price, load, bases);
    best_s = std::max(best_s, bound_s);
    for (std::size_t k = 0; k < d; ++k) {
      const double excess = load[k] - t.capacity_bytes(k);
      if (!std::isfinite(excess)) continue;
      if (before[k] * excess < 0) step[k] /= 2;
      price[k] = std::max(0.0, price[k] + (excess > 0 ? step[k] : -step[k]));
      before[k] = excess;
    }
  }
  return best_s;
}

HETPLAN_INLINE operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                 const series_search_options& options, const any_observer<schedule_improved>& observer) {
  known_parts known(t, r, parts, options);
  if (!known.look())
    return {
        .status = {outcome::none_found, "a budget of " + std::to_string(options.steps) + " steps does not suffice to look at all parts"}};
  const auto fits = [&](const operator_schedule& s) {
    const std::vector<double> excess = excess_bytes(t, s.device);
    return std::none_of(excess.begin(), excess.end(), [](double x) { return x > 0; });
  };
  // If memory binds, half of the steps are reserved for its prices.
  bool stopped = false;
  for (bool more = true; more && !stopped && known.steps_left() > 0;) {
    known.spend(2 * known.steps_of_path());
    const part_path lower = known.shortest_lower(), upper = known.shortest_upper();
    if (!std::isfinite(lower.length_s) || upper.length_s <= lower.length_s * (1 + 1e-9)) break;
    if (std::isfinite(upper.length_s) && !fits(compose_parts(known, upper))) known.reserve(options.steps / 2);
    more = known.relax(lower) || known.refine({&lower, &upper});
    stopped = std::isfinite(upper.length_s) && observer && observer({upper.length_s, known.steps_used()}) == control::stop;
  }
  const part_path lower = known.shortest_lower(), upper = known.shortest_upper();
  operator_schedule best{.status = {outcome::none_found, "not every part has a schedule yet"}};
  double bound_s = lower.length_s;
  if (!std::isfinite(bound_s)) {
    best.status = infeasible_after(t, known.searched());
  } else if (std::isfinite(upper.length_s)) {
    const operator_schedule all = compose_parts(known, upper);
    if (fits(all)) {
      best = schedule_sides(known, all);
      const part_path turns = known.shortest([&](std::size_t part, std::size_t pair, std::size_t) {
        const part_between& b = known.kind(part).between[pair];
        return b.exhausted ? b.upper_s() : b.lower_s;
      });
      best.exhausted = parts.exact() && turns.length_s >= below(upper.length_s);
    } else {
      priced_schedule priced = schedule_by_prices(known, upper.length_s);
      best = std::move(priced.schedule);
      if (!priced.price.empty()) bound_s = std::max(bound_s, bound_by_prices(known, std::move(priced.price)));
    }
    if (!best.found()) best.status = {outcome::none_found, "the operators beside the parts found no place"};
    if (best.makespan_s <= bound_s * (1 + 1e-9)) bound_s = best.makespan_s;
  }
  best.bound_s = bound_s;
  best.steps = known.steps_used();
  if (stopped) best.status = {outcome::stopped, "an observer stopped the search; the best so far"};
  return best;
}

HETPLAN_INLINE operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp) {
  operator_schedule best = heft(t, r);
  const auto consider = [&](operator_schedule s) {
    if (s.makespan_s < best.makespan_s) best = std::move(s);
  };
  consider(peft(t, r));
  consider(m_etf(t, r));
  consider(m_sct(t, r, lp));
  consider(getf(t, r, lp));
  return best;
}

namespace detail {

/// Returns the ways to try: at sharp milestones first, whose parts may be large; then as finely as milestones with parallel work allow;
/// at last the whole if it is small, because memory couples parts.
[[nodiscard]] HETPLAN_INLINE std::vector<series_parts> ways_to_cut(const placement_table& t, std::size_t small) {
  if (t.devices() > 64) return {};
  std::vector<series_parts> ways{find_series_parts(t, {.wanted_operators = 400}), find_series_parts(t)};
  if (t.size() <= small) ways.push_back({.parts = {{t.order().begin(), t.order().end()}}});
  return ways;
}

}  // namespace detail

HETPLAN_INLINE operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options,
                                               const any_observer<schedule_improved>& observer) {
  const placement_bounds bounds = bounds_of(t);
  constexpr double never_s = std::numeric_limits<double>::infinity();
  if (!bounds.status.ok()) return {.status = bounds.status, .bound_s = never_s};
  operator_schedule best = best_list_schedule(t, r, options.lp);
  if (best.status.result == outcome::infeasible) {
    best.bound_s = never_s;
    return best;
  }
  if (options.known.makespan_s < best.makespan_s) best = options.known;
  best.bound_s = std::min(best.makespan_s, std::max(options.known.bound_s, bounds.best_s()));
  bool stopped = false;
  const auto watch = [&](const schedule_improved& e) {
    stopped = stopped || (observer && observer(e) == control::stop);
    return stopped ? control::stop : control::go;
  };
  if (best.found()) static_cast<void>(watch({best.makespan_s, 0}));
  std::vector<series_parts> done;
  for (series_parts& parts : detail::ways_to_cut(t, options.series.exact_operators)) {
    const auto same = [&](const series_parts& other) { return other.milestones == parts.milestones; };
    if (stopped || best.gap() == 0 || best.exhausted || std::any_of(done.begin(), done.end(), same)) continue;
    series_search_options series = options.series;
    series.steps = std::min(options.steps / (done.empty() ? 4 : 8), series.steps);
    if (!series.lp.exists()) series.lp = options.lp;
    operator_schedule by_parts = series_schedule(t, r, parts, series, watch);
    if (by_parts.status.result == outcome::infeasible) return by_parts;  // proven
    const double bound_s = std::max(best.bound_s, by_parts.bound_s);
    const long long steps = best.steps + by_parts.steps;
    const bool exhausted = by_parts.exhausted;
    if (by_parts.makespan_s < best.makespan_s) best = std::move(by_parts);
    best.bound_s = std::min(bound_s, best.makespan_s);
    best.steps = steps;
    best.exhausted = exhausted;
    done.push_back(std::move(parts));
  }
  if (best.found() && !stopped && best.gap() > 0 && !best.exhausted) {
    improve_options improve = options.improve;
    improve.steps = std::min(options.steps / 4, improve.steps);
    best = improve_schedule(t, r, std::move(best), improve, watch);
  }
  if (!best.found())
    best.status.reason = "no list schedule and no row of parts, searched with " + std::to_string(best.steps) +
                         " steps, keeps memory and routes; the first: " + best.status.reason;
  if (best.found()) best.status = stopped ? status{outcome::stopped, "an observer stopped the search; the best so far"} : status{};
  return best;
}

}  // namespace hetplan::place
