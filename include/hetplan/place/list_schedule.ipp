// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/list_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::place {

HETPLAN_INLINE operator_schedule schedule_greedily(const placement_table& t, const placement_rules& r,
                                                   const std::vector<std::size_t>& order, const device_score& score,
                                                   const device_filter& may) {
  partial_schedule s(t, r);
  for (const std::size_t v : order) {
    std::size_t best = partial_schedule::none;
    double least = std::numeric_limits<double>::infinity();
    bool best_allowed = false, best_fits = false;
    for (std::size_t k = 0; k < t.devices(); ++k) {
      const trial at = s.try_on(v, k);
      if (!std::isfinite(at.end_s)) continue;
      const bool fits = s.memory().fits(v, k), allowed = !may || may(v, k);
      const double cost = score(v, k, at);
      // Room first, then the filter, which gives way if it leaves no device with room.
      const bool better = std::pair(fits, allowed) != std::pair(best_fits, best_allowed)
                              ? std::pair(fits, allowed) > std::pair(best_fits, best_allowed)
                              : cost < least;
      if (best != partial_schedule::none && !better) continue;
      best = k, least = cost, best_fits = fits, best_allowed = allowed;
    }
    if (best == partial_schedule::none)
      return {.status = {outcome::none_found,
                         "operator \"" + escaped(t.data().operators[v]) + "\" can run on no device that its inputs reach"}};
    s.place(v, best);
  }
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (s.memory().free_bytes(k) >= 0) continue;
    std::vector<std::size_t> device;
    for (std::size_t v = 0; v < t.size(); ++v) device.push_back(s.device_of(v));
    return schedule_within_memory(t, r, order, device);
  }
  return std::move(s).result();
}

HETPLAN_INLINE operator_schedule schedule_within_memory(const placement_table& t, const placement_rules& r,
                                                        const std::vector<std::size_t>& order, const std::vector<std::size_t>& device) {
  if (largest_overflow_bytes(t, device) <= 0) {
    operator_schedule s = schedule_in_order(t, r, order, device);
    if (!s.found()) s.status = {outcome::none_found, "no route joins two devices of the placement that was tried"};
    return s;
  }
  fitting f = repair_memory(t, device);
  if (f.device.empty()) return {.status = std::move(f.status)};
  operator_schedule s = schedule_in_order(t, r, order, f.device);
  if (!s.found()) s.status = {outcome::none_found, "no route joins two devices of the placement within memory that was tried"};
  return s;
}

namespace detail {

/// Returns the fastest device that holds all operators, if they take less than `below_s` there; devices() if there is none.
[[nodiscard]] HETPLAN_INLINE std::size_t fastest_for_all(const placement_table& t, double below_s) {
  double working = 0;
  for (std::size_t v = 0; v < t.size(); ++v) working = std::max(working, t.working_bytes(v));
  std::size_t fastest = t.devices();
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (t.all_held_bytes() + working > t.capacity_bytes(k)) continue;
    double sum_s = 0;
    for (const std::size_t v : t.order()) sum_s += t.time_s(v, k);
    if (sum_s < below_s) below_s = sum_s, fastest = k;
  }
  return fastest;
}

}  // namespace detail

HETPLAN_INLINE operator_schedule one_device(const placement_table& t, const placement_rules& r) {
  return or_one_device(t, r, {.status = {outcome::none_found, "no device can run and hold all operators"}});
}

HETPLAN_INLINE operator_schedule or_one_device(const placement_table& t, const placement_rules& r, operator_schedule listed) {
  const std::size_t k = detail::fastest_for_all(t, listed.makespan_s);
  if (k == t.devices()) return listed;
  return schedule_in_order(t, r, {t.order().begin(), t.order().end()}, std::vector<std::size_t>(t.size(), k));
}

namespace detail {

/// Returns the mean time of an operator over the devices that can run it.
[[nodiscard]] HETPLAN_INLINE double mean_time_s(const placement_table& t, std::size_t op) {
  double sum = 0;
  int devices = 0;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (!std::isfinite(t.time_s(op, k))) continue;
    sum += t.time_s(op, k);
    ++devices;
  }
  return devices == 0 ? 0 : sum / devices;
}

}  // namespace detail

