// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What deciding over time needs to know of plans: how fast each works, what it draws, what changing between them takes.

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

/// A plan from far away. Work is counted in whatever the job counts: iterations, samples, tokens.
///
/// Source  Dora, section 4.3, eqs 7-8: r_p, e_p and d_p. Deviation: d_p is a table of pairs, and has joules of its own.
struct plan_rate {
  double rate = 0;     ///< work per second; a plan of rate 0 is never run
  double power_W = 0;  ///< of all devices while it runs

  friend bool operator==(const plan_rate&, const plan_rate&) = default;
};

/// What starting a plan takes. The devices idle through the pause; the energy comes on top of that.
struct switch_cost {
  double pause_s = 0;
  double energy_J = 0;

  friend bool operator==(const switch_cost&, const switch_cost&) = default;
};

/// Switching costs between n plans, and from nothing to each; an empty table is free.
///
/// To go on with the plan that ran last costs nothing, also after idling. A detour is expected to save nothing:
/// (a, c) costs no more seconds and joules than (a, b) and (b, c) together. Tables of moved bytes are like that; where one
/// is not, nobody here looks for the detour.
struct switch_table {
  std::vector<switch_cost> between = {};  ///< n x n, by rows: from * n + to; the diagonal is not read
  std::vector<switch_cost> start = {};    ///< n

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const {
    if (!from) return start.empty() ? switch_cost{} : start[to];
    return between.empty() || *from == to ? switch_cost{} : between[*from * plans + to];
  }

  friend bool operator==(const switch_table&, const switch_table&) = default;
};

/// The plans that may run, by index, and what the devices draw together while none does.
struct plan_rates {
  std::vector<plan_rate> plans = {};
  switch_table switches = {};
  double idle_W = 0;

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to) const { return switches.cost(from, to, plans.size()); }

  friend bool operator==(const plan_rates&, const plan_rates&) = default;
};

/// Throws invalid_input for a number that is negative or not finite and for a table of another size. O(n^2).
inline void check_plan_rates(const plan_rates& r) {
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

/// Throws invalid_input unless `running` is none or one of the plans.
inline void check_running(const plan_rates& r, std::optional<std::size_t> running) {
  if (running && *running >= r.plans.size()) {
    throw invalid_input("plan_rates: plan " + std::to_string(*running) + " runs, of " + std::to_string(r.plans.size()) +
                        "; expected one of them or none");
  }
}

}  // namespace hetplan::adapt
