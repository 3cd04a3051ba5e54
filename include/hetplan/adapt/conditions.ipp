// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/conditions.hpp>

#include <algorithm>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/indices.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE conditions nominal(const cluster& c) {
  return {std::vector<char>(c.size(), 1), std::vector<double>(c.size(), 1),
          c.network().resources() | ranges::views::transform(&resource::capacity) | ranges::to<std::vector>()};
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
  if (before.present != now.present) most = 1;
  for (const auto& [a, b] : ranges::views::zip(before.speed, now.speed)) compare(a, b);
  for (const auto& [a, b] : ranges::views::zip(before.capacity, now.capacity)) compare(a.value(), b.value());
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
  for (auto&& [capacity, usual] : ranges::views::zip(now.capacity, c.network().resources())) {
    capacity = bytes_per_second(round(capacity.value(), usual.capacity.value()));
  }
  return now;
}

HETPLAN_INLINE simulator_options from_the_start(const conditions& now, const cluster& c) {
  simulator_options o;
  for (const auto& [r, usual, capacity] : ranges::views::zip(ranges::views::indices, c.network().resources(), now.capacity)) {
    if (capacity != usual.capacity) o.capacities.push_back({{}, resource_id(r), capacity});
  }
  for (const auto& [d, speed] : ranges::views::enumerate(now.speed)) {
    if (speed != 1) o.speeds.push_back({{}, device_id(d), speed});
  }
  return o;
}

}  // namespace hetplan::adapt
