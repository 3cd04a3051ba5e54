// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_partitioner.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>
#include <vector>

#include <hetplan/core/numbered_work.hpp>
#include <hetplan/partition/least_overflow.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE std::vector<decompose::any_decomposition> usual_rows() { return {decompose::joined_chains{}, decompose::light_row{}}; }

namespace detail {

/// One search of a row's.
struct row_search {
  plan blank;
  const partition::device_space* space;
  warmup_rule warmup;
  bool keep_budgets = true;
};
/// What it found before it had weighed so many extensions.
struct row_found {
  partition::search_result found;
  long long most_extensions = 0;

  /// Would it have found the same with fewer?
  [[nodiscard]] bool same_with(long long fewer) const { return fewer == most_extensions || found.counts.extended < fewer; }
};

}  // namespace detail

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const partitioner_options& options, const candidate_observer& observer) {
  using namespace partition;
  check_keep(keep, "dora_partitioner");
  auto sizes = problem.job.candidate_microbatch_sizes(problem.cluster.size());
  if (options.rows.empty()) throw invalid_input("dora_partitioner: no rows; expected at least one decomposition");
  std::vector<layer_sequence> rows;
  for (const decompose::any_decomposition& row_of : options.rows) rows.push_back(row_of(problem.model));
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  ranking best(problem, objective, std::max(keep, options.k));
  const long long expected = static_cast<long long>(sizes.size() * rows.size()) * options.k;  // a guess for progress bars
  std::vector<plan> judged;  // searches under several warm-up rules and orders find some plans again
  const auto judge_new = [&](plan p) {
    drop_usual_warmup(p, problem.model);
    if (std::find(judged.begin(), judged.end(), p) != judged.end()) return control::go;
    judged.push_back(p);
    return best.consider(std::move(p), expected, observer);
  };
  const auto judge_all = [&](const std::vector<found_plan>& plans) {
    for (const found_plan& f : plans) {
      plan fitted = f.plan;  // warm-up lowered everywhere, if it is; also as little as memory asks
      if (!fitted.schedule.warmup.empty()) fit_warmup(fitted, problem.model, problem.cluster, problem.models.memory);
      if (judge_new(std::move(fitted)) == control::stop || judge_new(f.plan) == control::stop) return control::stop;
    }
    return control::go;
  };
  // Warm-up is a matter of 1F1B in training.
  const bool warms_up = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::one_f_one_b;

  for (const layer_sequence& row : rows) {
    const search_tables tables(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                               problem.job.workload, problem.job.largest_share());
    const auto search = [&](const detail::row_search& r, long long most_extensions) {
      const search_options how{.plans = options.k,
                               .max_stages = options.max_stages,
                               .warmup = r.warmup,
                               .law = options.law,
                               .keep_budgets = r.keep_budgets,
                               .most_extensions = most_extensions};
      return detail::row_found{two_substate_dp(tables, *r.space, r.blank, steering, top_k{options.k}, how), most_extensions};
    };
    const auto judge_found = [&](const search_result& found) {
      best.budget().spend_extensions(found.counts.extended);
      if (found.status.result == outcome::stopped) static_cast<void>(best.out_of_steps());
      return judge_all(found.plans);
    };
    std::deque<device_space> spaces;
    std::vector<detail::row_search> searches;
    for (const int size : sizes) {
      const plan blank = blank_plan(problem, "dora", size);
      for (device_space& space : options.orders(tables, size)) {
        spaces.push_back(std::move(space));
        for (const warmup_rule warmup : warmup_rules) {
          searches.push_back({blank, &spaces.back(), warmup});
          if (!warms_up) break;
        }
      }
    }
    {
      // Side by side with what is left when one begins; which had less when its turn came, by what was judged meanwhile, begins again.
      std::atomic<long long> left = best.budget().extensions_left();
      numbered_work crew(searches.size(), options.threads, [&](std::size_t i) { return search(searches[i], left); });
      for (std::size_t i = 0; i < searches.size(); ++i) {
        const bool next_size = i == 0 || searches[i].blank.microbatch_size != searches[i - 1].blank.microbatch_size;
        if (next_size && best.any_fitted() && best.out_of_steps()) break;
        left = best.budget().extensions_left();
        detail::row_found r = crew.take(i);
        if (!r.same_with(left)) r = search(searches[i], left);
        if (judge_found(r.found) == control::stop) return std::move(best).result(keep);
      }
    }
    // The next row only for microbatch sizes that some of the best plans have.
    if (best.any_fitted()) {
      const auto promising = [kept = best.kept()](int b) {
        return std::any_of(kept.begin(), kept.end(), [&](const plan& p) { return p.microbatch_size == b; });
      };
      std::erase_if(sizes, [&](int b) { return !promising(b); });
      continue;
    }
    const plan blank = blank_plan(problem, "dora", sizes.front());  // judge what comes nearest, so that the answer says what is missing
    const device_space space = std::move(options.orders(tables, sizes.front()).front());
    const detail::row_search whatever_it_takes{blank, &space, warmup_rule::one, false};
    if (judge_found(search(whatever_it_takes, best.budget().extensions_left()).found) == control::stop) return std::move(best).result(keep);
    static_cast<void>(judge_new(least_overflow(tables, space, blank)));
  }
  for (plan& p : polish(problem, objective, best.kept(), rows, options.polish, best.budget())) {
    if (judge_new(std::move(p)) == control::stop) break;
  }
  static_cast<void>(best.out_of_steps());
  return std::move(best).result(keep);
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const candidate_observer& observer) {
  return dora_partitioner(problem, objective, keep, partitioner_options{}, observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