HETPLAN_INLINE double mean_transfer_s(const placement_table& t, std::size_t edge) {
  double sum = 0;
  int pairs = 0;
  for (std::size_t a = 0; a < t.devices(); ++a) {
    for (std::size_t b = 0; b < t.devices(); ++b) {
      const double s = t.transfer_s(edge, a, b);
      if (a == b || !std::isfinite(s)) continue;
      sum += s;
      ++pairs;
    }
  }
  return pairs == 0 ? 0 : sum / pairs;
}

HETPLAN_INLINE std::vector<double> upward_ranks(const placement_table& t) {
  std::vector<double> rank(t.size(), 0);
  for (std::size_t i = t.size(); i-- > 0;) {
    const std::size_t v = t.order()[i];
    double behind = 0;
    for (const std::uint32_t e : t.out_edges(v)) behind = std::max(behind, mean_transfer_s(t, e) + rank[t.edges()[e].to]);
    rank[v] = detail::mean_time_s(t, v) + behind;
  }
  return rank;
}

HETPLAN_INLINE std::vector<double> tails_s(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> tail(t.size() * d, 0);
  for (std::size_t i = t.size(); i-- > 0;) {
    const std::size_t v = t.order()[i];
    for (std::size_t k = 0; k < d; ++k) {
      double behind = 0;
      for (const std::uint32_t e : t.out_edges(v)) {
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, t.transfer_s(e, k, j) + tail[t.edges()[e].to * d + j]);
        behind = std::max(behind, best);
      }
      tail[v * d + k] = t.time_s(v, k) + behind;
    }
  }
  return tail;
}

HETPLAN_INLINE std::vector<double> heads_s(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> head(t.size() * d, 0);
  for (const std::size_t v : t.order()) {
    for (std::size_t k = 0; k < d; ++k) {
      double before = 0;
      for (const std::uint32_t e : t.in_edges(v)) {
        const std::size_t u = t.edges()[e].from;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, head[u * d + j] + t.time_s(u, j) + t.transfer_s(e, j, k));
        before = std::max(before, best);
      }
      head[v * d + k] = before;
    }
  }
  return head;
}

HETPLAN_INLINE std::vector<std::size_t> order_by(const placement_table& t, const std::vector<double>& priority) {
  std::vector<std::size_t> waits(t.size(), 0), order;
  min_queue<std::pair<double, std::size_t>> ready;
  const auto enter = [&](std::size_t v) { ready.push({-priority[v], v}); };
  for (std::size_t v = 0; v < t.size(); ++v) {
    waits[v] = t.in_edges(v).size();
    if (waits[v] == 0) enter(v);
  }
  while (!ready.empty()) {
    const std::size_t v = ready.pop().second;
    order.push_back(v);
    for (const std::uint32_t e : t.out_edges(v)) {
      if (--waits[t.edges()[e].to] == 0) enter(t.edges()[e].to);
    }
  }
  return order;
}

HETPLAN_INLINE operator_schedule peft(const placement_table& t, const placement_rules& r) {
  const std::size_t d = t.devices();
  const std::vector<double> tail = tails_s(t);
  std::vector<double> least(t.size());
  for (std::size_t v = 0; v < t.size(); ++v)
    least[v] =
        *std::min_element(tail.begin() + static_cast<std::ptrdiff_t>(v * d), tail.begin() + static_cast<std::ptrdiff_t>((v + 1) * d));
  return or_one_device(t, r, schedule_greedily(t, r, order_by(t, least), [&](std::size_t v, std::size_t k, const trial& at) {
                         return at.start_s + tail[v * d + k];
                       }));
}

