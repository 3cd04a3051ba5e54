// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora: the best plans of its partitioner and of simpler planners, each with the best schedule of its transfers.

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
#include <hetplan/search/choose_savers.hpp>
#include <hetplan/search/draft_search.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

/// Dora as printed in its paper, to show what `dora` adds. View: serial chains, unequal devices with their memories, each pair of devices
/// at its peak bandwidth, no contention.
///
/// Phase 1: the two-substate search for every microbatch size, devices by memory, largest first, ten partial plans per cell. The first of
/// its ten best plans, by its own estimate, that keeps all limits is chosen. Phase 2 finds the best schedule of that plan's transfers. The
/// result is judged on the cluster as it is.
///
/// @param keep  ignored: one plan, the planner's choice.
/// @return      infeasible if none of the ten plans keeps the limits.
/// Complexity   sizes times partition::two_substate_dp, and schedule::refine for one plan.
/// Source       Dora, sections 4.1 and 4.2, Algorithm 1, eqs. 2-6. Deviations: the exact state of the dominant-step estimate in place of
///              the printed critical path, which counts warm-up and drain twice; blocks merge by parameters and FLOP; phase 2 is
///              schedule::refine, as eq. 6 is not linear; warm-up K_p = 2 (P - p) - 1, if nothing fits P - p, then 1.
[[nodiscard]] plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int keep = 1,
                                          const candidate_observer& observer = {});

struct grid_moves {
  int plans = 2;            ///< number of plans to improve
  int judged = 600;         ///< maximum number of simulations per plan, and for the grids of all layers together
  int judged_a_grid = 60;   ///< maximum number of simulations per search of a grid
  std::size_t devices = 8;  ///< number of candidate devices per grid, the fastest ones
};

/// Improves plans by grids under the judge. Moves: all layers on one grid; two adjacent stages merged on one grid; a stage on a grid of
/// some of its own and the unused devices (partition::best_grid); a boundary (partition::move_boundaries). Each start is improved as long
/// as a move helps.
///
/// @param ranked  plans, best first; those with several pipelines, explicit orders or transfer rules are skipped. May be empty.
/// @param row     sequence that stages are cut from, layer by layer.
/// @param budget  is spent; the plans found so far are returned when it is exhausted.
/// @return        plans with grids, best first, not yet judged in full; none if no grid improves the score by a thousandth.
/// Complexity     at most (plans + 1) x judged simulations.
/// Determinism    yes.
/// Source         ours; DeepCEE (section 3.3.3) splits unevenly inside a group.
[[nodiscard]] std::vector<plan> with_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                           const layer_sequence& row, step_budget& budget, const grid_moves& options = {});

/// A planner whose best plan is a start of dora.
struct incumbent_planner {
  /// Treatment of large models: planned whole, in blocks above layers_planned_whole layers, or not at all above few_layers.
  enum class large_models { whole, in_blocks, not_at_all };

  std::function<plan_result(const planning_problem&, const any_objective&, int keep, const candidate_observer&)> plan;
  large_models large = large_models::in_blocks;
  int part_of_steps = 32;  ///< the planner gets the problem's steps divided by this number
};
/// Limit of incumbent_planner::not_at_all in layers, and the number of blocks (few_blocks) that replace those of larger models.
inline constexpr std::size_t few_layers = 40, blocks_of_large_models = 24;

/// Returns the planners that dora asks first, the fastest ones first. Whole models of any size: on_device, data_parallel, and for one
/// inference heft, m_etf, m_sct and getf. In blocks above layers_planned_whole: pipeline, gpipe, pipedream, dapple, edgeshard, alpa, metis,
/// asteroid, hetpipe, even_split. Up to few_layers only: dora_as_printed, and for one inference moirai, with a quarter of the steps.
///
/// Excluded are ddp, zero2 and fsdp, and zero_bubble and deepcee, whose orders can make them faster than dora. dora gives its plans such
/// orders if the job names them (job::orders).
[[nodiscard]] std::vector<incumbent_planner> usual_incumbents();

