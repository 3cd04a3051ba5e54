// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/getf.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/m_etf.hpp>

namespace hetplan::place {

namespace detail {

/// A table's devices as groups: times of each operator, and how many devices share a group's load.
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

/// Shares of operators over groups, row-major; empty where the solver has no answer.
[[nodiscard]] HETPLAN_INLINE std::vector<double> relaxed_shares(const placement_table& t, const grouped_times& g, const any_lp_solver& lp) {
  double unit_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) unit_s += t.fastest_s(v);
  if (!(unit_s > 0) || !std::isfinite(unit_s)) return {};
  lp_problem p;
  const auto groups = static_cast<int>(g.groups), n = static_cast<int>(g.operators);
  for (const double time_s : g.time_s) p.add_column(0, 0, std::isfinite(time_s) ? 1 : 0);
  for (int v = 0; v < n; ++v) p.add_column(0);  // its end
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

/// The cheapest group for every operator, at prices that rise where the load is.
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
  std::vector<std::size_t> chosen, by_time(g.groups);
  for (std::size_t v = 0; v < g.operators; ++v) {
    std::iota(by_time.begin(), by_time.end(), std::size_t{0});
    std::stable_sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) { return g.at(v, a) < g.at(v, b); });
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
