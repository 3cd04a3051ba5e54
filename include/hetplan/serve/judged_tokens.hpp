// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Times of a service that generates tokens, and the memory of its cache, from simulated plans of prompts and steps.

#include <cstdint>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// What is planned: prompts around the typical length, and steps with caches around those of typical requests.
struct judged_token_options {
  token_counts typical = {512, 128};
  int largest = 64;          ///< batch
  judge_models models = {};  ///< memory, energy and network, as for any plan
};

/// The times, how well they fit what was simulated, and what memory leaves to the cache.
struct judged_tokens {
  variant_times times;
  std::int64_t cache_tokens = 0;  ///< of all requests together; 0: no layer has a cache
  double pass_deviation = 0;      ///< the largest |time by the table / simulated time - 1| of prompts
  double step_deviation = 0;      ///< the same of steps
};

/// Returns the times of requests whose lengths differ, in the form of a services file: pass = base + per_token x, with one base for any
/// number of prompts, and step = step(b) + per_cached_token c.
///
///     const judged_tokens t = judged_token_times(zoo::model("llama3-8b"), zoo::cluster("a100-80gb"), roofline{}, planner);
///
/// Prompts     of 1 token, a quarter of the typical number, that and four times as many, alone, and four typical ones at once; base and
///             per_token by least squares of relative deviations. Those without a plan are left out.
/// Steps       of batches of 1, 2, 4, ... up to the largest, and itself, each with caches twice as long as typical requests become, or as
///             the memory allows, and a quarter of that: per_cached_token from the differences, by least squares; a running maximum over
///             batches. They end before the first batch without a plan.
/// Cache       Memory grows by the same amount for each token, which the plans of two contexts tell; what the longest planned prompt works
///             with stays free. Layers with a window count as if they had none.
/// Complexity  O(log largest) calls of the planner.
/// Throws      invalid_input: largest < 1, tokens in < 0 or out < 1, no plan for a prompt of one token (with the planner's reason), one
///             of 0 s; the errors of the planner.
/// Source      ours; semantics, sections 6 (time to the first token, time between tokens) and 11 (service times).
[[nodiscard]] judged_tokens judged_token_times(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                               const adapt::any_planner& planner, const judged_token_options& options = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/judged_tokens.ipp>
#endif
