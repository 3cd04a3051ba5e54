// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/device_groups.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::coarsen {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string name_of(const device& d) { return "device " + std::to_string(d.id.value) + " \"" + d.name + "\""; }

[[nodiscard]] HETPLAN_INLINE double require_time(double t_s, const std::string& what, const device& d) {
  if (t_s > 0) return t_s;
  throw invalid_input("compute_scores: " + what + " takes " + to_text(t_s) + " s on " + name_of(d) + "; expected > 0");
}

}  // namespace detail

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost,
                                                  std::span<const benchmark> benchmarks) {
  double weights = 0;
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    const double w = benchmarks[i].weight;
    if (!(w >= 0) || !std::isfinite(w))
      throw invalid_input("compute_scores: weight of benchmark " + std::to_string(i) + " = " + to_text(w) + "; expected finite >= 0");
    weights += w;
  }
  if (!(weights > 0)) throw invalid_input("compute_scores: expected a benchmark with a weight > 0, got none");
  std::vector<double> scores;
  for (const device& d : devices) {
    double score = 0;
    for (std::size_t i = 0; i < benchmarks.size(); ++i) {
      if (benchmarks[i].weight == 0) continue;
      double t_s = 0;
      for (const work& w : benchmarks[i].calls) t_s += checked_time_s(cost, w, d);
      score += benchmarks[i].weight / detail::require_time(t_s, "benchmark " + std::to_string(i), d);
    }
    scores.push_back(score);
  }
  return scores;
}

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost, const planning_graph& model,
                                                  mode mode, double batch) {
  if (!(batch > 0) || !std::isfinite(batch)) throw invalid_input("compute_scores: batch = " + to_text(batch) + "; expected finite > 0");
  std::vector<layer_id> layers;
  for (const layer& l : model.layers()) layers.push_back(l.id);
  std::vector<phase> phases{phase::forward};
  if (mode == mode::training) phases.insert(phases.end(), {phase::backward_input, phase::backward_weight});
  std::vector<double> scores;
  for (const device& d : devices) {
    double t_s = 0;
    for (const phase p : phases) t_s = cost.total_s(model, layers, {p, batch}, d, t_s);
    scores.push_back(batch / detail::require_time(t_s, "model \"" + model.name() + "\"", d));
  }
  return scores;
}

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices) {
  std::vector<double> scores;
  for (const device& d : devices) {
    if (!(d.compute.value() > 0))
      throw invalid_input("compute_scores: compute of " + detail::name_of(d) + " is not known; expected a model with a profile of it");
    scores.push_back(d.compute.value());
  }
  return scores;
}

HETPLAN_INLINE distance_matrix network_distances(const cluster& c, bytes message) {
  if (!is_finite(message) || message.value() < 0)
    throw invalid_input("network_distances: message = " + to_text(message.value()) + " B; expected finite >= 0");
  const auto one_way_s = [&](const device& from, const device& to) {
    const route* r = c.network().find(from.id, to.id);
    if (r == nullptr) return std::numeric_limits<double>::infinity();
    return (r->latency + message / c.network().peak_bandwidth(from.id, to.id)).value();
  };
  distance_matrix all(c.size());
  for (const device& a : c.devices()) {
    for (const device& b : c.devices().subspan(a.id.index() + 1))
      all.set(a.id.index(), b.id.index(), std::max(one_way_s(a, b), one_way_s(b, a)));
  }
  return all;
}

namespace detail {

[[nodiscard]] HETPLAN_INLINE double nine_digits(double v) {
  constexpr int bits = 30;
  int exponent = 0;
  const double mantissa = std::frexp(v, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, bits)), exponent - bits);
}

}  // namespace detail

HETPLAN_INLINE average_linkage::average_linkage(const distance_matrix& distances)
    : size_(distances.size()), sum_(size_ * size_), own_(size_, 0), nearest_(size_, std::numeric_limits<double>::infinity()),
      count_(size_, 1), node_(size_), head_(size_), version_(size_, 0), alive_(size_) {
  std::iota(node_.begin(), node_.end(), std::size_t{0});
  std::iota(head_.begin(), head_.end(), std::size_t{0});
  std::iota(alive_.begin(), alive_.end(), std::uint32_t{0});
  for (std::size_t a = 0; a < size_; ++a) {
    for (std::size_t b = 0; b < size_; ++b) {
      sum_[a * size_ + b] = distances(a, b);
      if (a != b) nearest_[a] = std::min(nearest_[a], distances(a, b));
    }
  }
}

