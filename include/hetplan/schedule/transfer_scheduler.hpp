// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedulers of a plan's transfers: the concept, the schedulers that ship, and the refinement of plans with them.

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
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::schedule {

struct order_search_options {
  long long solves = 20;  ///< limit on linear programs; with 1 the given order stays
  std::uint64_t seed = 1;
  std::size_t most_rows = 500;  ///< limit per program; larger runs are solved in windows. Cost grows with about the cube of the rows
};

struct order_search_result {
  network_schedule schedule;  ///< the solver's rates, replayed; if `stopped`, the given schedule or the best so far
  event_order order;          ///< order of events of the rates; empty if no program was solved
};

/// Solves the linear program of a run's order, then those of neighbouring orders, each from the previous basis. Runs too large for one
/// program are solved in windows.
///
/// @param given  a schedule of uncut transfers: local_search with most_chunks = 1, a list schedule, or uncontrolled.
/// @return       rates that end no later than `given`. Status stopped, with the best so far: the solver gave up or was wrong.
/// Complexity    options.solves linear programs.  Determinism  the solver's, for a fixed seed.
/// Source        Dora, section 4.2, eq. 6.
[[nodiscard]] order_search_result order_search(const cep_graph& cep, const network_schedule& given, const any_lp_solver& solver,
                                               const order_search_options& options = {});

/// Limits and linear-programming solver of a transfer scheduler.
struct scheduling_limits {
  long long steps = std::numeric_limits<long long>::max();  ///< approximate limit in steps of a step_budget, as in network_schedule::work
  std::optional<seconds> time_limit = {};                   ///< of wall-clock time; if it is reached, status is `stopped`
  any_lp_solver lp = {};                                    ///< may be empty
};

/// Transfer scheduler: a callable that schedules the transfers of a CEP graph, within limits, by rules that devices can follow. `refine`
/// applies it to every candidate plan, judges the result, and keeps the given plan if that is better.
///
/// * The schedule has rules for every message, unless transfers are uncontrolled. Missing rules, or a solver's rates, are `invalid_model`.
/// * Pure, except for a time limit; candidates are scheduled in parallel, so several threads call it at once.
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

/// The schedule of local_search. If that has a gap and cuts no transfer, order_search's order of ends competes, too.
///
/// @return      never slower than uncontrolled transfers; status as local_search's, or stopped by the limit of steps.
/// Complexity   see local_search and order_search.  Throws  as they do.  Determinism  fixed by the seeds, unless a time limit is reached.
/// Source       Dora, section 4.2.
struct searched_transfers {
  local_search_options search = {};
  order_search_options orders = {.solves = 10, .most_rows = 250};  ///< 0 solves: no order_search
  long long transfers_per_solve = 400;                             ///< order_search is skipped if there are more transfers per solve

  [[nodiscard]] network_schedule operator()(const cep_graph& cep, const scheduling_limits& limits = {}) const;
};

/// The list schedule by one priority, or uncontrolled transfers if that is no faster.
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
// Clang 16 does not deduce template arguments of aggregates.
template <class Priority>
listed_transfers(Priority) -> listed_transfers<Priority>;
template <class Priority>
listed_transfers(Priority, list_options) -> listed_transfers<Priority>;

/// Type-erased scheduler; its schedules are checked. An empty callable throws invalid_input.
class any_transfer_scheduler {
 public:
  template <class S>
    requires(!std::same_as<S, any_transfer_scheduler>)
  any_transfer_scheduler(S s) {
    static_assert(check_transfer_scheduler<S>());
    if constexpr (transfer_scheduler<S>) schedule_ = std::move(s);
    require_function(schedule_, "any_transfer_scheduler", "a transfer scheduler, such as searched_transfers{}");
  }

  /// Throws  invalid_model: a message without rules, with no or too many chunks; an unknown sharing; a solver's rates.
  [[nodiscard]] network_schedule operator()(const cep_graph& cep, const scheduling_limits& limits = {}) const;

 private:
  std::function<network_schedule(const cep_graph&, const scheduling_limits&)> schedule_;
};

static_assert(check_transfer_scheduler<searched_transfers>() && check_transfer_scheduler<listed_transfers<>>() &&
              check_transfer_scheduler<any_transfer_scheduler>());

struct refine_options {
  int threads = 1;  ///< 0: as many as the hardware runs at once; the result is the same for any number
  any_transfer_scheduler scheduler = searched_transfers{};  ///< for each candidate
  long long steps = std::numeric_limits<long long>::max();  ///< approximate limit per candidate, in steps of a step_budget
  std::optional<seconds> time_limit = {};  ///< of wall-clock time for all candidates; if it is reached, status is `stopped`
};

namespace detail {

struct refined_plan {
  hetplan::plan plan;
  hetplan::evaluation evaluation;
  bool late = false;  ///< true if the time limit stopped its search
  bool cut = false;   ///< true if the limit of steps stopped its search
  long long steps = 0;
};

/// Returns a plan with its transfers scheduled if the objective prefers it, else the given plan.
///
/// @param known  the plan's evaluation; null: it is judged.
[[nodiscard]] refined_plan refine_one(const planning_problem& problem, const any_objective& objective, const plan& given,
                                      const evaluation* known, const refine_options& options);

}  // namespace detail

/// Returns the best candidates after scheduling the transfers of each. The search runs under `priority`, whatever network policy a plan or
/// the problem names; the judgement follows that policy.
///
/// @param candidates  plans of the problem's job, such as the K best of a search; their own rules compete as given. Plans with blocking
///                    transfers or grids compete unchanged.
/// @return            the `keep` best; no candidate gets worse. Stopped by an observer: only candidates judged so far compete. Stopped by
///                    the time limit: the rest compete as given, or uncontrolled. Stopped by the problem's budget of steps: the rest
///                    are left out.
/// Complexity         per candidate that of the scheduler; candidates run in parallel.
/// Throws             invalid_input (a candidate is invalid), invalid_model.
/// Determinism        yes for any number of threads, unless a time limit is reached. Observers receive candidates in their order, on the
///                    caller's thread. Network policy, objective, scheduler and solver are called from several threads at once; cost,
///                    energy and memory models are asked one question at a time.
/// Source             Dora, section 4.2 (K plans scheduled in parallel, the best under the QoE wins).
[[nodiscard]] plan_result refine(const planning_problem& problem, const any_objective& objective, std::span<const plan> candidates,
                                 int keep, const refine_options& options = {}, const candidate_observer& observer = {});
/// The same for plans with their evaluations on this very problem, which spares a judgement of each. Stopped by the problem's budget of
/// steps, the rest compete as given.
[[nodiscard]] plan_result refine_judged(const planning_problem& problem, const any_objective& objective,
                                        std::span<const ranked_plan> candidates, int keep, const refine_options& options = {},
                                        const candidate_observer& observer = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/transfer_scheduler.ipp>
#endif
