// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/refine.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::schedule {

namespace detail {

/// A plan as it was judged, without bounds over all plans.
[[nodiscard]] HETPLAN_INLINE refined_plan as_predicted(const plan& given) {
  refined_plan p{given, *given.predicted};
  p.plan.predicted.reset();
  p.evaluation.bound = {};
  p.evaluation.gap = 0;
  return p;
}

HETPLAN_INLINE refined_plan refine_one(const planning_problem& problem, const any_objective& objective, const plan& given,
                                       const refine_options& options) {
  long long steps = 0;
  const auto judged = [&](plan p) {
    p.predicted.reset();
    judgement j = judge(p, problem.model, problem.cluster, problem.cost, problem.models);
    steps += static_cast<long long>(j.graph.size());
    return refined_plan{std::move(p), std::move(j.evaluation)};
  };
  refined_plan best = options.predicted && given.predicted ? as_predicted(given) : judged(given);
  const bool grids = std::any_of(given.stages.begin(), given.stages.end(), [](const stage& s) { return s.column_count() > 1; });
  if (grids || given.transfers == transfer_mode::block) {  // transfers are part of its devices' work
    best.steps = steps;
    return best;
  }
  // Expanded, run once alone and once scheduled, and judged.
  const double least_steps = 4 * size_of_expansion(given, problem.model, make_stage_graph(given, problem.model)).total();
  if (least_steps > static_cast<double>(options.steps)) {
    best.cut = true;
    best.steps = steps;
    return best;
  }
  plan alone = given;  // without rules of its own
  alone.sharing_policy = sharing::fair_share;
  alone.schedule.transfers.clear();
  const cep_graph cep(tasks::expand(staged(problem, alone)), problem.cluster.network());
  const network_schedule s = options.scheduler(cep, {.steps = options.steps, .time_limit = options.time_limit, .lp = problem.lp});
  best.cut = s.out_of_steps;
  best.late = !s.status.ok() && !best.cut;
  best.steps = steps += s.work;
  if (s.sharing_policy == sharing::fair_share && given.sharing_policy == sharing::fair_share && given.schedule.transfers.empty())
    return best;  // as given
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

}  // namespace detail

HETPLAN_INLINE plan_result refine(const planning_problem& problem, const any_objective& objective, std::span<const plan> candidates,
                                  int keep, const refine_options& options, const candidate_observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_left = [&] {
    return options.time_limit->value() - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  ranking best(problem, objective, keep);
  bool out_of_time = false;
  {
    std::atomic<bool> spent = false;  // spares work that would not count
    const auto work = [&](std::size_t i) {
      if (spent) return detail::refined_plan{};
      refine_options mine = options;
      mine.steps = std::min(options.steps, std::max(1LL, problem.steps / 4));  // one candidate does not take what all need
      if (options.time_limit) {
        mine.time_limit = seconds(std::max(0.0, seconds_left()));
      }
      return detail::refine_one(problem, objective, candidates[i], mine);
    };
    numbered_work crew(candidates.size(), options.threads, work);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (i > 0 && best.budget().spent()) {
        spent = true;
        best.cut();
        if (!options.predicted || !candidates[i].predicted) continue;
        detail::refined_plan given = detail::as_predicted(candidates[i]);
        if (best.consider(std::move(given.plan), std::move(given.evaluation), static_cast<long long>(candidates.size()), observer) ==
            control::stop)
          break;
        continue;
      }
      detail::refined_plan r = crew.take(i);
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

}  // namespace hetplan::schedule