HETPLAN_INLINE double average_linkage::distance(std::size_t a, std::size_t b) const {
  return sum_[a * size_ + b] / (count_[a] * count_[b]);
}

HETPLAN_INLINE double average_linkage::spread(std::size_t a) const {
  return count_[a] == 1 ? 0 : own_[a] / (count_[a] * (count_[a] - 1) / 2);
}

HETPLAN_INLINE void average_linkage::offer(std::size_t a, std::size_t b, const rule& may) {
  const double d = distance(a, b);
  if (!std::isfinite(d) || !may(d, inner(a), inner(b))) return;
  candidates_.push({detail::nine_digits(d), static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), version_[a], version_[b]});
}

HETPLAN_INLINE void average_linkage::merge_while(const rule& may) {
  candidates_.clear();
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    for (std::size_t j = i + 1; j < alive_.size(); ++j) offer(alive_[i], alive_[j], may);
  }
  while (!candidates_.empty()) {
    const candidate best = candidates_.pop();
    if (best.version_a != version_[best.a] || best.version_b != version_[best.b]) continue;
    join(best.a, best.b);
    for (const std::uint32_t k : alive_) {
      if (k != best.a) offer(std::min(k, best.a), std::max(k, best.a), may);
    }
  }
}

HETPLAN_INLINE void average_linkage::join(std::size_t a, std::size_t b) {
  merges_.push_back({node_[a], node_[b], distance(a, b)});
  node_[a] = size_ + merges_.size() - 1;
  own_[a] += own_[b] + sum_[a * size_ + b];
  count_[a] += count_[b];
  head_[b] = a;
  ++version_[a];
  ++version_[b];
  alive_.erase(std::find(alive_.begin(), alive_.end(), b));
  for (const std::size_t k : alive_) {
    if (k != a) sum_[k * size_ + a] = sum_[a * size_ + k] += sum_[b * size_ + k];
  }
}

HETPLAN_INLINE std::vector<std::vector<std::size_t>> average_linkage::groups() const {
  std::vector<std::size_t> first(size_), number(size_);
  for (std::size_t i = 0; i < alive_.size(); ++i) number[alive_[i]] = i;
  std::vector<std::vector<std::size_t>> all(alive_.size());
  for (std::size_t i = 0; i < size_; ++i) {
    first[i] = head_[i] == i ? i : first[head_[i]];  // head_[i] is smaller than i, so its group is known
    all[number[first[i]]].push_back(i);
  }
  return all;
}

HETPLAN_INLINE std::vector<double> average_linkage::spreads() const {
  std::vector<double> all;
  for (const std::uint32_t g : alive_) all.push_back(spread(g));
  return all;
}

HETPLAN_INLINE double device_groups::distance_s(std::size_t region, std::size_t other) const {
  if (region == other) return regions[region].inner_s;
  double sum_s = 0;
  for (const device_id a : regions[region].devices) {
    for (const device_id b : regions[other].devices) sum_s += distances(a.index(), b.index());
  }
  return sum_s / static_cast<double>(regions[region].devices.size() * regions[other].devices.size());
}

HETPLAN_INLINE std::optional<std::size_t> device_groups::nearest_region(std::size_t region) const {
  std::optional<std::size_t> nearest;
  double least_s = std::numeric_limits<double>::infinity();
  for (std::size_t other = 0; other < regions.size(); ++other) {
    const double other_s = distance_s(region, other);
    if (other == region || hetplan::at_most(least_s, other_s)) continue;
    least_s = other_s;
    nearest = other;
  }
  return nearest;
}

