// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/list_schedule.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/core/escaped.hpp>
#include <hetplan/place/fit_memory.hpp>

namespace HETPLAN_NAMESPACE::place {

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
      return {.status = {outcome::infeasible,
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
    if (!s.found()) s.status = {outcome::infeasible, "no route joins two devices of the placement"};
    return s;
  }
  fitting f = repair_memory(t, device);
  if (f.device.empty()) {
    std::string why =
        f.reason.empty() ? "memory: no placement was found that fits; whether there is one is not known" : std::move(f.reason);
    return {.status = {outcome::infeasible, std::move(why)}};
  }
  operator_schedule s = schedule_in_order(t, r, order, f.device);
  if (!s.found()) s.status = {outcome::infeasible, "no route joins two devices of a placement that fits"};
  return s;
}

HETPLAN_INLINE operator_schedule one_device(const placement_table& t, const placement_rules& r) {
  operator_schedule best{.status = {outcome::infeasible, "no device holds all operators"}};
  for (std::size_t k = 0; k < t.devices(); ++k) {
    const std::vector<std::size_t> device(t.size(), k);
    if (largest_overflow_bytes(t, device) > 0) continue;
    operator_schedule s = schedule_in_order(t, r, {t.order().begin(), t.order().end()}, device);
    if (s.makespan_s < best.makespan_s) best = std::move(s);
  }
  return best;
}

}  // namespace HETPLAN_NAMESPACE::place
