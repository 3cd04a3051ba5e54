// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/plan_rates.hpp>

#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::mix {

HETPLAN_INLINE switch_cost switch_table::cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const {
  if (!from) return start.empty() ? switch_cost{} : start[to];
  return between.empty() || *from == to ? switch_cost{} : between[*from * plans + to];
}

HETPLAN_INLINE void check_plan_rates(const plan_rates& r) {
  const auto fail = [](const std::string& where, const std::string& what) { throw invalid_input("plan_rates: " + where + " " + what); };
  const auto number = [&](const std::string& where, double v) {
    if (!(std::isfinite(v) && v >= 0)) fail(where, "is " + to_text(v) + "; expected a finite number >= 0");
  };
  const auto ok = [](double v) { return std::isfinite(v) && v >= 0; };
  const auto costs = [&](const std::string& name, const std::vector<switch_cost>& all, std::size_t expected) {
    if (!all.empty() && all.size() != expected) {
      fail(name, "has " + std::to_string(all.size()) + " entries; expected none or " + std::to_string(expected));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (ok(all[i].pause_s) && ok(all[i].energy_J)) continue;  // the words are made only for who needs them
      number(name + "[" + std::to_string(i) + "].pause_s", all[i].pause_s);
      number(name + "[" + std::to_string(i) + "].energy_J", all[i].energy_J);
    }
  };
  const std::size_t n = r.plans.size();
  for (std::size_t p = 0; p < n; ++p) {
    if (ok(r.plans[p].rate) && ok(r.plans[p].power_W)) continue;
    number("plans[" + std::to_string(p) + "].rate", r.plans[p].rate);
    number("plans[" + std::to_string(p) + "].power_W", r.plans[p].power_W);
  }
  number("idle_W", r.idle_W);
  costs("switches.between", r.switches.between, n * n);
  costs("switches.start", r.switches.start, n);
}

HETPLAN_INLINE void check_running(const plan_rates& r, std::optional<std::size_t> running) {
  if (running && *running >= r.plans.size()) {
    throw invalid_input("plan_rates: plan " + std::to_string(*running) + " runs, of " + std::to_string(r.plans.size()) +
                        "; expected one of them or none");
  }
}

}  // namespace hetplan::mix
