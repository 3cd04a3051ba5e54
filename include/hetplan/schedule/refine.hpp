// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Joint refinement: every candidate plan gets the best schedule of its transfers, and the best of all wins.

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/numbered_work.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/order_search.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::schedule {

struct refine_options {
  int threads = 1;                          ///< 0: as many as the machine runs at once; never changes the answer
  local_search_options search = {};         ///< of each candidate
  order_search_options orders = {.solves = 10, .most_rows = 250};  ///< of each candidate that keeps a gap; solves = 0: none
  std::optional<seconds> time_limit = {};   ///< on the wall clock, for all local searches; reached, the answer is `stopped`
};

/// A schedule that devices can follow: local_search's; where that leaves a gap and cuts no transfer, also the order of ends
/// that order_search finds, as priorities.
///
/// @return      never slower than transfers left alone; status as local_search's.
/// Complexity   see local_search and order_search.  Throws  as they do.  Determinism  the seeds decide, but for a time limit.
template <lp_solver Lp = no_lp>
[[nodiscard]] network_schedule schedule_transfers(const cep_graph& cep, const refine_options& options = {}, const Lp& lp = {}) {
  constexpr double optimal = 1e-9;
  network_schedule best = local_search(cep, options.search);
  const bool whole = std::all_of(best.rules.begin(), best.rules.end(), [](const auto& chunks) { return chunks.size() == 1; });
  if (std::is_same_v<Lp, no_lp> || best.gap <= optimal || !best.status.ok() || !whole || options.orders.solves < 1) return best;
  const order_search_result solved = order_search(cep, best, lp, options.orders);
  if (solved.order.empty()) return best;
  network_schedule followed = follow(cep, rules_of_sequence(cep.flows(), sequence_of_order(cep, solved.order)));
  const long long steps = best.steps + solved.schedule.steps + followed.steps;
  if (followed.latency < best.latency) best = std::move(followed);
  best.steps = steps;
  return best;
}

namespace detail {

struct refined_plan {
  hetplan::plan plan;
  hetplan::evaluation evaluation;
  bool stopped = false;
};

/// A plan and its own schedule's better version of it, whichever the objective prefers; ties: as given.
template <class Problem, objective Objective>
[[nodiscard]] refined_plan refine_one(const Problem& problem, const Objective& objective, const plan& given, const refine_options& options) {
  const auto judged = [&](plan p) {
    p.predicted.reset();
    evaluation e = judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
    return refined_plan{std::move(p), std::move(e)};
  };
  refined_plan best = judged(given);
  if (given.transfers == transfer_mode::block) return best;  // its engine runs transfers as steps of its work
  plan alone = given;  // without rules of its own
  alone.network = sharing::fair_share;
  alone.schedule.transfers.clear();
  const cep_graph cep(tasks::expand(alone, problem.model, problem.cluster, problem.cost, problem.models.memory), problem.cluster.network());
  const network_schedule s = schedule_transfers(cep, options, problem.lp);
  best.stopped = !s.status.ok();
  if (s.network == sharing::fair_share && given.network == sharing::fair_share && given.schedule.transfers.empty()) return best;  // as given
  const auto keeps_limits = [&](const refined_plan& r) { return !find_broken_limit(r.evaluation, problem.cluster); };
  refined_plan scheduled = judged(apply(std::move(alone), cep, s));
  const bool better = score(objective, scheduled.evaluation) < score(objective, best.evaluation);
  if (keeps_limits(scheduled) != keeps_limits(best) ? keeps_limits(scheduled) : better) {
    scheduled.stopped = best.stopped;
    best = std::move(scheduled);
  }
  return best;
}

}  // namespace detail

/// Schedules the transfers of every candidate and ranks them anew.
///
/// @param candidates  plans of the problem's job, such as the K best of a search; rules that they have compete as given. Those whose
///                    transfers block compete as they are.
/// The search runs under `priority`, whatever network policy a plan or the problem names; the judgement follows theirs.
///
/// @return            the `keep` best; no candidate is worse than it was given. Stopped by an observer: only the candidates
///                    judged so far compete. Stopped by the time limit: the rest compete as given, or left alone.
/// Complexity         per candidate see schedule_transfers; candidates side by side.
/// Throws             invalid_input (a candidate is invalid), invalid_model.
/// Determinism        yes, whatever the threads; not with a time limit that is reached. Observers hear of candidates in their
///                    order, on the caller's thread. Models, objective and solver are called from all threads at once.
/// Source             Dora, section 4.2 (K plans scheduled in parallel, the best under the QoE wins).
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result refine(const Problem& problem, const Objective& objective, std::span<const plan> candidates, int keep,
                                 const refine_options& options = {}, Observers&&... observers) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_left = [&] { return options.time_limit->value() - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  ranking best(problem, objective, keep);
  bool out_of_time = false;
  {
    const auto work = [&](std::size_t i) {
      refine_options mine = options;
      if (options.time_limit) {
        const seconds left(std::max(0.0, seconds_left()));
        mine.search.time_limit = std::min(left, mine.search.time_limit.value_or(left));
      }
      return detail::refine_one(problem, objective, candidates[i], mine);
    };
    numbered_work crew(candidates.size(), options.threads, work);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      detail::refined_plan r = crew.take(i);
      out_of_time = out_of_time || r.stopped;
      if (best.consider(std::move(r.plan), std::move(r.evaluation), static_cast<long long>(candidates.size()), observers...) == flow::stop) break;
    }
  }
  plan_result result = std::move(best).result();
  if (out_of_time && result.status.ok()) result.status = {outcome::stopped, "refine: stopped by its time limit; the best so far"};
  return result;
}

}  // namespace hetplan::schedule
