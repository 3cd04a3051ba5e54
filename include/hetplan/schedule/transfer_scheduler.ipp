// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/transfer_scheduler.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <hetplan/core/crew.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::schedule {

namespace detail {

class order_searcher {
 public:
  order_searcher(const cep_graph& cep, const any_lp_solver& solver, const order_search_options& options)
      : cep_(cep), solver_(solver), options_(options), random_(options.seed) {}

  [[nodiscard]] network_schedule run(const network_schedule& given) {
    best_ = given;
    best_.steps = 0;
    best_.status = {};
    auto frame = std::make_shared<order_frame>(order_frame{schedule::run(cep_, given, {.record = true})});
    order_program whole(cep_, frame, order_of_run(cep_, frame->run));
    if (whole.order().empty()) return best_;
    const std::size_t rows = whole.problem().rows.size();
    if (rows <= options_.most_rows) {
      search(std::move(whole), options_.solves);
    } else {
      slide(frame->run, rows);
    }
    return std::move(best_);
  }

  /// Returns the order of events of the best rates; empty if no program was solved.
  [[nodiscard]] const event_order& best_order() const { return best_order_; }

 private:
  static constexpr double tied = 1e-9;  ///< relative to the run's length

  /// Solves a program and its neighbours, in which two events that the solution puts at one time are swapped.
  void search(order_program&& first, long long solves) {
    auto now = std::make_unique<order_program>(std::move(first));
    lp_solution solution = solve(*now, {});
    if (solution.status != lp_status::optimal) return stop("the solver left the linear program of this order unsolved");
    if (!keep(*now, solution)) return stop("the solver's rates did not pass the simulator");
    // If only the order made an event wait, the replay ends sooner than the program, in an order of its own.
    while (now->covers_all() && best_.latency.value() < now->makespan_s(solution) * (1 - 1e-6) && --solves > 0) {
      auto sooner = std::make_unique<order_program>(cep_, now->frame(), best_order_);
      lp_solution answer = solve(*sooner, sooner->start_from(*now, solution.basis));
      if (answer.status != lp_status::optimal || !keep(*sooner, answer)) break;
      now = std::move(sooner);
      solution = std::move(answer);
    }
    double least_s = now->makespan_s(solution);
    while (--solves > 0 && least_s > cep_.bound().value() * (1 + tied)) {
      const std::vector<std::size_t> swaps = ties(*now, solution);
      if (swaps.empty()) break;
      event_order swapped = now->order();
      const std::size_t at = swaps[static_cast<std::size_t>(random_() % swaps.size())];
      std::swap(swapped[at], swapped[at + 1]);
      auto next = std::make_unique<order_program>(cep_, now->frame(), std::move(swapped));
      lp_solution answer = solve(*next, next->start_from(*now, solution.basis));
      if (answer.status != lp_status::optimal) continue;
      const double makespan_s = next->makespan_s(answer);
      if (makespan_s > now->makespan_s(solution) * (1 + tied)) continue;
      now = std::move(next);
      solution = std::move(answer);
      if (makespan_s < least_s * (1 - tied) && keep(*now, solution)) least_s = makespan_s;
    }
  }

  /// Solves windows of a run that is too large for one program, each starting in the middle of the previous one, until a round gains
  /// nothing. The part behind a window moves as a block, so a window gains only what all of the block can.
  void slide(trace now, std::size_t rows) {
    std::vector<double> times = moments(now);
    std::size_t length = std::max<std::size_t>(4, times.size() * options_.most_rows / rows);  // in moments; rows grow in proportion
    for (bool gained = true; gained && best_.status.ok();) {
      gained = false;
      for (std::size_t begin = 0; begin < times.size() && best_.steps < options_.solves; begin += std::max<std::size_t>(1, length / 2)) {
        const bool first = begin == 0, last = begin + length >= times.size();
        const double inf = std::numeric_limits<double>::infinity();
        auto frame = std::make_shared<order_frame>(order_frame{now, {first ? -inf : times[begin], last ? inf : times[begin + length]}});
        order_program window(cep_, frame, order_of_run(cep_, now, frame->window));
        if (window.order().empty()) continue;
        if (window.problem().rows.size() > options_.most_rows && length > 4) {
          length /= 2;
          begin -= std::max<std::size_t>(1, length / 2);  // may wrap around: the loop's increment restores it
          continue;
        }
        const seconds before = best_.latency;
        search(std::move(window), std::min<long long>(options_.solves - best_.steps, window_solves));
        if (!best_.status.ok()) return;
        if (best_.latency < before * (1 - tied)) {
          gained = true;
          now = schedule::run(cep_, best_, {.record = true});
          times = moments(now);
        }
        if (best_.latency <= cep_.bound() * (1 + tied)) return;
      }
    }
  }
  static constexpr long long window_solves = 4;