HETPLAN_INLINE operator_schedule earliest_start_first(const placement_table& t, const placement_rules& r, const start_rule& starts) {
  partial_schedule s(t, r);
  const std::vector<double> rank = upward_ranks(t);
  struct offer {
    double start_s = std::numeric_limits<double>::infinity();
    double end_s = std::numeric_limits<double>::infinity();
    std::size_t device = partial_schedule::none;
    bool fits = false;
  };
  // Room first, then the least start.
  const auto best_of = [&](std::size_t v) {
    offer best;
    for (std::size_t k = 0; k < t.devices(); ++k) {
      const trial at = s.try_on(v, k);
      if (!std::isfinite(at.end_s)) continue;
      const double start_s = starts ? starts(v, k, at, s) : at.start_s;
      const bool fits = s.memory().fits(v, k);
      const bool better = fits != best.fits ? fits : std::pair(start_s, at.end_s) < std::pair(best.start_s, best.end_s);
      if (best.device == partial_schedule::none || better) best = {start_s, at.end_s, k, fits};
    }
    return best;
  };
  using entry = std::tuple<double, double, std::size_t>;  // start, negated rank, operator
  min_queue<entry> ready;
  min_queue<std::pair<double, std::size_t>> reserve;
  // A trial costs in-edges, so fewer operators are compared if they have many in-edges or are many.
  const std::size_t n = t.size(),
                    most_compared = std::clamp<std::size_t>(std::min(512 * n / (n + t.edges().size()), 1'280'000 / n), 8, 128);
  std::vector<std::size_t> waits(t.size()), order;
  const auto enter = [&](std::size_t v, double start_s) {
    if (ready.size() < most_compared) ready.push({start_s, -rank[v], v});
    else reserve.push({-rank[v], v});
  };
  for (std::size_t v = 0; v < t.size(); ++v) {
    waits[v] = t.in_edges(v).size();
    if (waits[v] == 0) enter(v, 0);
  }
  bool over = false;
  while (!ready.empty()) {
    const auto [believed_s, sign, v] = ready.pop();
    const offer now = best_of(v);
    if (now.device == partial_schedule::none)
      return {.status = {outcome::none_found,
                         "operator \"" + escaped(t.data().operators[v]) + "\" can run on no device that its inputs reach"}};
    if (now.start_s > believed_s && !ready.empty()) {
      ready.push({now.start_s, -rank[v], v});
      continue;
    }
    if (!reserve.empty()) {
      const auto [urgency, next] = reserve.pop();
      ready.push({0, urgency, next});
    }
    over = over || !now.fits;
    s.place(v, now.device);
    order.push_back(v);
    for (const std::uint32_t e : t.out_edges(v)) {
      if (--waits[t.edges()[e].to] == 0) enter(t.edges()[e].to, s.end_s(v));
    }
  }
  if (!over) return std::move(s).result();
  std::vector<std::size_t> device;
  for (std::size_t v = 0; v < t.size(); ++v) device.push_back(s.device_of(v));
  return schedule_within_memory(t, r, order, device);
}

HETPLAN_INLINE operator_schedule m_etf(const placement_table& t, const placement_rules& r) {
  return or_one_device(t, r, earliest_start_first(t, r));
}

namespace detail {

/// Returns x of every edge in the relaxed program of favourite_readers, or nothing without an answer of the solver.
[[nodiscard]] HETPLAN_INLINE std::vector<double> relaxed_favourites(const placement_table& t, const std::vector<double>& transfer_s,
                                                                    const any_lp_solver& lp) {
  lp_problem p;
  const auto n = static_cast<int>(t.size());
  double unit_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) unit_s += t.fastest_s(v);
  if (!(unit_s > 0) || !std::isfinite(unit_s)) return {};
  for (int v = 0; v < n; ++v) p.add_column(0);
  for (std::size_t e = 0; e < t.edges().size(); ++e) p.add_column(0, 0, 1);
  const int end = p.add_column(1);
  const auto edge_column = [&](std::size_t e) { return n + static_cast<int>(e); };
  for (std::size_t v = 0; v < t.size(); ++v) {
    const double time = t.fastest_s(v) / unit_s;
    p.rows.push_back({.terms = {{end, 1}, {static_cast<int>(v), -1}}, .lower = time});
    for (const auto& edges : {t.in_edges(v), t.out_edges(v)}) {
      if (edges.size() < 2) continue;
      lp_problem::row all_but_one{.terms = {}, .lower = static_cast<double>(edges.size()) - 1};
      for (const std::uint32_t e : edges) all_but_one.terms.emplace_back(edge_column(e), 1);
      p.rows.push_back(std::move(all_but_one));
    }
  }
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    const auto [from, to, size] = t.edges()[e];
    p.rows.push_back({.terms = {{static_cast<int>(to), 1}, {static_cast<int>(from), -1}, {edge_column(e), -transfer_s[e] / unit_s}},
                      .lower = t.fastest_s(from) / unit_s});
  }
  const lp_solution s = lp.solve(p);
  if (s.status != lp_status::optimal) return {};
  return {s.x.begin() + n, s.x.begin() + end};
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::size_t> favourite_readers(const placement_table& t, const any_lp_solver& lp, std::size_t most_edges) {
  std::vector<double> transfer_s, x;
  for (std::size_t e = 0; e < t.edges().size(); ++e) transfer_s.push_back(mean_transfer_s(t, e));
  if (lp.exists() && t.edges().size() <= most_edges) x = detail::relaxed_favourites(t, transfer_s, lp);
  const std::vector<double> rank = upward_ranks(t);
  const auto through_s = [&](std::size_t e) { return transfer_s[e] + rank[t.edges()[e].to]; };
  const std::vector<std::size_t> order = sorted_indices(t.edges().size(), [&](std::size_t a, std::size_t b) {
    const double xa = x.empty() ? 0 : x[a], xb = x.empty() ? 0 : x[b];
    return std::pair(xa, -through_s(a)) < std::pair(xb, -through_s(b));
  });
  std::vector<std::size_t> favourite(t.size(), no_operator);
  std::vector<char> taken(t.size(), 0);
  for (const std::size_t e : order) {
    const auto [from, to, size] = t.edges()[e];
    if ((!x.empty() && x[e] > 0.5 + 1e-9) || favourite[from] != no_operator || taken[to]) continue;
    favourite[from] = to;
    taken[to] = 1;
  }
  return favourite;
}

