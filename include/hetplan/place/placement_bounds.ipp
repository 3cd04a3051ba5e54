// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_bounds.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <hetplan/core/escaped.hpp>
#include <hetplan/place/fit_memory.hpp>
#include <hetplan/place/ranking.hpp>

namespace hetplan::place {

namespace detail {

constexpr int price_rounds = 200;

/// Prices of the devices' bytes, which rise where a relaxed placement holds too much.
class byte_prices {
 public:
  byte_prices(const placement_table& t, double scale_s) : table_(t), scale_s_(scale_s), byte_price_(t.devices(), 0) {
    unit_bytes_ = std::max(t.all_held_bytes(), 1.0);
  }

  [[nodiscard]] const std::vector<double>& byte_price() const { return byte_price_; }
  [[nodiscard]] double paid_for_capacity() const {
    double sum = 0;
    for (std::size_t k = 0; k < byte_price_.size(); ++k) {
      if (byte_price_[k] > 0) sum += byte_price_[k] * table_.capacity_bytes(k);
    }
    return sum;
  }
  /// A step against what a relaxed placement holds on each device.
  void step_bytes(const std::vector<double>& held, int round) {
    for (std::size_t k = 0; k < byte_price_.size(); ++k) {
      if (!std::isfinite(table_.capacity_bytes(k))) continue;
      const double excess = (held[k] - table_.capacity_bytes(k)) / unit_bytes_;
      byte_price_[k] = std::max(0.0, byte_price_[k] + 2 * scale_s_ / unit_bytes_ / (1 + 0.2 * round) * excess);
    }
  }

 private:
  const placement_table& table_;
  double scale_s_, unit_bytes_;
  std::vector<double> byte_price_;
};

/// The cheapest device of an operator at prices of seconds and bytes, ties to the smaller number.
[[nodiscard]] HETPLAN_INLINE std::pair<double, std::size_t> cheapest_device(const placement_table& t, std::size_t v,
                                                                            const std::vector<double>& second_price,
                                                                            const std::vector<double>& byte_price) {
  std::pair<double, std::size_t> best{std::numeric_limits<double>::infinity(), 0};
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (!std::isfinite(t.time_s(v, k))) continue;
    const double cost = second_price[k] * t.time_s(v, k) + byte_price[k] * t.shared_out_bytes(v);
    if (cost < best.first) best = {cost, k};
  }
  return best;
}

/// A long path: from the operator with the greatest least tail, always on to the reader whose least tail is greatest. Any path gives a
/// valid bound.
[[nodiscard]] HETPLAN_INLINE std::vector<std::uint32_t> longest_path(const placement_table& t, const std::vector<double>& least_tail,
                                                                     std::size_t& first) {
  for (std::size_t v = 0; v < t.size(); ++v) {
    if (least_tail[v] > least_tail[first]) first = v;
  }
  std::vector<std::uint32_t> path;
  for (std::size_t v = first; !t.out_edges(v).empty();) {
    const auto out = t.out_edges(v);
    const std::uint32_t next = *std::max_element(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return least_tail[t.edges()[a].to] < least_tail[t.edges()[b].to];
    });
    path.push_back(next);
    v = t.edges()[next].to;
  }
  return path;
}

[[nodiscard]] HETPLAN_INLINE double path_and_memory_bound_s(const placement_table& t, const std::vector<double>& least_tail,
                                                            double path_s) {
  const std::size_t d = t.devices();
  std::size_t first = 0;
  const std::vector<std::uint32_t> path = longest_path(t, least_tail, first);
  std::vector<char> on_path(t.size(), 0);
  std::vector<std::size_t> nodes{first};
  for (const std::uint32_t e : path) nodes.push_back(t.edges()[e].to);
  for (const std::size_t v : nodes) on_path[v] = 1;
  byte_prices bytes(t, path_s);
  const std::vector<double> free(d, 0);
  std::vector<double> value(d), behind(d);
  std::vector<std::size_t> next(nodes.size() * d, 0);
  double best = 0;
  for (int round = 0; round < price_rounds / 2; ++round) {
    const auto cost = [&](std::size_t v, std::size_t k) { return t.time_s(v, k) + bytes.byte_price()[k] * t.shared_out_bytes(v); };
    for (std::size_t i = nodes.size(); i-- > 0;) {
      for (std::size_t k = 0; k < d; ++k) {
        double rest = 0;
        if (i + 1 < nodes.size()) {
          rest = std::numeric_limits<double>::infinity();
          for (std::size_t j = 0; j < d; ++j) {
            const double way = t.transfer_s(path[i], k, j) + behind[j];
            if (way < rest) rest = way, next[i * d + k] = j;
          }
        }
        value[k] = cost(nodes[i], k) + rest;
      }
      behind = value;
    }
    std::vector<double> held(d, 0);
    auto k = static_cast<std::size_t>(std::min_element(behind.begin(), behind.end()) - behind.begin());
    double total = behind[k] - bytes.paid_for_capacity();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      held[k] += t.shared_out_bytes(nodes[i]);
      k = next[i * d + k];
    }
    for (std::size_t v = 0; v < t.size(); ++v) {
      if (on_path[v] || t.shared_out_bytes(v) <= 0) continue;
      const auto [price, where] = cheapest_device(t, v, free, bytes.byte_price());
      total += price;
      held[where] += t.shared_out_bytes(v);
    }
    best = std::max(best, total);
    bytes.step_bytes(held, round);
  }
  return best;
}

