// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/m_sct.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/m_etf.hpp>
#include <hetplan/place/ranking.hpp>

namespace hetplan::place {

namespace detail {

/// x of every edge, or nothing where the solver has no answer.
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
  std::vector<std::size_t> order(t.edges().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
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
  std::vector<double> waits_s(t.size(), 0);  // by operator: how long its device waits for its favourite
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

}  // namespace hetplan::place
