// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What planners that do not ask the judge have in common: they search a view, believe their own estimate, and have one answer.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/graph/light_boundaries.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/partition/least_overflow.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/estimate.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// How a planner searches.
struct view_search {
  latency_rule steps = latency_rule::dominant_step;         ///< what its search minimises
  std::vector<warmup_rule> warmups = {warmup_rule::depth};  ///< the next one only where nothing fitted under those before
  schedule_kind schedule = schedule_kind::one_f_one_b;
  int largest_group = std::numeric_limits<int>::max();  ///< devices of a stage
  bool memory_first = false;                            ///< devices by memory, largest first, instead of all orders
  int k = 100;                                          ///< partial plans per cell; exact where no cell has more that matter
};

namespace detail {

/// Infinite where a plan has too many tasks to be judged.
template <class Problem>
[[nodiscard]] seconds estimated_latency(const Problem& problem, const plan& p, const planning_graph& model, const cluster& devices) {
  if (too_large_an_expansion(p, model)) return seconds(std::numeric_limits<double>::infinity());
  return estimate(p, model, devices, problem.cost, problem.models.memory, problem.models.energy).latency;
}

}  // namespace detail

/// The best plan of a view by the planner's own search: exact for its estimate where k and the orders allow. Among
/// microbatch sizes it takes the one whose iteration is shortest by the dominant-step estimate, still on the view.
///
/// @param model    as the planner sees it: layers keep their numbers.
/// @param devices  as the planner sees them: devices keep theirs.
/// @param budget   is spent; when it is, the best so far is the answer.
/// @return         where nothing fits the view, what comes nearest to fitting, with the last of the planner's warm-ups.
/// Complexity      sizes x orders x partition::two_substate_dp without energy.
/// Throws          as two_substate_dp.
/// Source          ours; the planners' own papers stand in their recipes. Deviations for all of them: devices may be left out,
///                 every microbatch size of the job competes.
template <class Problem>
[[nodiscard]] plan choose_on_view(const Problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how, step_budget& budget) {
  using namespace partition;
  const layer_sequence row = sequence_of(model);
  const auto sizes = problem.job.candidate_microbatch_sizes(std::min(devices.size(), static_cast<std::size_t>(how.largest_group)));
  const auto tables_of = [&](const layer_sequence& s) {
    return search_tables(model, s, devices, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                         problem.job.largest_share());
  };
  const search_tables tables = tables_of(row);
  const auto blank = [&](int size) {
    plan p = problem.blank(planner, size);
    p.schedule.kind = how.schedule;
    return p;
  };
  const auto spaces = [&](int size) {
    const int largest = std::min(size, how.largest_group);
    return how.memory_first ? std::vector{by_memory(tables, largest)} : orders_to_search(tables, largest);
  };
  std::optional<plan> best;
  seconds shortest;
  for (const warmup_rule warmup : how.warmups) {
    search_options options{.plans = 1, .warmup = warmup, .steps = how.steps, .keep_budgets = false};
    for (const int size : sizes) {
      for (const device_space& space : spaces(size)) {
        if (budget.spent()) break;
        options.most_extensions = budget.extensions_left();
        search_result found = two_substate_dp(tables, space, blank(size), minimize_latency{}, top_k{how.k}, options);
        budget.spend_extensions(found.counts.extended);
        if (found.plans.empty()) continue;
        plan& p = found.plans.front().plan;
        const seconds t = detail::estimated_latency(problem, p, model, devices);
        if (best && t >= shortest) continue;
        best = std::move(p);
        shortest = t;
      }
    }
    if (best) return *std::move(best);
  }
  const layer_sequence coarse = light_blocks(model, 60);  // every cut of many layers takes long and tells no more
  plan nearest = least_overflow(tables_of(coarse), spaces(sizes.front()).front(), blank(sizes.front()));
  set_warmup(nearest, model, how.warmups.back());  // not one that the planner does not have
  return nearest;
}

template <class Problem>
[[nodiscard]] plan choose_on_view(const Problem& problem, const char* planner, const planning_graph& model, const cluster& devices,
                                  const view_search& how) {
  step_budget budget(problem.steps);
  return choose_on_view(problem, planner, model, devices, how, budget);
}

namespace detail {

/// Devices may lack accelerators that a view gave them: each splits tensors as far as it can.
inline void keep_own_degrees(plan& p, const planning_graph& model, const cluster& c) {
  for (stage& s : p.stages) {
    for (assignment& a : s.devices) {
      const device& d = c[a.device];
      const auto profiled = [&](layer_id l) { return model[l].profile_for(d.kind) != nullptr; };
      const bool splits = d.interconnect && std::none_of(s.layers.begin(), s.layers.end(), profiled);
      a.tensor_parallel = splits ? std::min(a.tensor_parallel, d.accelerators) : 1;
    }
  }
}

}  // namespace detail

/// A planner's one answer, judged on the cluster as it is: infeasible where it breaks a limit there, memory first of all, or
/// needs a route that is missing. A device that has fewer accelerators than in the view, or a profile, which is of one
/// accelerator, splits tensors as far as it can.
///
/// @param budget  of which the choice took its part: spent, the answer is `stopped`.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result judge_choice(const Problem& problem, const Objective& objective, plan chosen, const step_budget& budget,
                                       Observers&... observers) {
  detail::keep_own_degrees(chosen, problem.model, problem.cluster);
  ranking only(problem, objective, 1, budget);
  if (budget.spent()) only.cut();
  static_cast<void>(only.consider(std::move(chosen), 1, observers...));
  return std::move(only).result();
}

template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result judge_choice(const Problem& problem, const Objective& objective, plan chosen, Observers&... observers) {
  return judge_choice(problem, objective, std::move(chosen), step_budget(problem.steps), observers...);
}

/// The choice of a planner on its view, judged on the cluster as it is: choose_on_view and judge_choice with one budget.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result plan_on_view(const Problem& problem, const Objective& objective, const char* planner, const planning_graph& model,
                                       const cluster& devices, const view_search& how, Observers&... observers) {
  step_budget budget(problem.steps);
  plan chosen = choose_on_view(problem, planner, model, devices, how, budget);
  return judge_choice(problem, objective, std::move(chosen), budget, observers...);
}

}  // namespace HETPLAN_NAMESPACE::recipes