struct dora_options {
  partitioner_options partitioner = {};                            ///< phase 1
  schedule::refine_options network = {};                           ///< phase 2
  grid_moves grids = {};                                           ///< used if the job allows devices to share tensors
  std::vector<incumbent_planner> incumbents = usual_incumbents();  ///< may be empty
  draft_search_options drafts = {};                                ///< pipelines with several stages of a device and unequal microbatches
  std::vector<schedule::named_schedule> schedules = {};            ///< own schedules, whose orders the best plans in training get, too
  static constexpr int part_for_grids = 8;                         ///< one part in so many of the problem's steps
};

namespace detail {

/// Applies phase 2 to the plans of a search, with the steps that it has left.
[[nodiscard]] plan_result scheduled(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                    const schedule::refine_options& options, const candidate_observer& observer);

/// Returns the best of an answer without grids and of the plans of phase 1 with grids (with_grids), within the steps that are left.
[[nodiscard]] plan_result beside_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& starts,
                                       plan_result answer, int keep, const dora_options& options, candidate_rounds& rounds);

/// Returns the best of an answer and of pipelines whose devices hold several stages (search_drafts), with as many steps as the answer took.
[[nodiscard]] plan_result beside_drafts(const planning_problem& problem, const any_objective& objective, std::vector<plan> starts,
                                        plan_result answer, int keep, const dora_options& options, candidate_rounds& rounds);

/// Returns the best of an answer without memory savers; of phase 1 and drafts with those that the job allows; and of the best of all these,
/// and of fsdp's plans, with the savers of each stage that help most (choose_savers).
[[nodiscard]] plan_result beside_savers(const planning_problem& problem, const any_objective& objective, plan_result answer, int keep,
                                        const dora_options& options, candidate_rounds& rounds);

}  // namespace detail

/// Dora: the plans of the incumbents, phase 1 with these among its candidates, and phase 2 for the best of both. A linear-program solver in
/// the problem helps if a candidate's schedule is not proven optimal. Observers receive the candidates of all parts in one count.
///
/// If the job allows it (job::split_tensors), plans in which devices share tensors compete at the end, with the steps that are left, at
/// least an eighth. If the other parts have enough steps without it, no answer is worse than without such plans.
///
/// Pipelines whose devices hold several stages, with unequal microbatches, compete as well (search_drafts), unless the job wants GPipe or
/// orders by name only. They take about as many steps as all else did, or all steps beyond standard_steps.
///
/// If the job allows memory savers (job::memory_savers), all of that gets half of the steps and does without them; then phase 1 and drafts
/// use them, and each stage of the best plans, and of fsdp's, gets those that help most, zero2 and fsdp included (choose_savers). If half
/// of the steps suffice, no answer is worse than without savers.
///
/// A plan that an incumbent but not phase 1 has found, or that was polished from one, names the incumbent: planner "dora, from asteroid".
///
/// In training, if the job names schedules with orders (job::orders), the best plans also get the orders of each (schedule::choose_orders),
/// with a quarter of the steps, and the plans of zero_bubble compete, too. If the job wants no other schedules, the step law of the search
/// is split_backward.
///
/// @return      as dora_partitioner, which gets half of the steps that the incumbents leave. No plan is worse than the same plan with
///              unscheduled transfers, or than that of an incumbent that plans the whole model and needs no more than its part of the
///              problem's steps. Other plans of incumbents are starting points.
/// Complexity   that of the incumbents, of dora_partitioner, and of schedule::refine for `k` plans.
/// Source       Dora, sections 4.1 and 4.2. Deviations: the incumbents are ours (dora_as_printed has none); phase 1 drops a candidate that
///              breaks an energy or busy limit with unscheduled transfers, though a schedule might mend it.
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep, const dora_options& options,
                               const candidate_observer& observer = {});
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep = 10,
                               const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora.ipp>
#endif