namespace detail {

using device_namer = std::function<std::string(std::size_t)>;

[[noreturn]] HETPLAN_INLINE void refuse(const std::string& what, double given, const std::string& expected) {
  throw invalid_input("group_devices: " + what + " = " + to_text(given) + "; expected " + expected);
}

HETPLAN_INLINE void check_groups_input(const distance_matrix& distances, std::span<const double> scores, const group_options& options,
                                       const device_namer& name) {
  const std::size_t n = distances.size();
  if (n == 0) throw invalid_input("group_devices: expected at least one device");
  if (scores.size() != n)
    throw invalid_input("group_devices: " + std::to_string(scores.size()) + " scores; expected " + std::to_string(n) +
                        ", one for each device");
  for (const auto& [what, value] :
       {std::pair("network_threshold", options.network_threshold), {"compute_threshold", options.compute_threshold}}) {
    if (!std::isfinite(value) || value < 0) refuse(what, value, "finite >= 0");
  }
  for (std::size_t a = 0; a < n; ++a) {
    if (!std::isfinite(scores[a]) || scores[a] <= 0) refuse("score of " + name(a), scores[a], "finite > 0");
    for (std::size_t b = a + 1; b < n; ++b) {
      if (!(distances(a, b) >= 0)) refuse("distance of " + name(a) + " and " + name(b), distances(a, b), ">= 0");
    }
  }
}

/// Throws invalid_input if some regions are joined to the others by no pair of devices.
HETPLAN_INLINE void check_links(const device_groups& g, const device_namer& name) {
  std::vector<char> reached(g.regions.size(), 0);
  const auto reach = [&](std::size_t first) {
    std::vector<std::size_t> all{first};
    reached[first] = 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t r = 0; r < g.regions.size(); ++r) {
        const auto joined = [&](device_id a) {
          return std::ranges::any_of(g.regions[r].devices, [&](device_id b) { return std::isfinite(g.distances(a.index(), b.index())); });
        };
        if (reached[r] || !std::ranges::any_of(g.regions[all[i]].devices, joined)) continue;
        reached[r] = 1;
        all.push_back(r);
      }
    }
    return all;
  };
  std::vector<std::size_t> devices;  // of the smallest part; of several, the last
  std::size_t parts = 0;
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    if (reached[r]) continue;
    std::vector<std::size_t> part;
    for (const std::size_t of : reach(r)) {
      for (const device_id d : g.regions[of].devices) part.push_back(d.index());
    }
    if (parts++ == 0 || part.size() <= devices.size()) devices = std::move(part);
  }
  if (parts < 2) return;
  std::ranges::sort(devices);
  std::string names;
  constexpr std::size_t listed = 8;
  for (std::size_t i = 0; i < std::min(listed, devices.size()); ++i) names += (i > 0 ? ", " : "") + name(devices[i]);
  if (devices.size() > listed) names += " and " + std::to_string(devices.size() - listed) + " more";
  throw missing_route("group_devices: no pair of routes, there and back, joins the region of " + names +
                      " to another device; expected a link between regions");
}

[[nodiscard]] HETPLAN_INLINE std::vector<std::vector<device_id>> classes_of(const std::vector<device_id>& devices,
                                                                            const std::vector<double>& scores, double threshold) {
  distance_matrix differences(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      const auto [less, more] = std::minmax(scores[devices[i].index()], scores[devices[j].index()]);
      differences.set(i, j, (more - less) / less);
    }
  }
  average_linkage grown(differences);
  grown.merge_while([&](double difference, double, double) { return hetplan::at_most(difference, threshold); });
  std::vector<std::vector<device_id>> classes;
  for (const auto& group : grown.groups()) {
    classes.emplace_back();
    for (const std::size_t i : group) classes.back().push_back(devices[i]);
  }
  return classes;
}

[[nodiscard]] HETPLAN_INLINE device_groups group_named_devices(const distance_matrix& distances, std::span<const double> scores,
                                                               const group_options& options, const device_namer& name) {
  check_groups_input(distances, scores, options, name);
  device_groups g;
  g.distances = distances;
  g.scores.assign(scores.begin(), scores.end());
  g.region_of.resize(distances.size());
  average_linkage grown(distances);
  grown.merge_while([&](double distance, double inner, double other_inner) {
    return hetplan::at_most(distance, (1 + options.network_threshold) * std::min(inner, other_inner));
  });
  const std::vector<double> spreads = grown.spreads();
  for (const auto& group : grown.groups()) {
    device_region region{.devices = {}, .classes = {}, .inner_s = spreads[g.regions.size()]};
    for (const std::size_t d : group) {
      region.devices.emplace_back(d);
      g.region_of[d] = g.regions.size();
    }
    region.classes = classes_of(region.devices, g.scores, options.compute_threshold);
    g.regions.push_back(std::move(region));
  }
  check_links(g, name);
  grown.merge_while([](double, double, double) { return true; });
  g.merges = grown.merges();
  return g;
}

}  // namespace detail

HETPLAN_INLINE device_groups group_devices(const distance_matrix& distances, std::span<const double> scores, const group_options& options) {
  return detail::group_named_devices(distances, scores, options, [](std::size_t d) { return "device " + std::to_string(d); });
}

HETPLAN_INLINE device_groups group_devices(const cluster& c, bytes message, std::span<const double> scores, const group_options& options) {
  return detail::group_named_devices(network_distances(c, message), scores, options,
                                     [&](std::size_t d) { return "device " + std::to_string(d) + " \"" + c[device_id(d)].name + "\""; });
}

}  // namespace hetplan::coarsen
