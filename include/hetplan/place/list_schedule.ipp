// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/list_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/core/escaped.hpp>
#include <hetplan/place/fit_memory.hpp>

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
      // Room first, then what is allowed: a filter that leaves no device with room gives way.
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

/// The fastest device that holds all operators, if all of them take less there than so long; devices(): there is none.
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

}  // namespace hetplan::place
