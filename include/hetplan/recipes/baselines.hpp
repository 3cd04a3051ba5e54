// SPDX-License-Identifier: BSL-1.0
#pragma once
/// HetPipe: pipelines inside virtual workers, data parallelism among them through a parameter server.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

// Zero bubble: a pipeline of single devices whose backwards are split, so that gradients of weights fill its gaps.

/// The cuts of `pipeline` with the orders that the job names, or by default those of zero bubble (`original`) and the best that a search
/// finds (`automatic`), each judged on the network as it is. Then the same devices as a V: each has two stages, the last of them where the
/// first is, cut so that the longest is as short as possible, with ZB-V's orders and those of half and a third of the memory.
///
/// Outside training it is `pipeline`.
///
/// @return      no plan is worse than `pipeline`'s with those orders.
/// Complexity   that of pipeline with half of the steps, and of schedule::choose_orders for its best plans.
/// Throws       invalid_input (keep < 1); what pipeline throws.   Determinism  yes, but for `elapsed`.
/// Source       Qi et al., Zero Bubble Pipeline Parallelism, 2023; Pipeline Parallelism with Controllable Memory, 2024. Deviation: their
///              devices are equal, and stages whole blocks.
[[nodiscard]] plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                      const candidate_observer& observer = {});

// Alpa: stages on groups of equal devices, with tensor parallelism where accelerators share a machine.

/// Sees a chain and equal devices, each with the least memory of all, on equal wires; no contention.
///
/// Minimises sum + (M - 1) largest over the stages; inside a stage, samples are shared evenly among devices, and each device
/// splits tensors among its accelerators in the degree that is fastest.
///
/// @return  one plan, the planner's choice.
/// Source   Alpa (Zheng et al., 2022), section 5, eqs. 2-4. Deviations: the intra-operator choice is the degree of tensor
///          parallelism inside a device, no integer program over operators; groups of any number of machines; exact instead of
///          a sweep over largest stages; see choose_on_view.
[[nodiscard]] inline plan_result alpa(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                      const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(problem.cluster);
  return plan_on_view(problem, objective, "alpa", chain, view, {.law = sum_and_largest{}}, observer);
}

// Dapple: synchronous hybrid pipelines for clusters of equal machines.

/// Sees a chain and equal devices on equal wires; neither memory nor contention.
///
/// Minimises warm-up + steady phase + drain around the pivot stage, which is the dominant step; samples of a replicated stage
/// are shared evenly; warm-up 2 (P - p) - 1, its policy for stages whose transfers take as long as their work.
///
/// @return  one plan, the planner's choice.
/// Source   Dapple (Fan et al., 2021), sections 3 and 4. Deviations: machines of one device each, so that its three placement
///          policies coincide; see choose_on_view.
[[nodiscard]] inline plan_result dapple(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                        const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(without_memory_limits(problem.cluster));
  return plan_on_view(problem, objective, "dapple", chain, view, {.warmups = {warmup_rule::hide_communication}}, observer);
}

// EdgeShard: pipelines of single unequal devices, for inference first of all.

/// Sees a chain, unequal devices with their memories, and bandwidths between pairs; no contention, no replicated stages.
///
/// Consecutive layers on some of the devices in any order, one per stage, so that the largest step is smallest; where the job
/// has one microbatch only, nothing is pipelined and the sum of all steps counts.
///
/// @return  one plan, the planner's choice.
/// Source   EdgeShard (Zhang et al., 2024), its two dynamic programs for throughput and for latency. Deviations: also training,
///          as Dora, section 6.1, runs it; any layer may be the first on any device; see choose_on_view.
[[nodiscard]] inline plan_result edgeshard(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster);
  const bool one_microbatch = problem.job.candidate_microbatch_sizes().front() == problem.job.batch;
  return plan_on_view(problem, objective, "edgeshard", chain, view,
                      {.law = one_microbatch ? any_step_law(sum_and_largest{}) : largest_step{}, .largest_group = 1}, observer);
}

// GPipe: stages of balanced work on equal devices, all forwards before all backwards.

/// Sees a chain and equal devices; neither memory nor what the network takes.
///
/// Consecutive layers, one device per stage, so that the largest stage takes as little time as possible; microbatches pass
/// forward through all stages, then backward.
///
/// @return  one plan, the planner's choice.
/// Source   GPipe (Huang et al., 2019), section 2, and Asteroid, section 5.5, on what its partition overlooks. Deviations: see
///          choose_on_view; no recomputation of activations.
[[nodiscard]] inline plan_result gpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = without_network_costs(homogeneous(without_memory_limits(problem.cluster)));
  return plan_on_view(problem, objective, "gpipe", chain, view,
                      {.law = largest_step{}, .schedule = schedule_kind::gpipe, .largest_group = 1}, observer);
}

// Metis: load-balanced hybrid pipelines on unequal devices.

/// Sees a chain, unequal devices with their memories, and bandwidths between pairs; no contention.
///
/// Groups of devices in every order of their classes; samples of a stage go to its devices in proportion to what they can do,
/// within memory; minimises sum + (M - 1) largest over the steps.
///
/// @return  one plan, the planner's choice.
/// Source   Metis (Um et al., 2024): heterogeneity-aware groups, load balancing, and the latency of its cost estimator.
///          Deviations: exact shares and cuts instead of its balancing rounds, and no cap on the groups that are tried; see
///          choose_on_view.
[[nodiscard]] inline plan_result metis(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster);
  return plan_on_view(problem, objective, "metis", chain, view, {.law = sum_and_largest{}}, observer);
}

// PipeDream: hybrid pipelines of largest throughput for clusters of equal machines.

/// Sees a chain and equal devices on equal wires; neither memory nor contention, nor that a synchronous pipeline fills and
/// drains.
///
/// Minimises the largest step: a stage's work, its reduction, which hides behind work, or a transfer. 1F1B with as many
/// microbatches in flight as stages follow.
///
/// @return  one plan, the planner's choice.
/// Source   PipeDream (Narayanan et al., 2019), section 3.1. Deviations: synchronous, as in Asteroid, section 5.1; one level of
///          the network; see choose_on_view.
[[nodiscard]] inline plan_result pipedream(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(without_memory_limits(problem.cluster));
  return plan_on_view(problem, objective, "pipedream", chain, view, {.law = largest_step{}}, observer);
}

/// Sees a chain, unequal devices and bandwidths between pairs; neither memory nor contention.
///
/// For every number of virtual workers that divides the batch: devices are dealt out so that workers are alike (equal
/// distribution), each worker is a pipeline of single devices whose largest step is smallest, and after the iteration every
/// stage sends its gradients to the server, the fastest device, and gets the sum back. The number and the microbatch size for
/// which the slowest worker's round and the exchange of one model there and back take least time win.
///
/// @return  one plan, the planner's choice.
/// Source   HetPipe (Park et al., 2020), sections 3, 5 and 6. Deviations: synchronous (staleness 0); one server; a dynamic program instead
///          of an integer one; see choose_on_view.
[[nodiscard]] plan_result hetpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                  const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/baselines.ipp>
#endif
