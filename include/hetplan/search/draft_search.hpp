// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Search for pipelines whose devices hold several stages, with unequal microbatches: simulated annealing of drafts under their estimate.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <hetplan/partition/pipeline_draft.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

struct draft_search_options {
  int slots = 2;                     ///< most stages of a device; 0: no drafts
  std::size_t starts = 4;            ///< given plans that become first drafts, distinct in their devices
  std::size_t first_seeds = 10;      ///< first drafts that are improved, the best
  std::size_t seeds = 4;             ///< drafts that are improved beyond the first round
  std::size_t boundaries = 16;       ///< places where first drafts are cut
  std::size_t devices = 6;           ///< fastest devices, of which first drafts are made
  std::size_t most_passes = 64;      ///< most microbatches of a draft, unless the job's largest size needs more
  long long steps_per_choice = 300;  ///< effort in steps of the budget, times blocks and devices
  int threads = 1;                   ///< drafts improved at the same time; 0: as many as the hardware runs; results do not depend on it
  std::uint64_t seed = 1;
};

/// Tasks and transfers of estimated drafts that count as one step (step_budget).
inline constexpr long long replayed_per_step = 12;

/// Improves drafts of pipelines by simulated annealing under draft_replay. Moves: a boundary or several, two devices, a device, a stage cut
/// in two or given up, a sample from one microbatch to another, a microbatch cut in two or joined with the next, their number, the network
/// policy, the rule of a device, recomputation where the job allows it.
///
/// First drafts: the given plans, as far as they are pipelines that can be cut at the blocks of the sequence; the best by the folded step
/// law (partition::folded_dp); without backwards the shortest ways of one microbatch through all devices, where a device may have any
/// number of stages; and with pins, which all drafts keep, every pipeline of equal microbatches if there are few. The best are
/// improved for a while, then the best of these, half of those, and so on.
///
/// @param tables  of a sequence that may be cut between any two blocks.
/// @param steps   limit on the effort, in steps of the budget; the budget is spent.
/// @return        drafts that fit, distinct, the best first; none for a job whose plans need other orders (gpipe, only_orders).
/// Complexity     steps.   Determinism  by options.seed; not by the number of threads.
/// Source         ours.
[[nodiscard]] std::vector<partition::pipeline_draft> search_drafts(const planning_problem& problem, const any_objective& objective,
                                                                   const partition::search_tables& tables, const std::vector<plan>& starts,
                                                                   step_budget& budget, long long steps,
                                                                   const draft_search_options& options = {});

/// Returns a plan as a draft, cut at the nearest boundaries of the tables' sequence; nothing if its stages are no runs of the sequence.
/// Devices that share a stage get a part of its blocks each.
[[nodiscard]] std::optional<partition::pipeline_draft> draft_of(const plan& p, const partition::search_tables& tables);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/draft_search.ipp>
#endif
