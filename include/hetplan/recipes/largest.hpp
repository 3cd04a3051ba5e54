// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The largest batch or context of a job that fits and keeps its limits, with a plan for it.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// What may grow: the sequences (samples) of a job, or in generation the tokens cached before the prompt.
enum class growing { batch, context };
[[nodiscard]] constexpr std::string_view to_string(growing g) { return g == growing::batch ? "batch" : "context"; }

/// A planner as find_largest asks it: the arguments of recipes::dora.
using asked_planner = std::function<plan_result(const planning_problem&, const any_objective&, int keep, const candidate_observer&)>;

struct largest_options {
  std::optional<int> most = {};         ///< no larger value is looked for, e.g. the model's longest context; default: see find_largest
  int keep = 1;                         ///< plans of the answer
  long long most_tried_above = 10'000;  ///< values tried above the largest that a bisection finds, while the steps last
};

/// A value that was tried.
struct tried_value {
  int value = 0;
  bool fits = false;
  bool proven = false;      ///< does not fit, by a relaxation, with no search
  std::string reason = {};  ///< why it does not fit
};

/// The answer. Without a plan for the least value (a batch of 1, no context) there is no value, and `planned` says why.
struct largest_found {
  growing what = growing::batch;
  std::optional<int> value = {};
  plan_result planned = {};             ///< for the value, with the job's objective under hard limits; else for the least value
  int bound = 0;                        ///< no larger value fits: the weights and caches exceed all memory (or `most`)
  bool all_tried = false;               ///< every value between `value` and `bound` was tried: no plan was found for any of them
  std::vector<tried_value> tried = {};  ///< ascending

  /// Returns what keeps the next larger value from fitting; "" if `value` is the most that was asked for.
  [[nodiscard]] std::string limit() const;
  /// Returns the answer in some lines: the value, why the next one does not fit, and what is known of those above.
  [[nodiscard]] std::string describe() const;
};

/// Returns the job in which limits on times are hard: plans that break one come after all others. `qoe.latency` is a limit on the time
/// between tokens, or on the makespan of other runs; the objective qoe becomes energy.
[[nodiscard]] job with_hard_limits(job j);

/// Finds the largest value, a multiple of a given microbatch size, for which a plan keeps the memory and all limits of the devices and the
/// job (qoe), and plans it.
///
/// A value is tried by the cheapest check that decides it: the memory of all devices together (which excludes all larger values, too);
/// plans that fit other values, judged anew; a packing of consecutive layers into the devices' memories, exact for stages of single
/// devices; and the planner, until its first plan that keeps the limits. Models of more than layers_planned_whole layers are planned in
/// blocks (few_blocks), the answer's plan included; under a limit on the time between tokens with microbatches of promising sizes only; and
/// where memory alone limits them, without pins, tiers and shared tensors, the packing decides: it cuts between any layers.
///
/// Values double until one does not fit; a bisection finds the border. Memory never falls with the value, nor do the times of a plan, so
/// the border is the only one for context, and for batch if microbatches may have any size. It need not be where microbatch sizes are
/// given, or where only a batch that divides well keeps a limit on time; so values above it are tried one by one, up to `bound`, as far as
/// a sixteenth of the problem's steps goes, and for models that are planned in blocks not at all: `all_tried` says whether it went all the
/// way.
///
/// @param problem  its job gives all but the growing number. Default of `most`: a batch of 65 536, a context of 10^9 tokens in all.
/// @param planner  asked for each value that no cheaper check decides, and for the answer.
/// Complexity      O(log value) checks, and most_tried_above at most; a packing takes O(states x devices x log layers) for the product of
/// the
///                 numbers of equal devices + 1 states.
/// Throws          invalid_input (a context outside generation; with limits, what the planner throws).
/// Determinism     that of the planner.
/// Source          ours.
[[nodiscard]] largest_found find_largest(const planning_problem& problem, growing what, const asked_planner& planner,
                                         const largest_options& options = {}, const candidate_observer& observer = {});

namespace detail {

/// Returns a plan of consecutive layers on single devices, of which each holds as many as fit, for the smallest microbatches; nothing if
/// no order of the devices holds all layers. Times are ignored. Outside training.
///
/// Complexity   see find_largest; with more than 2^16 states only the order by memory is tried, largest first.
/// Determinism  fewest devices; ties: larger memory first.
[[nodiscard]] std::optional<plan> packed_plan(const planning_problem& problem);

}  // namespace detail

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/largest.ipp>
#endif
