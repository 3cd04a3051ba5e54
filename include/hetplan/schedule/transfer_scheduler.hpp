// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who decides when a plan's transfers run: the door for transfer schedulers, and the ones that ship.

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::schedule {

// Linear programs over orders of events: the best rates of an order, and of the orders around it.

struct order_search_options {
  long long solves = 20;  ///< linear programs, at most; 1 keeps to the given order
  std::uint64_t seed = 1;
  std::size_t most_rows = 500;  ///< of a program: larger runs are solved in windows; cost grows with about the cube of the rows
};

/// The answer of order_search.
struct order_search_result {
  network_schedule schedule;  ///< the solver's rates, replayed; the given schedule, or the best so far, where `stopped`
  event_order order;          ///< what the rates keep to; empty if no program was solved
};

/// Solves the linear program of a run's order, then those of neighbouring orders, each from the basis before; a run that is
/// too large for one program, window by window.
///
/// @param given  a schedule of whole transfers: local_search with most_chunks = 1, a list schedule, or uncontrolled.
/// @return       rates that end no later than `given`. Status stopped, with the best so far: the solver gave up or was
///               wrong.
/// Complexity    options.solves programs.  Determinism  the solver's, and the seed.
/// Source        Dora, section 4.2, eq. 6.
[[nodiscard]] order_search_result order_search(const cep_graph& cep, const network_schedule& given, const any_lp_solver& solver,
                                               const order_search_options& options = {});

/// What a scheduler may use.
struct scheduling_limits {
  long long steps = std::numeric_limits<long long>::max();  ///< of a step_budget, about: network_schedule::work says what was used
  std::optional<seconds> time_limit = {};                   ///< on the wall clock; reached, the answer is `stopped`
  any_lp_solver lp = {};                                    ///< may hold none
};

/// Who decides when the transfers of a plan run: a callable that schedules those of a CEP graph, within limits, by rules that devices can
/// follow. `refine` gives one to every candidate; it judges what comes out and keeps the plan as given where that is better.
///
/// * The answer has rules for every message. One that forgets a message, or has a solver's rates, is `invalid_model`.
/// * Pure, but for a time limit. Candidates are scheduled side by side, so it is called from several threads at once.
///
/// Ships: `searched_transfers` (local search, then linear programs; the default), `listed_transfers` (one list schedule, by a
/// `transfer_priority`).
template <class S>
concept transfer_scheduler = requires(const S& s, const cep_graph& cep, const scheduling_limits& limits) {
  { s(cep, limits) } -> std::same_as<network_schedule>;
};

template <class S>
consteval bool check_transfer_scheduler() {
  static_assert(transfer_scheduler<S>,
                "transfer_scheduler needs: hetplan::schedule::network_schedule operator()(const hetplan::schedule::cep_graph&, const "
                "hetplan::schedule::scheduling_limits&) const");
  return transfer_scheduler<S>;
}

/// local_search's schedule; where that leaves a gap and cuts no transfer, also the order of ends that order_search finds, as
/// priorities.
///
/// @return      never slower than transfers left alone; status as local_search's, or stopped by the limit of steps.
/// Complexity   see local_search and order_search.  Throws  as they do.  Determinism  the seeds decide, but for a time limit.
/// Source       Dora, section 4.2.
struct searched_transfers {
  local_search_options search = {};
  order_search_options orders = {.solves = 10, .most_rows = 250};  ///< solves = 0: none
  long long transfers_per_solve = 400;                             ///< orders are left alone where that many each are more than they reach

  [[nodiscard]] network_schedule operator()(const cep_graph& cep, const scheduling_limits& limits = {}) const;
};

/// list_schedule by one priority, or transfers left alone where that is no slower.
template <transfer_priority Priority = critical_path_first>
struct listed_transfers {
  Priority priority = {};
  list_options options = {};

  [[nodiscard]] network_schedule operator()(const cep_graph& cep, const scheduling_limits& = {}) const {
    network_schedule alone = uncontrolled(cep), listed = list_schedule(cep, priority, options);
    network_schedule& better = listed.latency < alone.latency ? listed : alone;
    better.steps = 2;
    better.work = 3 * static_cast<long long>(cep.tasks().size());
    return std::move(better);
  }
};
// clang 16 does not deduce aggregates by itself.
template <class Priority>
listed_transfers(Priority) -> listed_transfers<Priority>;
template <class Priority>
listed_transfers(Priority, list_options) -> listed_transfers<Priority>;

/// Holds any scheduler by value; what it answers is checked. Of an empty one: invalid_input.
class any_transfer_scheduler {
 public:
  template <class S>
    requires(!std::same_as<S, any_transfer_scheduler>)
  any_transfer_scheduler(S s) {
    static_assert(check_transfer_scheduler<S>());
    if constexpr (transfer_scheduler<S>) schedule_ = std::move(s);
    require_function(schedule_, "any_transfer_scheduler", "a transfer scheduler, such as searched_transfers{}");
  }

  /// Throws  invalid_model: rules that forget a message, or leave one without a chunk or with too many; a sharing
  ///         that there is not; a solver's rates, which devices cannot follow.
  [[nodiscard]] network_schedule operator()(const cep_graph& cep, const scheduling_limits& limits = {}) const;

 private:
  std::function<network_schedule(const cep_graph&, const scheduling_limits&)> schedule_;
};

static_assert(check_transfer_scheduler<searched_transfers>() && check_transfer_scheduler<listed_transfers<>>() &&
              check_transfer_scheduler<any_transfer_scheduler>());

// Joint refinement: every candidate plan gets the best schedule of its transfers, and the best of all wins.

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/transfer_scheduler.ipp>
#endif
