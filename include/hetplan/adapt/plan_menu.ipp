// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/plan_menu.hpp>

#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/mix/criterion.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE double plan_menu::rounded(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 20)), exponent - 20);
}

HETPLAN_INLINE plan_result plan_menu::operator()(const planning_problem& problem) const {
  plan_result all;
  const auto ask = [&](objective_kind kind, std::optional<seconds> latency) {
    planning_problem wanted = problem;
    wanted.job.objective = kind;
    wanted.job.qoe.latency = latency;
    plan_result r = planner(wanted);
    all.candidates += r.candidates;
    all.elapsed += r.elapsed;
    if (r.plans.empty() && all.plans.empty()) {
      all.status = r.status;
      all.binding = r.binding;
    }
    for (plan& p : r.plans) all.plans.push_back(std::move(p));
  };
  ask(objective_kind::latency, std::nullopt);
  if (all.plans.empty()) return all;
  for (const plan& p : all.plans) {
    if (!p.predicted) throw invalid_input("plan_menu: the planner's plan has no prediction; expected plans that were judged");
  }
  const double fastest = all.plans.front().predicted->response().value();
  const qoe_target& qoe = problem.job.qoe;
  const double whole_s = qoe.iterations ? all.plans.front().predicted->latency.value() * static_cast<double>(*qoe.iterations) : 0;
  if (!qoe.deadline || at_most(whole_s, qoe.deadline->value())) {
    const std::size_t from = all.plans.size();
    ask(objective_kind::energy, std::nullopt);
    const double frugal = all.plans.size() > from ? all.plans[from].predicted->response().value() : fastest;
    for (int i = 1; i <= between && frugal > fastest; ++i) {
      ask(objective_kind::qoe, seconds(rounded(fastest * std::pow(frugal / fastest, static_cast<double>(i) / (between + 1)))));
    }
  }
  std::vector<plan> kept;
  const auto front = mix::pareto_plans(std::span<const plan>(all.plans), mix::response_time{}, mix::total_energy{});
  for (const auto& entry : front.entries()) kept.push_back(all.plans[entry.item]);
  all.plans = std::move(kept);
  all.status = {};
  all.binding.reset();
  return all;
}

}  // namespace hetplan::adapt
