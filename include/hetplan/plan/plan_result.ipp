// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/plan_result.hpp>

#include <algorithm>
#include <span>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE double keep_qoe::score(seconds response, joules energy) const {
  return energy.value() + lambda_J_per_s * std::max(0.0, (response - latency).value());
}

HETPLAN_INLINE objective_of_job::objective_of_job(const job& j) {
  switch (j.effective_objective()) {
    case objective_kind::latency: chosen_ = minimize_latency{}; break;
    case objective_kind::throughput: chosen_ = maximize_throughput{static_cast<double>(j.batch)}; break;
    case objective_kind::energy: chosen_ = minimize_energy{}; break;
    case objective_kind::qoe:
      if (!j.qoe.latency) throw invalid_input("objective_of_job: objective qoe needs qoe.latency");
      chosen_ = keep_qoe{*j.qoe.latency, j.qoe.lambda_J_per_s};
      break;
  }
}

HETPLAN_INLINE double objective_of_job::score(seconds response, joules energy) const {
  return std::visit([&](const auto& o) { return o.score(response, energy); }, chosen_);
}

HETPLAN_INLINE double objective_of_job::score(const evaluation& e) const {
  return std::visit([&](const auto& o) { return hetplan::score(o, e); }, chosen_);
}

HETPLAN_INLINE std::vector<plan> plans_of(std::span<const ranked_plan> ranked) {
  std::vector<plan> plans;
  for (const ranked_plan& r : ranked) plans.push_back(r.plan);
  return plans;
}

}  // namespace hetplan