HETPLAN_INLINE operator_schedule m_sct(const placement_table& t, const placement_rules& r, const any_lp_solver& lp) {
  const std::vector<std::size_t> favourite = favourite_readers(t, lp);
  std::vector<double> waits_s(t.size(), 0);  // by operator: how long its device waits for its favourite reader
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    const auto [from, to, size] = t.edges()[e];
    if (favourite[from] == to) waits_s[from] = mean_transfer_s(t, e);
  }
  const auto starts = [&](std::size_t v, std::size_t k, const trial& at, const partial_schedule& s) {
    const std::size_t u = s.last_on(k);
    if (u == partial_schedule::none || favourite[u] == no_operator || favourite[u] == v || s.placed(favourite[u])) return at.start_s;
    return at.start_s < s.end_s(u) ? at.start_s : std::max(at.start_s, s.end_s(u) + waits_s[u]);
  };
  return or_one_device(t, r, earliest_start_first(t, r, starts));
}

namespace detail {

/// Times of each operator on each group of devices, and how many devices share a group's load.
struct grouped_times {
  std::size_t operators, groups;
  std::vector<double> time_s, devices;

  grouped_times(const placement_table& t, const std::vector<std::size_t>& group)
      : operators(t.size()), groups(*std::max_element(group.begin(), group.end()) + 1), devices(groups, 0) {
    std::vector<std::size_t> first(groups, t.devices());
    for (std::size_t k = t.devices(); k-- > 0;) first[group[k]] = k, devices[group[k]] += 1;
    for (std::size_t v = 0; v < operators; ++v) {
      for (std::size_t g = 0; g < groups; ++g) time_s.push_back(t.time_s(v, first[g]));
    }
  }
  [[nodiscard]] double at(std::size_t v, std::size_t g) const { return time_s[v * groups + g]; }
};

/// Returns the shares of operators in groups, row-major; empty without an answer of the solver.
[[nodiscard]] HETPLAN_INLINE std::vector<double> relaxed_shares(const placement_table& t, const grouped_times& g, const any_lp_solver& lp) {
  double unit_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) unit_s += t.fastest_s(v);
  if (!(unit_s > 0) || !std::isfinite(unit_s)) return {};
  lp_problem p;
  const auto groups = static_cast<int>(g.groups), n = static_cast<int>(g.operators);
  for (const double time_s : g.time_s) p.add_column(0, 0, std::isfinite(time_s) ? 1 : 0);
  for (int v = 0; v < n; ++v) p.add_column(0);  // the operator's end
  const int longest = p.add_column(1);
  const auto time_terms = [&](std::size_t v, double sign) {
    std::vector<std::pair<int, double>> terms;
    for (std::size_t k = 0; k < g.groups; ++k) {
      if (std::isfinite(g.at(v, k)) && g.at(v, k) > 0)
        terms.emplace_back(static_cast<int>(v) * groups + static_cast<int>(k), sign * g.at(v, k) / unit_s);
    }
    return terms;
  };
  const auto end = [&](std::size_t v) { return n * groups + static_cast<int>(v); };
  for (std::size_t v = 0; v < g.operators; ++v) {
    lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
    for (int k = 0; k < groups; ++k) whole.terms.emplace_back(static_cast<int>(v) * groups + k, 1);
    p.rows.push_back(std::move(whole));
    p.rows.push_back({.terms = {{longest, 1}, {end(v), -1}}, .lower = 0});
    lp_problem::row first{.terms = time_terms(v, -1), .lower = 0};
    first.terms.emplace_back(end(v), 1);
    p.rows.push_back(std::move(first));
  }
  for (const operator_edge& e : t.edges()) {
    lp_problem::row after{.terms = time_terms(e.to, -1), .lower = 0};
    after.terms.emplace_back(end(e.to), 1);
    after.terms.emplace_back(end(e.from), -1);
    p.rows.push_back(std::move(after));
  }
  for (std::size_t k = 0; k < g.groups; ++k) {
    lp_problem::row load{.terms = {{longest, g.devices[k]}}, .lower = 0};
    for (std::size_t v = 0; v < g.operators; ++v) {
      if (std::isfinite(g.at(v, k)) && g.at(v, k) > 0)
        load.terms.emplace_back(static_cast<int>(v) * groups + static_cast<int>(k), -g.at(v, k) / unit_s);
    }
    p.rows.push_back(std::move(load));
  }
  const lp_solution s = lp.solve(p);
  if (s.status != lp_status::optimal) return {};
  return {s.x.begin(), s.x.begin() + n * groups};
}

