// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/mixing_controller.hpp>

#include <string>

#include <range/v3/view/enumerate.hpp>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::mix {

HETPLAN_INLINE mixture program_mixing::operator()(const plan_rates& rates, const mixing_goal& goal) const {
  if (!solver.exists()) throw invalid_input("program_mixing: holds no LP solver; expected one, such as program_mixing{glpk_lp{}}");
  return mix_relaxed(rates, goal, solver);
}

HETPLAN_INLINE mixture any_mixing_controller::operator()(const plan_rates& rates, const mixing_goal& goal) const {
  check_mixing(rates, goal);
  mixture m = mix_(rates, goal);
  const auto fail = [](const std::string& what) { throw invalid_model("mixing controller: " + what); };
  const auto check_time = [&](const std::string& what, double s) {
    if (!(s >= 0)) fail(what + " takes " + to_text(s) + " s; expected a number >= 0");
  };
  double total_s = m.idle_s;
  check_time("idling", m.idle_s);
  for (const auto& [i, p] : ranges::views::enumerate(m.parts)) {
    const std::string part = "part " + std::to_string(i);
    if (p.plan >= rates.plans.size())
      fail(part + " is plan " + std::to_string(p.plan) + "; expected one below " + std::to_string(rates.plans.size()));
    check_time(part, p.seconds);
    check_time("the pause of " + part, p.pause_s);
    total_s += p.pause_s + p.seconds;
  }
  if (m.status.ok() && !at_most(total_s, goal.horizon_s))
    fail("parts and idling take " + to_text(total_s) + " s; expected at most the horizon, " + to_text(goal.horizon_s) + " s");
  return m;
}

}  // namespace hetplan::mix
