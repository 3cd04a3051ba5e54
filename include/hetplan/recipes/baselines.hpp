// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Baseline planners: zero bubble, Alpa, Dapple, EdgeShard, GPipe, Metis, PipeDream and HetPipe.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Zero bubble: pipelines of single devices with split backwards, whose weight gradients fill the bubbles. Outside training: `pipeline`.
///
/// The cuts of `pipeline` get the orders that the job names, by default those of zero bubble (`original`) and the best of a search
/// (`automatic`). The same devices then form a V: each has two stages, the first device also the last stage, cut so that the longest stage
/// is shortest, with the orders of ZB-V and of its variants with half and a third of the memory. All are judged on the network as it is.
///
/// @return      no plan is worse than `pipeline`'s with those orders.
/// Complexity   that of pipeline with half of the steps, and of schedule::choose_orders for its best plans.
/// Throws       invalid_input (keep < 1); as pipeline.   Determinism  yes, except for `elapsed`.
/// Source       Qi et al., Zero Bubble Pipeline Parallelism, 2023; Pipeline Parallelism with Controllable Memory, 2024. Deviations: unequal
///              devices; stages of whole blocks.
[[nodiscard]] plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                      const candidate_observer& observer = {});

/// Alpa: stages on groups of equal devices, with tensor parallelism among the accelerators of a device.
///
/// View: a chain, equal devices with the least memory of all on equal wires, no contention. Minimises sum + (M - 1) largest over the
/// stages. Inside a stage, devices share samples evenly, and each splits tensors among its accelerators to the fastest degree.
///
/// @return  one plan, the planner's choice.
/// Source   Alpa (Zheng et al., 2022), section 5, eqs. 2-4. Deviations: the intra-operator choice is the degree of tensor parallelism
///          inside a device, not an integer program over operators; groups of any number of machines; exact, without a sweep over largest
///          stages; see choose_on_view.
[[nodiscard]] inline plan_result alpa(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                      const candidate_observer& observer = {}) {
  return plan_on_view(problem, objective, "alpa", chain_view(problem.model), homogeneous(problem.cluster), {.law = sum_and_largest{}},
                      observer);
}

/// Dapple: synchronous hybrid pipelines for clusters of equal machines.
///
/// View: a chain, equal devices on equal wires, no memory limits, no contention. Minimises warm-up + steady phase + drain around the pivot
/// stage, which is the dominant step. A replicated stage shares samples evenly. Warm-up is 2 (P - p) - 1, Dapple's policy for stages whose
/// transfers take as long as their work.
///
/// @return  one plan, the planner's choice.
/// Source   Dapple (Fan et al., 2021), sections 3 and 4. Deviations: machines of one device, for which its three placement policies
///          coincide; see choose_on_view.
[[nodiscard]] inline plan_result dapple(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                        const candidate_observer& observer = {}) {
  return plan_on_view(problem, objective, "dapple", chain_view(problem.model), homogeneous(without_memory_limits(problem.cluster)),
                      {.warmups = {warmup_rule::hide_communication}}, observer);
}

/// EdgeShard: pipelines of single unequal devices, primarily for inference.
///
/// View: a chain, unequal devices with their memories, bandwidths between pairs; no contention, no replicated stages. Assigns consecutive
/// layers to some of the devices in any order, one stage each, and minimises the largest step; with one microbatch, the sum of all steps.
///
/// @return  one plan, the planner's choice.
/// Source   EdgeShard (Zhang et al., 2024), its two dynamic programs for throughput and for latency. Deviations: also training, as in Dora,
///          section 6.1; any layer may be the first on any device; see choose_on_view.
[[nodiscard]] inline plan_result edgeshard(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  const bool one_microbatch = problem.job.candidate_microbatch_sizes().front() == problem.job.batch;
  return plan_on_view(problem, objective, "edgeshard", chain_view(problem.model), uncontended(problem.cluster),
                      {.law = one_microbatch ? any_step_law(sum_and_largest{}) : largest_step{}, .largest_group = 1}, observer);
}

/// GPipe: stages of balanced work on equal devices, with all forwards before all backwards.
///
/// View: a chain, equal devices; no memory limits, no network costs. Minimises the largest time of a stage of consecutive layers, one
/// device per stage.
///
/// @return  one plan, the planner's choice.
/// Source   GPipe (Huang et al., 2019), section 2, and Asteroid, section 5.5, on what its partition ignores. Deviations: see
///          choose_on_view; no recomputation of activations.
[[nodiscard]] inline plan_result gpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  return plan_on_view(problem, objective, "gpipe", chain_view(problem.model),
                      without_network_costs(homogeneous(without_memory_limits(problem.cluster))),
                      {.law = largest_step{}, .schedule = schedule_kind::gpipe, .largest_group = 1}, observer);
}

/// Metis: load-balanced hybrid pipelines on unequal devices.
///
/// View: a chain, unequal devices with their memories, bandwidths between pairs; no contention. Searches groups of devices in every order
/// of their classes, with a stage's samples in proportion to speeds within memory, and minimises sum + (M - 1) largest over the steps.
///
/// @return  one plan, the planner's choice.
/// Source   Metis (Um et al., 2024): heterogeneity-aware groups, load balancing, latency of its cost estimator. Deviations: exact shares
///          and cuts in place of its balancing rounds; no cap on the groups tried; see choose_on_view.
[[nodiscard]] inline plan_result metis(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  return plan_on_view(problem, objective, "metis", chain_view(problem.model), uncontended(problem.cluster), {.law = sum_and_largest{}},
                      observer);
}

/// PipeDream: hybrid pipelines with the largest throughput for clusters of equal machines.
///
/// View: a chain, equal devices on equal wires, no memory limits, no contention, no filling and draining of a synchronous pipeline.
/// Minimises the largest step: a stage's work, its reduction, which hides behind work, or a transfer. 1F1B with as many microbatches in
/// flight as there are following stages.
///
/// @return  one plan, the planner's choice.
/// Source   PipeDream (Narayanan et al., 2019), section 3.1. Deviations: synchronous, as in Asteroid, section 5.1; one level of the
///          network; see choose_on_view.
[[nodiscard]] inline plan_result pipedream(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  return plan_on_view(problem, objective, "pipedream", chain_view(problem.model), homogeneous(without_memory_limits(problem.cluster)),
                      {.law = largest_step{}}, observer);
}

/// HetPipe: pipelines inside virtual workers, and data parallelism among the workers through a parameter server.
///
/// View: a chain, unequal devices, bandwidths between pairs; no memory limits, no contention. For every number of virtual workers that
/// divides the batch, devices are dealt out so that workers are alike (equal distribution). Each worker is a pipeline of single devices
/// with the least largest step. After an iteration every stage sends its gradients to the server, the fastest device, and receives the sum.
/// The number of workers and the microbatch size minimise the slowest worker's round plus the exchange of one model in both directions.
///
/// @return  one plan, the planner's choice.
/// Source   HetPipe (Park et al., 2020), sections 3, 5 and 6. Deviations: synchronous (staleness 0); one server; a dynamic program in place
///          of an integer program; see choose_on_view.
[[nodiscard]] plan_result hetpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                  const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/baselines.ipp>
#endif
