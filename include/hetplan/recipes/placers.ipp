// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/placers.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/estimate/bounds.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

/// Returns why a job is unsuitable for operator placement; empty if it is suitable.
[[nodiscard]] HETPLAN_INLINE std::string not_one_inference(const job& j, const std::string& planner) {
  if (j.workload.mode != mode::inference)
    return planner + " places the operators of one inference; the job is " + std::string(to_string(j.workload.mode));
  const auto& sizes = j.microbatch_sizes;
  if (!sizes.empty() && std::find(sizes.begin(), sizes.end(), j.batch) == sizes.end())
    return planner + " runs the batch in one piece; the job wants microbatches of other sizes than its batch of " + std::to_string(j.batch);
  return {};
}

/// Returns the status of plans. Infeasible placements of the whole batch prove nothing about plans that split it.
[[nodiscard]] HETPLAN_INLINE status status_of_plans(const planning_problem& problem, status of_placements) {
  if (of_placements.result != outcome::infeasible) return of_placements;
  if (auto proof = prove_infeasible(problem)) return {outcome::infeasible, std::move(of_placements.reason), std::move(proof)};
  return {outcome::none_found, "no placement of its operators, the whole batch at once: " + of_placements.reason};
}

/// Returns a schedule of blocks as one of single layers, with the same order and devices.
[[nodiscard]] HETPLAN_INLINE place::operator_schedule expand_schedule(const coarsen::blocks& blocks,
                                                                      const place::placement_table& of_blocks,
                                                                      const place::operator_schedule& s, const place::placement_table& t,
                                                                      const place::placement_rules& r) {
  std::vector<std::size_t> order, device(t.size());
  for (const std::size_t b : place::sequence_of(of_blocks, s)) {
    for (const layer_id l : blocks.layers[b]) {
      order.push_back(l.index());
      device[l.index()] = s.device[b];
    }
  }
  return place::schedule_in_order(t, r, order, device);
}

}  // namespace detail

HETPLAN_INLINE plan_result plan_placement(const planning_problem& problem, const any_objective& objective, const char* planner,
                                          const placement_view& view, const placement_search& search, const candidate_observer& observer) {
  using namespace place;
  require_function(search, planner, "a placement_search");
  const stopwatch clock;
  if (std::string why = detail::not_one_inference(problem.job, planner); !why.empty())
    return {.status = {outcome::none_found, std::move(why)}, .elapsed = seconds(clock.elapsed_s())};
  step_budget budget(problem.steps);
  struct attempt {
    coarsen::blocks blocks;
    placement_table table;
    operator_schedule found;
  };
  const auto place = [&](coarsen::blocks blocks, const auto& known_for, long long steps) {
    placement_table table = make_placement_table(problem, blocks);
    operator_schedule found = search(table, view.network, steps, known_for(table));
    budget.spend(found.steps);
    return attempt{std::move(blocks), std::move(table), std::move(found)};
  };
  const auto nothing = [](const placement_table&) { return operator_schedule(); };
  std::vector<attempt> attempts;
  if (coarsen::blocks fused = coarsen::fuse_operators(problem.model, view.fusion.value_or(coarsen::no_fusion()));
      fused.size() < problem.model.size())
    attempts.push_back(place(std::move(fused), nothing, budget.left() / 2));
  const auto expanded = [&](const placement_table& t) {
    if (attempts.empty() || !attempts.front().found.found()) return operator_schedule();
    return detail::expand_schedule(attempts.front().blocks, attempts.front().table, attempts.front().found, t, view.network);
  };
  attempts.push_back(place(coarsen::each_layer(problem.model), expanded, budget.left()));
  double bound_s = attempts.back().found.bound_s;
  if (view.network.copies == transfer_copies::per_edge && view.network.contention != contention::none)
    bound_s = std::min(bound_s, attempts.front().found.bound_s);
  status search_status = attempts.back().found.status;
  std::erase_if(attempts, [](const attempt& a) { return !a.found.found(); });
  if (attempts.empty())
    return {.status = detail::status_of_plans(problem, std::move(search_status)),
            .steps = budget.used(),
            .elapsed = seconds(clock.elapsed_s())};
  ranking best(problem, objective, 1, budget);
  if (budget.spent()) best.cut();
  double promised_s = std::numeric_limits<double>::infinity();
  for (const attempt& a : attempts) {
    promised_s = std::min(promised_s, a.found.makespan_s);
    const auto total = static_cast<long long>(attempts.size());
    if (best.consider(plan_of(problem, a.blocks, a.table, view.network, a.found, planner), total, observer) == control::stop) break;
  }
  // The table assumes peak bandwidth. If the simulator takes longer, a single device may be better.
  const attempt& single = attempts.back();
  const std::vector<ranked_plan> judged = best.kept();
  if (single.blocks.size() == problem.model.size() && (judged.empty() || !at_most(judged.front().evaluation.latency.value(), promised_s))) {
    const std::vector<std::size_t> order(single.table.order().begin(), single.table.order().end());
    for (std::size_t d = 0; d < problem.cluster.size(); ++d) {
      const std::vector<std::size_t> all_on_it(single.table.size(), d);
      if (largest_overflow_bytes(single.table, all_on_it) > 0) continue;
      const operator_schedule s = schedule_in_order(single.table, view.network, order, all_on_it);
      if (s.found() && best.consider(plan_of(problem, single.blocks, single.table, view.network, s, planner), 1, observer) == control::stop)
        break;
    }
  }
  plan_result answer = std::move(best).result();
  if (!answer.plans.empty()) answer.plans.front().evaluation.placement_bound = seconds(bound_s);
  if (answer.status.ok() && search_status.result == outcome::stopped) answer.status = std::move(search_status);
  answer.elapsed = seconds(clock.elapsed_s());
  return answer;
}

}  // namespace hetplan::recipes
