// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/partial_store.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan::partition {

HETPLAN_INLINE bool partial_plan::no_worse_than(const partial_plan& other) const {
  if (!no_longer(finished, other.finished) || energy_J > other.energy_J || idle_W > other.idle_W || limit_s < other.limit_s ||
      stretch_s > other.stretch_s || stages > other.stages) {
    return false;
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!no_longer(ports[i], other.ports[i])) return false;
  }
  return true;
}

HETPLAN_INLINE bool partial_plan::no_worse_than(const partial_plan& other, double slack) const {
  partial_plan tighter = *this;
  const auto less = [&](tail t) {
    t.rest_s -= slack * t.reach_s;
    t.reach_s /= 1 + slack;
    t.first_rest_s -= slack * t.first_reach_s;
    t.first_reach_s /= 1 + slack;
    return t;
  };
  tighter.finished = less(finished);
  tighter.energy_J /= 1 + slack;
  tighter.idle_W /= 1 + slack;
  tighter.limit_s *= 1 + slack;
  tighter.stretch_s /= 1 + slack;
  tighter.ports = {};
  partial_plan bare = other;
  bare.ports = {};
  if (!tighter.no_worse_than(bare)) return false;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!no_longer(less(ports[i]), other.ports[i])) return false;
  }
  return true;
}

HETPLAN_INLINE std::size_t top_k::capacity() const {
  if (k < 1) throw invalid_input("top_k: k = " + std::to_string(k) + "; expected an integer >= 1");
  return static_cast<std::size_t>(k);
}

}  // namespace hetplan::partition