  /// Returns times between the events and rate changes of a run, where windows may begin and end.
  [[nodiscard]] std::vector<double> moments(const trace& run) const {
    std::vector<double> times;
    for (const rate_change& r : run.rates) times.push_back(r.at_s);
    for (std::uint32_t t = 0; t < run.transfers.size(); ++t) {
      if (!drains(cep_.tasks(), cep_.tasks().transfers[t])) continue;
      times.push_back(run.transfers[t].start_s + cep_.tasks().transfers[t].latency_s);
      times.push_back(run.transfers[t].end_s);
    }
    std::sort(times.begin(), times.end());
    std::vector<double> between;
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (times[i] > times[i - 1] * (1 + 1e-6)) between.push_back((times[i] + times[i - 1]) / 2);
    }
    return between;
  }

  lp_solution solve(const order_program& p, const lp_basis& start) {
    ++best_.steps;
    lp_solution s = solve_from(solver_, p.problem(), start);
    if (s.status == lp_status::optimal && s.x.size() != p.problem().objective.size()) s.status = lp_status::unsolved;
    return s;
  }

  /// Returns positions of neighbouring events at one time in the solution. A swap keeps the solution and may allow a better one.
  [[nodiscard]] static std::vector<std::size_t> ties(const order_program& p, const lp_solution& s) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i + 1 < p.order().size(); ++i) {
      const bool same = p.order()[i].transfer == p.order()[i + 1].transfer;
      if (!same && std::abs(p.event_s(i + 1, s) - p.event_s(i, s)) <= tied * p.frame()->run.latency.value()) out.push_back(i);
    }
    return out;
  }

  /// Replays a solution and keeps it if it is the best. The simulated latency counts, not the solver's; it is less than the program's if
  /// only the order makes an event wait.
  bool keep(const order_program& p, const lp_solution& s) {
    network_schedule replayed;  // field by field: g++ 12 takes the text of an omitted status for uninitialised
    replayed.rates = p.rates(s);
    replayed.bound = cep_.bound();
    replayed.steps = best_.steps;
    if (!replayed.is_prescribed()) return false;
    trace run;
    try {
      run = schedule::run(cep_, replayed);
    } catch (const invalid_input&) {  // rates beyond a capacity or short of a volume: the solver exceeded its tolerances
      return false;
    }
    replayed.latency = run.latency;
    const double program_s = p.makespan_s(s);
    if (!(replayed.latency.value() <= std::min(program_s, best_.latency.value()) * (1 + 1e-6))) return false;  // also if NaN
    const bool as_solved = p.covers_all() && replayed.latency.value() >= program_s * (1 - 1e-6);
    if (best_order_.empty() || replayed.latency <= best_.latency) best_order_ = as_solved ? p.order() : order_of_run(cep_, run);
    if (replayed.latency <= best_.latency) {
      replayed.gap = gap_of(replayed);
      best_ = std::move(replayed);
    }
    return true;
  }

  void stop(const std::string& why) { best_.status = {outcome::stopped, "order search: " + why}; }

  const cep_graph& cep_;
  const any_lp_solver& solver_;
  const order_search_options& options_;
  std::mt19937_64 random_;
  network_schedule best_;
  event_order best_order_;
};

}  // namespace detail

HETPLAN_INLINE order_search_result order_search(const cep_graph& cep, const network_schedule& given, const any_lp_solver& solver,
                                                const order_search_options& options) {
  if (std::any_of(given.rules.begin(), given.rules.end(), [](const auto& chunks) { return chunks.size() != 1; })) {
    throw invalid_input("order_search: the given schedule cuts transfers into chunks; expected whole transfers");
  }
  detail::order_searcher search(cep, solver, options);
  network_schedule s = search.run(given);
  return {std::move(s), search.best_order()};
}