/// Returns the cheapest group for every operator, at prices that rise with the load.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> priced_groups(const grouped_times& g) {
  constexpr int rounds = 100;
  std::vector<double> price(g.groups, 1);
  std::vector<std::size_t> chosen(g.operators, 0), best;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> load(g.groups, 0);
    for (std::size_t v = 0; v < g.operators; ++v) {
      for (std::size_t k = 0; k < g.groups; ++k) {
        if (price[k] * g.at(v, k) < price[chosen[v]] * g.at(v, chosen[v])) chosen[v] = k;
      }
      load[chosen[v]] += g.at(v, chosen[v]) / g.devices[chosen[v]];
    }
    const double most = *std::max_element(load.begin(), load.end());
    if (most < least) least = most, best = chosen;
    if (!(most > 0) || !std::isfinite(most)) break;
    for (std::size_t k = 0; k < g.groups; ++k) price[k] *= 1 + 0.1 * load[k] / most;
  }
  return best.empty() ? chosen : best;
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::size_t> device_groups(const placement_table& t) {
  std::vector<std::size_t> group, first;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    const auto alike = [&](std::size_t other) {
      for (std::size_t v = 0; v < t.size(); ++v) {
        if (t.time_s(v, k) != t.time_s(v, other)) return false;
      }
      return true;
    };
    const auto it = std::find_if(first.begin(), first.end(), alike);
    group.push_back(static_cast<std::size_t>(it - first.begin()));
    if (it == first.end()) first.push_back(k);
  }
  return group;
}

HETPLAN_INLINE std::vector<std::size_t> operator_groups(const placement_table& t, const any_lp_solver& lp, std::size_t most) {
  const detail::grouped_times g(t, device_groups(t));
  std::vector<double> share;
  if (lp.exists() && g.operators * g.groups <= most) share = detail::relaxed_shares(t, g, lp);
  if (share.empty()) return detail::priced_groups(g);
  std::vector<std::size_t> chosen;
  for (std::size_t v = 0; v < g.operators; ++v) {
    const auto by_time = sorted_indices(g.groups, [&](std::size_t a, std::size_t b) { return g.at(v, a) < g.at(v, b); });
    double held = 0;
    std::size_t i = 0;
    while (i + 1 < g.groups && (held += share[v * g.groups + by_time[i]]) < 0.5 - 1e-9) ++i;
    chosen.push_back(by_time[i]);
  }
  return chosen;
}

HETPLAN_INLINE operator_schedule getf(const placement_table& t, const placement_rules& r, const any_lp_solver& lp) {
  const std::vector<std::size_t> group_of_device = device_groups(t), group = operator_groups(t, lp);
  const auto starts = [&](std::size_t v, std::size_t k, const trial& at, const partial_schedule&) {
    return group_of_device[k] == group[v] ? at.start_s : std::numeric_limits<double>::infinity();
  };
  return or_one_device(t, r, earliest_start_first(t, r, starts));
}

}  // namespace hetplan::place
