// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Service times from simulated plans of a model on the GPUs of a variant.

#include <hetplan/adapt/replanning.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// Which batches are planned, and how.
struct judged_batches {
  int largest = 32;          ///< planned are 1, 2, 4, ... up to it, and itself
  int context = 0;           ///< generation: tokens that the cache of each request holds
  int tokens = 16;           ///< generation: tokens of the run of which the step is the mean, >= 2
  judge_models models = {};  ///< memory, energy and network, as for any plan
};

/// Times of a service without tokens, whose requests are samples of `model`: pass(b) is the latency of one inference of a batch of b, by
/// the best plan that the planner has for that batch on all of these GPUs.
///
///     const variant_times t = judged_service_time(model, two_gpus, roofline{}, planner);
///
/// Batches     Each has a plan of its own, may run in microbatches, and runs alone: let the variant have pipeline_parallel = 1.
/// Monotone    A time below that of a smaller batch is raised to it (running maximum): planners do not promise that times grow.
/// Memory      Times end before the first batch for which there is no plan, so largest_batch does.
/// Complexity  O(log largest) calls of the planner, and as many simulations.
/// Throws      invalid_input: largest < 1, tokens < 2, no plan for a batch of 1 (with the planner's reason), a plan of 0 s; what
///             planner and judge throw.
/// Source      ours; semantics, sections 6 (iterations, time between tokens) and 11 (service times).
[[nodiscard]] variant_times judged_service_time(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                const adapt::any_planner& planner, const judged_batches& batches = {});

/// Times of a service that generates tokens: pass(b) is one inference of b samples of `prompt`, step(b) the time between tokens when b
/// requests generate together, and a sample of `token` is one token.
///
/// All prompts are as long as a sample of `prompt`: per_token_s is 0. For others set it, and take as much for a sample off the pass.
[[nodiscard]] variant_times judged_service_time(const planning_graph& prompt, const planning_graph& token, const cluster& gpus,
                                                const any_cost_model& cost, const adapt::any_planner& planner,
                                                const judged_batches& batches = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/judged_service_time.ipp>
#endif