HETPLAN_INLINE network_schedule searched_transfers::operator()(const cep_graph& cep, const scheduling_limits& limits) const {
  constexpr double optimal = 1e-9;
  // Work relative to a run without rules: about twice for a run with rules, ten times and a part for the rows for a solve.
  const auto nodes = static_cast<long long>(cep.tasks().size()), of_run = 2 * std::max(1LL, nodes), of_solve = 10 * nodes + 10'000;
  local_search_options within = search;
  within.steps = std::min(within.steps, std::max(1LL, limits.steps / of_run));
  if (limits.time_limit) within.time_limit = std::min(*limits.time_limit, within.time_limit.value_or(*limits.time_limit));
  network_schedule best = local_search(cep, within);
  best.work = best.steps * of_run;
  const auto out_of_steps = [&] {
    best.out_of_steps = true;
    best.status = {outcome::stopped, "transfers: stopped by the limit of " + std::to_string(limits.steps) + " steps"};
    return best;
  };
  if (best.gap <= optimal || !best.status.ok()) return best;
  if (best.steps >= within.steps && within.steps < search.steps) return out_of_steps();
  const bool whole = std::all_of(best.rules.begin(), best.rules.end(), [](const auto& chunks) { return chunks.size() == 1; });
  if (!limits.lp.exists() || !whole || orders.solves < 1) return best;
  if (static_cast<long long>(cep.tasks().transfers.size()) > transfers_per_solve * orders.solves) return best;
  order_search_options few = orders;
  few.solves = std::min(few.solves, (limits.steps - best.work) / of_solve);
  if (few.solves < 1) return out_of_steps();
  const order_search_result solved = order_search(cep, best, limits.lp, few);
  best.work += solved.schedule.steps * of_solve;
  if (solved.order.empty()) return best;
  network_schedule followed = follow(cep, rules_of_sequence(cep.messages(), sequence_of_order(cep, solved.order)));
  const long long steps = best.steps + solved.schedule.steps + followed.steps, work = best.work + of_run;
  if (followed.latency < best.latency) best = std::move(followed);
  best.steps = steps;
  best.work = work;
  return best;
}

HETPLAN_INLINE network_schedule any_transfer_scheduler::operator()(const cep_graph& cep, const scheduling_limits& limits) const {
  network_schedule s = schedule_(cep, limits);
  if (s.is_prescribed())
    throw invalid_model("transfer scheduler: the schedule has a solver's rates, which devices cannot follow; expected rules");
  if (std::ranges::find(all_sharings, s.sharing_policy) == all_sharings.end())
    throw invalid_model("transfer scheduler: sharing_policy = " + std::to_string(static_cast<int>(s.sharing_policy)) +
                        "; expected a sharing with a name");
  if (s.sharing_policy != sharing::fair_share) s.rules = checked(std::move(s.rules), cep, "transfer scheduler");
  return s;
}

