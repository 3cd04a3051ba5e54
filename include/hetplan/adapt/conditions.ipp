// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/conditions.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE conditions nominal(const cluster& c) {
  conditions now{std::vector<char>(c.size(), 1), std::vector<double>(c.size(), 1), {}};
  for (const resource& r : c.network().resources()) now.capacity.push_back(r.capacity);
  return now;
}

HETPLAN_INLINE void apply(conditions& now, const event& e) {
  if (const auto* r = std::get_if<capacity_becomes>(&e.what)) now.capacity[r->resource.index()] = r->capacity;
  if (const auto* s = std::get_if<speed_becomes>(&e.what)) now.speed[s->device.index()] = s->speed;
  if (const auto* l = std::get_if<device_leaves>(&e.what)) now.present[l->device.index()] = 0;
  if (const auto* j = std::get_if<device_joins>(&e.what)) now.present[j->device.index()] = 1;
}

HETPLAN_INLINE double change(const conditions& before, const conditions& now) {
  double most = 0;
  const auto compare = [&](double old_value, double new_value) {
    if (old_value != new_value) most = std::max(most, std::abs(new_value / old_value - 1));
  };
  for (std::size_t d = 0; d < now.present.size(); ++d) {
    if (before.present[d] != now.present[d]) most = std::max(most, 1.0);
    compare(before.speed[d], now.speed[d]);
  }
  for (std::size_t r = 0; r < now.capacity.size(); ++r) compare(before.capacity[r].value(), now.capacity[r].value());
  return most;
}

HETPLAN_INLINE double rounded_value(double usual, long k) {
  double factor = 1;  // not a power, which may differ in its last digit from library to library
  for (long i = 0; i < std::abs(k); ++i) factor *= rounding_step;
  return k < 0 ? usual / factor : usual * factor;
}

HETPLAN_INLINE conditions rounded(conditions now, const cluster& c) {
  const auto round = [](double value, double usual) {
    return value > 0 && usual > 0 ? rounded_value(usual, std::lround(rounding_steps(value / usual))) : value;
  };
  for (double& s : now.speed) s = round(s, 1);
  for (std::size_t r = 0; r < now.capacity.size(); ++r) {
    now.capacity[r] = bytes_per_second(round(now.capacity[r].value(), c.network().resources()[r].capacity.value()));
  }
  return now;
}

HETPLAN_INLINE simulator_options from_the_start(const conditions& now, const cluster& c) {
  simulator_options o;
  for (const resource& r : c.network().resources()) {
    const resource_id id(&r - c.network().resources().data());
    if (now.capacity[id.index()] != r.capacity) o.capacities.push_back({{}, id, now.capacity[id.index()]});
  }
  for (const device& d : c.devices()) {
    if (now.speed[d.id.index()] != 1) o.speeds.push_back({{}, d.id, now.speed[d.id.index()]});
  }
  return o;
}

}  // namespace HETPLAN_NAMESPACE::adapt
