// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search under the judge: polishing of good plans, and mending of plans that break a limit.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

// Local search around a plan: moves boundaries between stages and swaps the stages' devices while a judge's score improves.

namespace detail {

/// A plan whose stages are consecutive runs of a sequence, with the moves of the local search.
class movable_plan {
 public:
  /// Returns nothing if the stages are no consecutive runs that cover the sequence, or if a run is no stage of it (is_stage).
  static std::optional<movable_plan> of(plan p, const layer_sequence& s);
  [[nodiscard]] const plan& get() const { return plan_; }
  [[nodiscard]] std::size_t stages() const { return plan_.stages.size(); }
  /// Returns the index in the sequence of stage s's first block.
  [[nodiscard]] std::size_t first(std::size_t s) const { return first_[s]; }

  /// Returns the plan with the boundary before stage i at `to`; nothing if either side would be no stage of the sequence.
  [[nodiscard]] std::optional<movable_plan> moved(std::size_t i, std::size_t to) const;
  [[nodiscard]] movable_plan swapped(std::size_t i, std::size_t j) const;

 private:
  movable_plan(plan p, const layer_sequence& s) : plan_(std::move(p)), sequence_(&s) {}

  plan plan_;
  const layer_sequence* sequence_;
  std::vector<std::size_t> first_;  ///< by stage; then the end of the sequence
  bool by_id_ = true;               ///< true if every stage lists its layers by id, as moved stages then do; else they follow the sequence
};

}  // namespace detail

/// Hill climbing from a plan. Each boundary in turn moves by 8, 4, 2, then 1 of the given positions, in both directions, as long as the
/// score improves; then every pair of stages swaps devices. Repeats until nothing improves.
///
/// @param start      one pipeline whose stages are runs of the sequence, in its order, and satisfy layer_sequence::is_stage, as all moved
///                   ones do. Any other plan is returned unchanged.
/// @param positions  allowed targets of boundaries, ascending. Boundaries of the start may stay elsewhere.
/// @param judge      (plan&) -> score, smaller is better, infinite for an unacceptable plan; may complete the plan, e.g. set a warm-up.
/// @param most       maximum number of calls of the judge.
/// @return           the plan with the best score; never worse than the start.
/// Complexity        at most `most` calls.   Determinism  first improvement, in the order above.
/// Source            own; it corrects what the search before it relaxes, above all contention.
template <std::invocable<plan&> Judge>
[[nodiscard]] plan move_boundaries(plan start, const layer_sequence& sequence, const std::vector<std::size_t>& positions, Judge&& judge,
                                   int most = 200) {
  auto at = detail::movable_plan::of(start, sequence);
  if (!at) return start;
  plan best = start;
  double score = judge(best);
  int judged = 1;
  const auto accept = [&](detail::movable_plan candidate) {
    plan completed = candidate.get();
    ++judged;
    const double s = judge(completed);
    if (!(s < score)) return false;
    score = s;
    best = std::move(completed);
    at = std::move(candidate);
    return true;
  };
  const auto move = [&](std::size_t i, std::size_t step, bool up) {
    const std::size_t now = at->first(i);
    const auto above = std::upper_bound(positions.begin(), positions.end(), now);
    const auto below = std::lower_bound(positions.begin(), positions.end(), now);
    const auto room = static_cast<std::size_t>(up ? positions.end() - above : below - positions.begin());
    if (room < step) return false;
    const std::size_t to = up ? *(above + static_cast<std::ptrdiff_t>(step - 1)) : *(below - static_cast<std::ptrdiff_t>(step));
    auto candidate = at->moved(i, to);
    return candidate && accept(*std::move(candidate));
  };
  for (bool helped = true; helped && judged < most;) {
    helped = false;
    for (const std::size_t step : {8U, 4U, 2U, 1U}) {
      for (std::size_t i = 1; i < at->stages(); ++i) {
        for (const bool up : {true, false}) {
          while (judged < most && move(i, step, up)) helped = true;
        }
      }
    }
    for (std::size_t i = 0; i < at->stages(); ++i) {
      for (std::size_t j = i + 1; j < at->stages() && judged < most; ++j) helped = accept(at->swapped(i, j)) || helped;
    }
  }
  return best;
}

}  // namespace hetplan::partition

namespace hetplan {

/// Lowers a plan's degrees of tensor parallelism to what its devices and the layers of their stages allow (usable_degrees).
void fit_degrees(plan& p, const planning_graph& model, const cluster& c);

/// Positions where polishing may put boundaries.
enum class polish_boundaries {
  of_blocks,  ///< between blocks of a sequence: stages stay valid by layer_sequence::is_stage
  of_layers,  ///< between any two layers of a sequence, also inside blocks and chains
};

struct polish_options {
  int plans = 3;  ///< number of plans to improve, distinct in microbatch size, and in device kinds and recomputation of the stages; 0: none
  int judged = 150;  ///< maximum number of simulations per plan in each of two rounds
  polish_boundaries boundaries = polish_boundaries::of_blocks;
};

/// Moves the boundaries of the best plans, and swaps the devices of their stages, to improve the judge's score.
///
/// @param ranked  plans, best first; those with explicit orders or transfer rules are skipped.
/// @param budget  is spent; the plans found so far are returned when it is exhausted.
/// @param rows    layer sequences that the plans' stages were cut from, tried in turn. A plan that is no cut of any of them stays
///                unchanged; others remain cuts of the sequence that moved them last.
/// @return        one plan per chosen plan, no worse and not yet judged, with the largest warm-up that memory allows.
/// Complexity     at most 2 x plans x judged simulations per sequence: first on light boundaries, then on all; no plan is simulated twice.
/// Source         own; see partition::move_boundaries.
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options, step_budget& budget);
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options = {});

struct mend_options {
  int judged = 400;           ///< maximum number of simulations per start
  long long steps = 500'000;  ///< budget limit: half for hill climbing, the rest for the enumeration of a small space
  bool small_space = true;    ///< true to enumerate plans of all cuts, groups and shares, within `steps`, if hill climbing keeps no limits
  int plans = 3;              ///< maximum number of plans to return
};

/// Finds plans that keep all limits. The limits may require other shares than the fastest ones: a search knows the cost of a stage, but not
/// the effect of the whole run on an energy budget (idling costs) or a busy share (waiting lowers it).
///
/// Hill climbing starts at each start and at runs of the whole model on each device and on all devices, and minimises (total excess over
/// the limits, score). Samples move between the devices of a stage and to idle ones, stages trade devices, boundaries move, stages merge
/// and split; moves that touch the device with the worst excess come first. If no plan is found, it restarts a few moves away from the
/// nearest one; then, for few layers and devices, partition::for_each_plan enumerates with all shares.
///
/// @param starts   plans of one pipeline; those with explicit orders or stages that are no runs of the model's numbering are skipped.
/// @param planner  name of the plans' planner.
/// @return         plans that keep every limit by judge_quickly, best first, with the largest warm-up that memory allows.
/// Complexity      bounded by the options.
/// Determinism     first improvement, in the order above.
/// Source          own.
[[nodiscard]] std::vector<plan> mend_limits(const planning_problem& problem, const any_objective& objective, const char* planner,
                                            const std::vector<plan>& starts, step_budget& budget, const mend_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/mend_limits.ipp>
#endif