namespace detail {

/// Returns an evaluation without the bound over all plans.
[[nodiscard]] HETPLAN_INLINE evaluation without_bound(evaluation e) {
  e.bound = {};
  e.gap = 0;
  return e;
}

HETPLAN_INLINE refined_plan refine_one(const planning_problem& problem, const any_objective& objective, const plan& given,
                                       const evaluation* known, const refine_options& options) {
  long long steps = 0;
  const auto judged = [&](plan p) {
    judgement j = judge(p, problem.model, problem.cluster, problem.cost, problem.models);
    steps += static_cast<long long>(j.graph.size());
    return refined_plan{std::move(p), std::move(j.evaluation)};
  };
  refined_plan best = known != nullptr ? refined_plan{given, without_bound(*known)} : judged(given);
  const bool grids = std::any_of(given.stages.begin(), given.stages.end(), [](const stage& s) { return s.column_count() > 1; });
  const bool reads =
      std::any_of(given.stages.begin(), given.stages.end(), [&](const stage& s) { return reads_over_network(s, problem.cluster); });
  if (grids || reads || given.transfers == transfer_mode::block) {  // transfers are part of the devices' work, or have no rules
    best.steps = steps;
    return best;
  }
  // Four passes: expansion, an uncontrolled run, a scheduled run, a judgement.
  const double least_steps = 4 * size_of_expansion(given, problem.model, make_stage_graph(given, problem.model)).total();
  if (least_steps > static_cast<double>(options.steps)) {
    best.cut = true;
    best.steps = steps;
    return best;
  }
  plan alone = given;  // the plan without transfer rules
  alone.sharing_policy = sharing::fair_share;
  alone.schedule.transfers.clear();
  const cep_graph cep(tasks::expand(stage_costs(problem, alone)), problem.cluster.network());
  const network_schedule s = options.scheduler(cep, {.steps = options.steps, .time_limit = options.time_limit, .lp = problem.lp});
  best.cut = s.out_of_steps;
  best.late = !s.status.ok() && !best.cut;
  best.steps = steps += s.work;
  if (s.sharing_policy == sharing::fair_share && given.sharing_policy == sharing::fair_share && given.schedule.transfers.empty())
    return best;
  const auto keeps_limits = [&](const refined_plan& r) { return !find_broken_limit(r.evaluation, problem.cluster); };
  refined_plan scheduled = judged(apply(std::move(alone), cep, s));
  const bool better = score(objective, scheduled.evaluation) < score(objective, best.evaluation);
  if (keeps_limits(scheduled) != keeps_limits(best) ? keeps_limits(scheduled) : better) {
    scheduled.late = best.late;
    scheduled.cut = best.cut;
    best = std::move(scheduled);
  }
  best.steps = steps;
  return best;
}

/// A candidate, and its evaluation if it is known.
struct refine_candidate {
  const hetplan::plan& plan;
  const hetplan::evaluation* known = nullptr;
};

[[nodiscard]] HETPLAN_INLINE plan_result refine_all(const planning_problem& problem, const any_objective& objective,
                                                    const std::vector<refine_candidate>& candidates, int keep,
                                                    const refine_options& options, const candidate_observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_left = [&] {
    return options.time_limit->value() - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  ranking best(problem, objective, keep);
  bool out_of_time = false;
  {
    std::atomic<bool> spent = false;  // lets workers skip candidates that no longer count
    const auto work = [&](std::size_t i) {
      if (spent) return refined_plan{};
      refine_options mine = options;
      mine.steps = std::min(options.steps, std::max(1LL, problem.steps / 4));  // one candidate must not use up the budget of all
      if (options.time_limit) {
        mine.time_limit = seconds(std::max(0.0, seconds_left()));
      }
      return refine_one(problem, objective, candidates[i].plan, candidates[i].known, mine);
    };
    numbered_work crew(candidates.size(), options.threads, work);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (i > 0 && best.budget().spent()) {
        spent = true;
        best.cut();
        const auto& [p, known] = candidates[i];
        if (known == nullptr) continue;
        if (best.consider(p, without_bound(*known), static_cast<long long>(candidates.size()), observer) == control::stop) break;
        continue;
      }
      refined_plan r = crew.take(i);
      best.budget().spend(r.steps);
      if (r.cut) best.cut();
      out_of_time = out_of_time || r.late;
      if (best.consider(std::move(r.plan), std::move(r.evaluation), static_cast<long long>(candidates.size()), observer) == control::stop)
        break;
    }
  }
  plan_result result = std::move(best).result();
  if (out_of_time && result.status.ok()) result.status = {outcome::stopped, "refine: stopped by its time limit; the best so far"};
  return result;
}

}  // namespace detail

HETPLAN_INLINE plan_result refine(const planning_problem& problem, const any_objective& objective, std::span<const plan> candidates,
                                  int keep, const refine_options& options, const candidate_observer& observer) {
  std::vector<detail::refine_candidate> all;
  for (const plan& p : candidates) all.push_back({p});
  return detail::refine_all(problem, objective, all, keep, options, observer);
}

HETPLAN_INLINE plan_result refine_judged(const planning_problem& problem, const any_objective& objective,
                                         std::span<const ranked_plan> candidates, int keep, const refine_options& options,
                                         const candidate_observer& observer) {
  std::vector<detail::refine_candidate> all;
  for (const ranked_plan& r : candidates) all.push_back({r.plan, &r.evaluation});
  return detail::refine_all(problem, objective, all, keep, options, observer);
}

}  // namespace hetplan::schedule
