// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/greedy_placement.hpp>

#include <cmath>
#include <limits>

namespace hetplan::serve {

HETPLAN_INLINE placement_candidates::placement_candidates(const edge_cloud& cloud, const std::vector<service>& services,
                                                          const any_service_time& times, const parallelism_operators& operators)
    : of_(&services), services_(services.size()), rings_(cloud), on_server_(cloud.size()), in_ring_(rings_.rings()) {
  const auto count = [](std::vector<gpu_pool>& pools, const gpu& unit, bool across) {
    const auto same = std::ranges::find(pools, unit, &gpu_pool::unit);
    if (same == pools.end()) {
      pools.push_back({unit, 1, across});
    } else {
      ++same->count;
    }
  };
  std::vector<std::vector<gpu_pool>> together(rings_.rings());
  for (std::size_t n = 0; n < cloud.size(); ++n) {
    const server_id s(n);
    std::vector<gpu_pool> own;
    std::vector<gpu_pool> lent;
    for (const auto& g : cloud[s].gpus) {
      count(own, g, false);
      count(together[rings_.ring_of(s)], g, true);
    }
    for (const auto& d : cloud[s].devices) count(lent, d.unit, false);
    for (const auto& p : own) on_server_[n].push_back({pool_of(p), placement_site::gpus});
    // A candidate has one device, however many of its kind there are.
    for (const auto& p : lent) on_server_[n].push_back({pool_of({p.unit, 1}), placement_site::device});
  }
  for (std::size_t r = 0; r < rings_.rings(); ++r) {
    for (const auto& p : together[r]) in_ring_[r].push_back({pool_of(p), placement_site::across});
  }
  for (auto& p : pools_) {
    for (std::size_t l = 0; l < services_; ++l) p.allocations.push_back(allocate(service_id(l), services[l], p.what, times, operators));
  }
}

HETPLAN_INLINE std::size_t placement_candidates::pool_of(const gpu_pool& p) {
  const auto same = std::ranges::find(pools_, p, &pool_entry::what);
  if (same != pools_.end()) return static_cast<std::size_t>(same - pools_.begin());
  pools_.push_back({p, {}});
  return pools_.size() - 1;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::at(server_id s, service_id l) const {
  std::vector<placement_candidate> all;
  for (const auto& at : on_server_[s.index()]) {
    const auto* a = allocated(at.pool, l);
    if (a && a->serves((*of_)[l.index()])) all.push_back({rings_.ring_of(s), l, s, at.site, at.pool});
  }
  return all;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::within(std::size_t ring, service_id l) const {
  std::vector<placement_candidate> all;
  for (std::int32_t p = 0; p < rings_[ring].count; ++p)
    std::ranges::copy(at(server_id(rings_[ring].first + p), l), std::back_inserter(all));
  return all;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::across(std::size_t ring, service_id l) const {
  std::vector<placement_candidate> all;
  for (const auto& at : in_ring_[ring]) {
    const auto* a = allocated(at.pool, l);
    if (a && a->serves((*of_)[l.index()]) && a->gpu_count((*of_)[l.index()]) > 1) all.push_back({ring, l, {}, at.site, at.pool});
  }
  return all;
}

HETPLAN_INLINE std::vector<const allocation*> placement_candidates::all() const {
  std::vector<const allocation*> every;
  for (const auto& p : pools_) {
    for (const auto& a : p.allocations) {
      if (a) every.push_back(&*a);
    }
  }
  return every;
}

HETPLAN_INLINE gpu_choice::gpu_choice(const edge_cloud& cloud, const std::vector<service>& services, const cloud_damage& damage,
                                      const deployment& present, gpu_fit fit)
    : cloud_(&cloud), services_(&services), room_(cloud), fit_(fit), present_(cloud.size()) {
  for (std::size_t n = 0; n < cloud.size(); ++n) {
    const server_id s(n);
    if (!damage.is_absent(s)) continue;
    for (std::size_t g = 0; g < cloud[s].gpus.size(); ++g) room_.close_gpu({s, static_cast<int>(g)});
    for (std::size_t d = 0; d < cloud[s].devices.size(); ++d) room_.close_device({s, static_cast<int>(d)});
  }
  for (const auto& g : damage.broken_gpus) room_.close_gpu(g);
  for (const auto& d : damage.gone_devices) room_.close_device(d);
  for (const auto& i : present.instances) present_[i.leader().index()].push_back(i);
}

HETPLAN_INLINE const service_variant& gpu_choice::variant(const allocation& a) const {
  return (*services_)[a.what.index()].variants[static_cast<std::size_t>(a.variant)];
}

HETPLAN_INLINE bool gpu_choice::is_free(const gpu_room& left, const allocation& a, const gpu& unit) const {
  return a.alone ? left.compute == 1 && left.memory_b == unit.memory.value() && room_.fits(left, variant(a)) : room_.fits(left, variant(a));
}

HETPLAN_INLINE std::vector<gpu_slot> gpu_choice::fitting(server_id s, const allocation& a, const gpu& unit) const {
  std::vector<fitting_gpu> found;
  const auto& gpus = (*cloud_)[s].gpus;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const gpu_slot slot{s, static_cast<int>(g)};
    if (gpus[g] == unit && is_free(room_.gpu(slot), a, unit)) found.push_back({slot, room_.gpu(slot)});
  }
  const auto& v = variant(a);
  std::ranges::sort(found, {}, [&](const fitting_gpu& w) {
    if (fit_ == gpu_fit::best) return std::tuple(w.left.compute, w.left.memory_b, w.slot);
    const double memory_left = (w.left.memory_b - v.memory.value()) / unit.memory.value();
    return std::tuple(std::abs(w.left.compute - v.compute_share - memory_left), w.left.compute, w.slot);
  });
  std::vector<gpu_slot> slots;
  slots.reserve(found.size());
  for (const auto& w : found) slots.push_back(w.slot);
  return slots;
}

namespace detail {
[[nodiscard]] HETPLAN_INLINE placement_site where_is(const instance& i) {
  if (i.device) return placement_site::device;
  return i.spans_servers() ? placement_site::across : placement_site::gpus;
}
}  // namespace detail

HETPLAN_INLINE const instance* gpu_choice::standing(server_id leader, const allocation& a, const gpu& unit, placement_site where) const {
  const auto free = [&](const instance& i) {
    auto like = a.unplaced();
    like.gpus = i.gpus;
    like.device = i.device;
    if (i != like || detail::where_is(i) != where) return false;
    if (i.device)
      return is_free(room_.device(*i.device), a, unit) &&
             (*cloud_)[i.device->server].devices[static_cast<std::size_t>(i.device->number)].unit == unit;
    return std::ranges::all_of(i.gpus, [&](const gpu_slot& g) {
      return (*cloud_)[g.server].gpus[static_cast<std::size_t>(g.number)] == unit && is_free(room_.gpu(g), a, unit);
    });
  };
  const auto& here = present_[leader.index()];
  const auto found = std::ranges::find_if(here, free);
  return found == here.end() ? nullptr : &*found;
}

HETPLAN_INLINE std::optional<instance> gpu_choice::on_gpus(server_id s, const allocation& a, const gpu& unit) const {
  if (const auto* same = standing(s, a, unit, placement_site::gpus)) return *same;
  const auto needs = static_cast<std::size_t>(a.gpu_count((*services_)[a.what.index()]));
  auto slots = fitting(s, a, unit);
  if (slots.size() < needs) return std::nullopt;
  slots.resize(needs);
  auto i = a.unplaced();
  i.gpus = std::move(slots);
  return i;
}

HETPLAN_INLINE std::optional<instance> gpu_choice::on_device(server_id s, const allocation& a, const gpu& unit) const {
  if (const auto* same = standing(s, a, unit, placement_site::device)) return *same;
  const auto& devices = (*cloud_)[s].devices;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const gpu_slot slot{s, static_cast<int>(d)};
    if (devices[d].unit != unit || !is_free(room_.device(slot), a, unit)) continue;
    auto i = a.unplaced();
    i.device = slot;
    return i;
  }
  return std::nullopt;
}

HETPLAN_INLINE std::optional<instance> gpu_choice::across(server_id leader, ring_sync::ring ring, const allocation& a,
                                                          const gpu& unit) const {
  if (const auto* same = standing(leader, a, unit, placement_site::across)) return *same;
  const auto needs = static_cast<std::size_t>(a.gpu_count((*services_)[a.what.index()]));
  auto i = a.unplaced();
  const auto add = [&](std::int32_t steps) {
    const auto position = ((leader.value - ring.first + steps) % ring.count + ring.count) % ring.count;
    for (const auto& g : fitting(server_id(ring.first + position), a, unit)) {
      if (i.gpus.size() < needs) i.gpus.push_back(g);
    }
  };
  add(0);
  if (i.gpus.empty()) return std::nullopt;  // the leader must have a GPU
  for (std::int32_t d = 1; d <= ring.count / 2 && i.gpus.size() < needs; ++d) {
    add(d);
    if (2 * d < ring.count) add(-d);
  }
  if (i.gpus.size() < needs) return std::nullopt;
  return i;
}

HETPLAN_INLINE void gpu_choice::take(const instance& i, const allocation& a) {
  auto& here = present_[i.leader().index()];
  if (const auto same = std::ranges::find(here, i); same != here.end()) here.erase(same);
  room_.take(i, variant(a));
  if (!a.alone) return;
  if (i.device) room_.close_device(*i.device);
  for (const auto& g : i.gpus) room_.close_gpu(g);
}

HETPLAN_INLINE deployment cache_placement::place(const placement_question& q) const {
  if (q.requests.empty()) return q.present;
  struct use {
    std::uint64_t count = 0;
    double last_s = 0;
    service_id what;
  };
  const std::size_t services = q.services.size();
  std::vector<use> uses(q.cloud.size() * services);
  for (std::size_t n = 0; n < uses.size(); ++n) uses[n].what = service_id(n % services);
  for (const auto& r : q.requests) {
    auto& u = uses[r.server.index() * services + r.service.index()];
    ++u.count;
    u.last_s = r.arrival_s;
  }
  const placement_candidates candidates(q.cloud, q.services, q.times, operators_);
  gpu_choice gpus(q.cloud, q.services, q.damage, q.present);
  deployment placed;
  const auto put = [&](const placement_candidate& c) {
    const auto* a = candidates.allocated(c.pool, c.what);
    const auto i = gpus.on_server(c, *a, candidates.pool(c.pool).unit);
    if (!i) return false;
    gpus.take(*i, *a);
    placed.instances.push_back(*i);
    return true;
  };
  for (std::size_t n = 0; n < q.cloud.size(); ++n) {
    std::vector<use> here(uses.begin() + static_cast<std::ptrdiff_t>(n * services),
                          uses.begin() + static_cast<std::ptrdiff_t>((n + 1) * services));
    std::erase_if(here, [](const use& u) { return u.count == 0; });
    std::ranges::stable_sort(here, [this](const use& a, const use& b) {
      if (rule_ == cache_eviction::least_recently_used) return a.last_s > b.last_s;
      return rule_ == cache_eviction::least_frequently_used ? a.count > b.count : a.count < b.count;
    });
    for (bool fits = true; fits;) {
      fits = false;
      for (const auto& u : here) {
        const auto all = candidates.at(server_id(n), u.what);
        if (std::ranges::any_of(all, put)) fits = true;
      }
    }
  }
  return placed;
}

HETPLAN_INLINE deployment complementary_placement::place(const placement_question& q) const {
  if (q.requests.empty()) return q.present;
  const service_demand demand(q.cloud, q.services, q.requests, q.window);
  const placement_candidates candidates(q.cloud, q.services, q.times, operators_);
  gpu_choice gpus(q.cloud, q.services, q.damage, q.present, gpu_fit::most_even);
  deployment placed;
  /// Returns the capacity of a placed instance; 0 if none fits.
  const auto put = [&](server_id s, service_id l) {
    for (const auto& c : candidates.at(s, l)) {
      if (c.site != placement_site::gpus) continue;
      const auto* a = candidates.allocated(c.pool, l);
      const auto i = gpus.on_server(c, *a, candidates.pool(c.pool).unit);
      if (!i) continue;
      gpus.take(*i, *a);
      placed.instances.push_back(*i);
      return a->capacity;
    }
    return 0.0;
  };
  for (std::size_t n = 0; n < q.cloud.size(); ++n) {
    const server_id s(n);
    std::vector<double> capacity(q.services.size());
    std::vector<char> full(q.services.size());
    for (;;) {
      std::size_t next = capacity.size();
      double least = 1;
      for (std::size_t l = 0; l < capacity.size(); ++l) {
        const double asked = demand.at(s, service_id(l));
        if (full[l] != 0 || !(asked > 0) || capacity[l] / asked >= least) continue;
        least = capacity[l] / asked;
        next = l;
      }
      if (next == capacity.size()) break;
      const double more = put(s, service_id(next));
      capacity[next] += more;
      full[next] = more > 0 ? 0 : 1;
    }
  }
  return placed;
}

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
