// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/submodular_placement.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

namespace detail {

/// Returns 1 / (1 + P), P = ceil(max a / min a) + ceil(max b / min b).
HETPLAN_INLINE double greedy_guarantee(const placement_candidates& candidates, const std::vector<service>& services) {
  double least_a = std::numeric_limits<double>::infinity();
  double most_a = 0;
  double least_b = least_a;
  double most_b = 0;
  for (const auto* a : candidates.all()) {
    const auto& v = services[a->what.index()].variants[static_cast<std::size_t>(a->variant)];
    least_a = std::min(least_a, v.compute_share);
    most_a = std::max(most_a, v.compute_share);
    least_b = std::min(least_b, v.memory.value());
    most_b = std::max(most_b, v.memory.value());
  }
  return most_a > 0 ? 1 / (1 + std::ceil(most_a / least_a * (1 - 1e-9)) + std::ceil(most_b / least_b * (1 - 1e-9))) : 0;
}

/// A service in a ring: its demand, and the least compute and memory per request and second.
struct knapsack_item {
  double demand;
  double compute;
  double memory_b;
};

/// Returns the value of the fractional knapsack of one resource.
HETPLAN_INLINE double fractional(std::vector<knapsack_item> items, double capacity, double knapsack_item::*weight) {
  std::ranges::sort(items, {}, weight);
  double value = 0;
  for (const auto& i : items) {
    const double whole = i.*weight * i.demand;
    if (whole > capacity) return value + capacity / (i.*weight);
    capacity -= whole;
    value += i.demand;
  }
  return value;
}

HETPLAN_INLINE double knapsack_bound(const placement_question& q, const placement_candidates& candidates, const fluid_goodput& value) {
  double bound = 0;
  for (std::size_t r = 0; r < candidates.rings(); ++r) {
    const auto ring = candidates.ring(r);
    double gpus = 0;
    double memory_b = 0;
    for (std::int32_t p = 0; p < ring.count; ++p) {
      const auto& s = q.cloud[server_id(ring.first + p)];
      for (const auto& g : s.gpus) memory_b += g.memory.value();
      for (const auto& d : s.devices) memory_b += d.unit.memory.value();
      gpus += static_cast<double>(s.gpus.size() + s.devices.size());
    }
    std::vector<knapsack_item> items;
    for (std::size_t l = 0; l < q.services.size(); ++l) {
      knapsack_item item{value.ring_demand(r, service_id(l)), std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::infinity()};
      auto all = candidates.within(r, service_id(l));
      std::ranges::copy(candidates.across(r, service_id(l)), std::back_inserter(all));
      for (const auto& c : all) {
        const auto* a = candidates.allocated(c.pool, c.what);
        const auto& v = q.services[l].variants[static_cast<std::size_t>(a->variant)];
        const auto count = static_cast<double>(a->gpu_count(q.services[l]));
        item.compute = std::min(item.compute, count * (a->alone ? 1 : v.compute_share) / a->capacity);
        item.memory_b = std::min(item.memory_b, count * v.memory.value() / a->capacity);
      }
      if (item.demand > 0 && std::isfinite(item.compute)) items.push_back(item);
    }
    bound += std::min(fractional(items, gpus, &knapsack_item::compute), fractional(items, memory_b, &knapsack_item::memory_b));
  }
  return bound;
}

/// One order and arrival model of the stages.
struct placement_way {
  greedy_order order;
  arrival_model first;
  bool across_before_within = false;  ///< S3 before S2
};

HETPLAN_INLINE submodular_report place_by(const placement_question& q, const placement_candidates& candidates, fluid_goodput value,
                                          const submodular_options& options, const placement_way& way) {
  greedy_placement greedy(candidates, gpu_choice(q.cloud, q.services, q.damage, q.present), value, options.search, way.order);
  submodular_report r;
  value.expect(way.first);
  std::size_t before = 0;
  const auto grown = [&] {
    const auto now = greedy.placed().instances.size();
    return now - std::exchange(before, now);
  };
  greedy.place_prioritised(options.first, options.across_servers);
  r.stages[0] = grown();
  if (way.across_before_within) {
    greedy.place_across_servers();
    r.stages[2] = grown();
  }
  greedy.place_within_servers();
  r.stages[1] = grown();
  if (options.across_servers) greedy.place_across_servers();
  r.stages[2] += grown();
  if (options.arrivals != way.first) {
    value.expect(options.arrivals);
    greedy.place_within_servers();
    if (options.across_servers) greedy.place_across_servers();
    r.stages[3] = grown();
  }
  r.placed = greedy.placed();
  r.value = value.value();
  r.evaluated = greedy.evaluated();
  return r;
}

}  // namespace detail

HETPLAN_INLINE submodular_report place_submodular(const placement_question& q, const service_demand& demand,
                                                  const submodular_options& options) {
  for (const auto& p : options.first) {
    const bool known =
        p.what.valid() && p.what.index() < q.services.size() && (!p.where || (p.where->valid() && p.where->index() < q.cloud.size()));
    if (!known) throw invalid_input("place_submodular: the list of what is placed first names a service or server that is not there");
  }
  const placement_candidates candidates(q.cloud, q.services, q.times, options.operators);
  const fluid_goodput value(q.cloud, q.services, demand, options.reach);
  // Bursty arrivals from the beginning may use GPUs of a server for a last percent that others need across servers; even arrivals give
  // too little to what is hard to serve in time. Small services may leave no room for one across servers.
  std::vector<detail::placement_way> ways;
  for (const auto order : {greedy_order::gain, greedy_order::gain_per_gpu}) {
    if (options.order && order != *options.order) continue;
    ways.push_back({order, arrival_model::even});
    if (options.arrivals != arrival_model::even) ways.push_back({order, options.arrivals});
    if (options.across_servers && !options.order) ways.push_back({order, arrival_model::even, true});
  }
  submodular_report best;
  best.value = -1;
  std::uint64_t evaluated = 0;
  for (const auto& way : ways) {
    auto next = detail::place_by(q, candidates, value, options, way);
    evaluated += next.evaluated;
    if (next.value > best.value) best = std::move(next);
  }
  best.evaluated = evaluated;
  best.guarantee = detail::greedy_guarantee(candidates, q.services);
  best.bound = detail::knapsack_bound(q, candidates, value);
  return best;
}

HETPLAN_INLINE deployment submodular_placement::place(const placement_question& q) const {
  // Without requests the list is placed if nothing stands yet.
  if (!q.requests.empty()) return place_submodular(q, service_demand(q.cloud, q.services, q.requests, q.window), options_).placed;
  if (options_.first.empty() || !q.present.instances.empty()) return q.present;
  return place_submodular(q, service_demand(q.cloud.size(), q.services.size()), options_).placed;
}

}  // namespace hetplan::serve
