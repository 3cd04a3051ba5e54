// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/judged_service_time.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::serve {

namespace detail {

/// 1, 2, 4, ... up to the largest, and itself.
HETPLAN_INLINE std::vector<int> sizes_up_to(int largest) {
  std::vector<int> sizes;
  for (std::int64_t b = 1; b < largest; b *= 2) sizes.push_back(static_cast<int>(b));
  sizes.push_back(largest);
  return sizes;
}

/// Seconds of each batch under a workload: its whole inference, or the time between its tokens.
HETPLAN_INLINE batch_curve judged_curve(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                        const adapt::any_planner& planner, const judged_batches& batches, const workload& what) {
  batch_curve c;
  for (const int b : sizes_up_to(batches.largest)) {
    // A batch may stay in one piece, however large it is: servers do not cut batches up unless that is quicker.
    const planning_problem problem{model, gpus, cost, job{.workload = what, .batch = b, .microbatch_sizes = sizes_up_to(b)},
                                   batches.models};
    const plan_result planned = planner(problem);
    if (planned.plans.empty()) {
      if (!c.batch.empty()) break;
      throw invalid_input("judged_service_time: no plan for a batch of 1 of model \"" + escaped(model.name()) + "\" on \"" +
                          escaped(gpus.name()) + "\": " + planned.status.reason);
    }
    const double response_s = judge(planned.plans.front(), model, gpus, problem.cost, batches.models).evaluation.response().value();
    if (!(response_s > 0))
      throw invalid_input("judged_service_time: a batch of " + std::to_string(b) + " of model \"" + escaped(model.name()) +
                          "\" takes 0 s; expected more");
    c.batch.push_back(b);
    c.seconds_at.push_back(c.seconds_at.empty() ? response_s : std::max(response_s, c.seconds_at.back()));
  }
  return c;
}

HETPLAN_INLINE void check_batches(const judged_batches& b) {
  if (b.largest < 1) throw invalid_input("judged_service_time: largest = " + std::to_string(b.largest) + "; expected a batch >= 1");
  if (b.tokens < 2) throw invalid_input("judged_service_time: tokens = " + std::to_string(b.tokens) + "; expected at least 2");
}

}  // namespace detail

HETPLAN_INLINE variant_times judged_service_time(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                 const adapt::any_planner& planner, const judged_batches& batches) {
  detail::check_batches(batches);
  return {.pass = detail::judged_curve(model, gpus, cost, planner, batches, {.mode = mode::inference})};
}

HETPLAN_INLINE variant_times judged_service_time(const planning_graph& prompt, const planning_graph& token, const cluster& gpus,
                                                 const any_cost_model& cost, const adapt::any_planner& planner,
                                                 const judged_batches& batches) {
  auto t = judged_service_time(prompt, gpus, cost, planner, batches);
  t.step = detail::judged_curve(token, gpus, cost, planner, batches,
                                {.mode = mode::generation, .context = batches.context, .tokens = batches.tokens});
  return t;
}

}  // namespace hetplan::serve
