// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora: the partitioner's best plans, beside those of simpler planners, each with the best schedule of its transfers; the best of
/// all wins.

#include <functional>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora_partitioner.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

// Dora as its paper prints it: what our dora adds to it shows in the difference.

/// Sees the graph as serial chains, unequal devices with their memories, and every pair of devices at its peak bandwidth; no contention.
///
/// Phase 1: the two-substate search, devices by memory, largest first, for every microbatch size; ten partial plans per cell. Of the ten
/// best plans by its own estimate it takes the first that keeps all limits. Phase 2: that one gets the best schedule of its transfers,
/// and is judged on the cluster as it is.
///
/// @param keep  is not read: one plan, the planner's choice.
/// @return      infeasible where none of the ten keeps the limits.
/// Complexity   sizes times partition::two_substate_dp, and schedule::refine for one plan.
/// Source       Dora, sections 4.1 and 4.2, Algorithm 1, eqs. 2-6. Deviations: the exact state of the dominant-step estimate instead of
///              the printed critical path, which counts warm-up and drain twice; blocks merge by parameters and FLOP; phase 2 is
///              schedule::refine, for eq. 6 is not linear; warm-up K_p = 2 (P - p) - 1, P - p where
///              nothing fits, then 1.
[[nodiscard]] plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int keep = 1,
                                          const candidate_observer& observer = {});

// Plans in which devices share tensors, made of plans in which they do not.

struct grid_moves {
  int plans = 2;            ///< that are improved
  int judged = 600;         ///< simulations of each at most, and of the grids of all layers together
  int judged_a_grid = 60;   ///< of one search of a grid
  std::size_t devices = 8;  ///< that one grid is searched among: the fastest
};

/// Moves under the judge: all layers on one grid; two stages that are next to each other on one; a stage on a grid of its devices and of
/// those that are free, or of some of them (partition::best_grid); a boundary (partition::move_boundaries). From each start as often as
/// one helps.
///
/// @param ranked  plans, best first; those with several pipelines, orders or rules of transfers of their own are left out. May be empty.
/// @param row     in which stages are cut, layer by layer.
/// @param budget  is spent; when it is, plans stay as they are by then.
/// @return        plans with grids, best first, not judged in full yet; none where no grid gains a thousandth.
/// Complexity     at most (plans + 1) x judged simulations.
/// Determinism    yes.
/// Source         ours; DeepCEE (section 3.3.3) splits unevenly inside a group.
[[nodiscard]] std::vector<plan> with_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                           const layer_sequence& row, step_budget& budget, const grid_moves& options = {});

/// A planner whose best plan dora starts with.
struct incumbent_planner {
  /// What it plans where the model has more than `few_layers`.
  enum class large_models { whole, in_blocks, not_at_all };

  std::function<plan_result(const planning_problem&, const any_objective&, int keep, const candidate_observer&)> plan;
  large_models large = large_models::in_blocks;
  int part_of_steps = 32;  ///< it gets the problem's steps divided by this
};
/// Planners that would take long do not plan models of more layers, or plan them in so many blocks (few_blocks).
inline constexpr std::size_t few_layers = 40, layers_planned_whole = 100, blocks_of_large_models = 24;

/// The planners asked first, those that take least first. Large models as a whole: on_device, data_parallel, and for one inference heft,
/// m_etf, m_sct and getf; in blocks above layers_planned_whole: pipeline, gpipe, pipedream, dapple, edgeshard, alpa, metis, asteroid,
/// hetpipe, even_split; not at all above few_layers: dora_as_printed, and for one inference moirai, which gets a quarter of the steps.
///
/// Not among them: ddp, zero2, fsdp, and zero_bubble and deepcee, whose orders can make them faster than dora; dora gives its plans such
/// orders where the job names them (job::orders).
[[nodiscard]] std::vector<incumbent_planner> usual_incumbents();

struct dora_options {
  partitioner_options partitioner = {};                            ///< phase 1
  schedule::refine_options network = {};                           ///< phase 2
  grid_moves grids = {};                                           ///< where the job allows devices to share tensors
  std::vector<incumbent_planner> incumbents = usual_incumbents();  ///< may be empty
  std::vector<schedule::named_schedule> schedules = {};            ///< of one's own, whose orders the best plans in training are given, too
  static constexpr int part_for_grids = 8;                         ///< of the problem's steps, one such part
};

namespace detail {

/// Phase 2 over what a search has found, with the steps that it has left.
[[nodiscard]] plan_result scheduled(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                    schedule::refine_options options, const candidate_observer& observer);

/// An answer without grids, and what becomes of the plans of phase 1 where devices share tensors (with_grids). Takes steps that the answer
/// has left.
[[nodiscard]] plan_result beside_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& starts,
                                       plan_result answer, int keep, const dora_options& options, candidate_rounds& rounds);

}  // namespace detail

/// The incumbents' plans, phase 1 with them among its candidates, and phase 2 over the best of both. A linear-program solver in the
/// problem helps where a candidate's schedule is not proven optimal. Observers receive the candidates of all parts in one count.
///
/// Where the job allows it (job::split_tensors), plans in which devices share tensors compete at last, in the steps that are left: an
/// eighth is kept for them. Where that leaves the rest enough, no answer is worse than without.
///
/// A plan that an incumbent has found and phase 1 has not, or that polishing made of such a plan, names it as its planner: "dora, from
/// asteroid".
///
/// In training, where the job names schedules that make orders (job::orders), the best plans are given the orders of each, too
/// (schedule::choose_orders), with a quarter of the steps; where it wants no others, the search adds pipelines up by split_backward. The
/// plans of zero_bubble compete, too.
///
/// @return      as dora_partitioner, which gets half of the steps that the incumbents leave. No plan is worse than the same plan with
///              its transfers left alone, nor than that of an incumbent that plans the model as a whole and needs no more than its part of
///              the problem's steps; what else incumbents find are starting points.
/// Complexity   that of the incumbents, of dora_partitioner, and of schedule::refine for `k` plans.
/// Source       Dora, sections 4.1 and 4.2. Deviations: the incumbents are ours (dora_as_printed has none); a candidate that breaks an
///              energy or busy limit with its transfers left alone is dropped in phase 1, though a schedule might mend it.
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep, const dora_options& options,
                               const candidate_observer& observer = {});
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep = 10,
                               const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora.ipp>
#endif