/// @param end_s  a bound that is known.
[[nodiscard]] HETPLAN_INLINE double interval_bound_s(const placement_table& t, const std::vector<double>& earliest_s,
                                                     const std::vector<double>& least_tail, double end_s) {
  constexpr std::size_t most_points = 48;
  std::vector<double> points;
  for (std::size_t v = 0; v < t.size(); ++v) points.insert(points.end(), {earliest_s[v], end_s - least_tail[v] + t.fastest_s(v)});
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::vector<double> chosen;
  const std::size_t count = std::min(most_points, points.size());
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(points[i * (points.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  const auto devices = static_cast<double>(t.devices());
  double best = end_s;
  for (std::size_t a = 0; a < chosen.size(); ++a) {
    for (std::size_t b = a + 1; b < chosen.size(); ++b) {
      const double from_s = chosen[a], to_s = chosen[b];
      double work = 0;
      for (std::size_t v = 0; v < t.size(); ++v) {
        const double time_s = t.fastest_s(v), latest_start_s = end_s - least_tail[v];
        work += std::max(0.0, std::min({time_s, earliest_s[v] + time_s - from_s, to_s - latest_start_s, to_s - from_s}));
      }
      best = std::max(best, end_s + work / devices - (to_s - from_s));
    }
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE double placement_bounds::best_s() const { return std::max({path_s, load_s, path_and_memory_s, interval_s}); }

HETPLAN_INLINE load_prices load_prices_of(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> price(d, 1 / static_cast<double>(d));
  load_prices best{price, std::vector<double>(d, 0)};
  double all_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) all_s += t.fastest_s(v);
  if (!(all_s > 0) || !std::isfinite(all_s)) return best;
  detail::byte_prices bytes(t, all_s / static_cast<double>(d));
  for (int round = 0; round < detail::price_rounds; ++round) {
    std::vector<double> load(d, 0), held(d, 0);
    double value = -bytes.paid_for_capacity();
    for (std::size_t v = 0; v < t.size(); ++v) {
      const auto [cost, k] = detail::cheapest_device(t, v, price, bytes.byte_price());
      value += cost;
      load[k] += t.time_s(v, k);
      held[k] += t.shared_out_bytes(v);
    }
    if (value > best.bound_s) best = {price, bytes.byte_price(), bytes.paid_for_capacity(), value};
    const double most = *std::max_element(load.begin(), load.end());
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += price[k] *= std::exp(load[k] / most / (1 + 0.1 * round));
    for (double& p : price) p /= sum;
    bytes.step_bytes(held, round);
  }
  return best;
}

HETPLAN_INLINE placement_bounds bounds_of(const placement_table& t) {
  placement_bounds b;
  b.status = refute_placements(t);
  if (!b.status.ok()) return b;
  const std::size_t d = t.devices();
  const std::vector<double> head = heads_s(t), tail = tails_s(t);
  std::vector<double> earliest_s(t.size(), std::numeric_limits<double>::infinity()), least_tail = earliest_s;
  for (std::size_t v = 0; v < t.size(); ++v) {
    double through_s = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < d; ++k) {
      if (!std::isfinite(t.time_s(v, k))) continue;
      earliest_s[v] = std::min(earliest_s[v], head[v * d + k]);
      least_tail[v] = std::min(least_tail[v], tail[v * d + k]);
      through_s = std::min(through_s, head[v * d + k] + tail[v * d + k]);
    }
    if (!std::isfinite(through_s)) {
      b.status = {outcome::infeasible, "no routes join the devices that could run the operators",
                  infeasibility_proof{named_problem(t),
                                      {{"devices that can run operator \"" + escaped(t.data().operators[v]) +
                                            "\" and are joined by routes to some device for each operator before and behind it",
                                        1, 0}},
                                      0}};
      b.path_s = 0;
      return b;
    }
    b.path_s = std::max(b.path_s, through_s);
  }
  b.load_s = load_prices_of(t).bound_s;
  b.path_and_memory_s = detail::path_and_memory_bound_s(t, least_tail, b.path_s);
  b.interval_s = detail::interval_bound_s(t, earliest_s, least_tail, std::max({b.path_s, b.load_s, b.path_and_memory_s}));
  return b;
}

}  // namespace hetplan::place
