// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What deciding over time needs to know of plans: how fast each works, what it draws, what changing between them takes.

#include <cstddef>
#include <optional>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan::mix {

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

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const;

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
void check_plan_rates(const plan_rates& r);

/// Throws invalid_input unless `running` is none or one of the plans.
void check_running(const plan_rates& r, std::optional<std::size_t> running);

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/plan_rates.ipp>
#endif
