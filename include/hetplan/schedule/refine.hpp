// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Joint refinement: every candidate plan gets the best schedule of its transfers, and the best of all wins.

#include <limits>
#include <optional>
#include <span>

#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>

namespace hetplan::schedule {

struct refine_options {
  int threads = 1;                                          ///< 0: as many as the machine runs at once; never changes the answer
  any_transfer_scheduler scheduler = searched_transfers{};  ///< of each candidate
  long long steps = std::numeric_limits<long long>::max();  ///< of a step_budget, for each candidate, about
  bool predicted = false;                  ///< the candidates' predictions are of this very problem, and need no second judgement
  std::optional<seconds> time_limit = {};  ///< on the wall clock, for all schedules; reached, the answer is `stopped`
};

namespace detail {

struct refined_plan {
  hetplan::plan plan;
  hetplan::evaluation evaluation;
  bool late = false;  ///< its search was stopped by the time limit
  bool cut = false;   ///< or by the limit of steps
  long long steps = 0;
};

/// A plan and its own schedule's better version of it, whichever the objective prefers; ties: as given.
[[nodiscard]] refined_plan refine_one(const planning_problem& problem, const any_objective& objective, const plan& given,
                                      const refine_options& options);

}  // namespace detail

/// Schedules the transfers of every candidate and ranks them anew.
///
/// @param candidates  plans of the problem's job, such as the K best of a search; rules that they have compete as given. Those whose
///                    transfers block, and those with grids, compete as they are.
/// The search runs under `priority`, whatever network policy a plan or the problem names; the judgement follows theirs.
///
/// @return            the `keep` best; no candidate is worse than it was given. Stopped by an observer: only the candidates
///                    judged so far compete. Stopped by the time limit: the rest compete as given, or left alone. Stopped by the
///                    problem's budget of steps: the rest compete as given where `options.predicted`, else they are left out.
/// Complexity         per candidate see the scheduler; candidates side by side.
/// Throws             invalid_input (a candidate is invalid), invalid_model.
/// Determinism        yes, whatever the threads; not with a time limit that is reached. Observers receive candidates in their
///                    order, on the caller's thread. Network policy, objective, scheduler and solver are called from several
///                    threads at once; cost, energy and memory models answer one question at a time.
/// Source             Dora, section 4.2 (K plans scheduled in parallel, the best under the QoE wins).
[[nodiscard]] plan_result refine(const planning_problem& problem, const any_objective& objective, std::span<const plan> candidates,
                                 int keep, const refine_options& options = {}, const candidate_observer& observer = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/refine.ipp>
#endif
