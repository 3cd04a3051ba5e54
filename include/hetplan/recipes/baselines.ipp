// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/baselines.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/sorting.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep,
                                       const candidate_observer& observer) {
  check_keep(keep, "zero_bubble");
  planning_problem part = problem;
  const auto named = [](plan_result r) {
    for (auto& [p, e] : r.plans)
      p.planner = "zero-bubble" + (p.planner.find(',') == std::string::npos ? "" : p.planner.substr(p.planner.find(',')));
    return r;
  };
  if (problem.job.workload.mode != mode::training) return named(pipeline(problem, objective, keep, observer));
  constexpr int tried = 5;
  candidate_rounds rounds(2, objective, observer);
  part.steps = std::max(1LL, problem.steps / 2);
  part.with_bounds = false;
  plan_result found = pipeline(part, objective, std::max(keep, tried), rounds.part());
  if (found.plans.empty() && found.status.result == outcome::none_found && problem.with_bounds) {
    if (auto proof = prove_infeasible(problem)) found.status = {outcome::infeasible, found.status.reason, std::move(proof)};
  }
  if (found.plans.empty() || (!found.status.ok() && !found.out_of_steps)) return named(std::move(found));

  planning_problem ordered = problem;
  job& j = ordered.job;
  if (j.orders.empty()) {
    j.orders = {order_rule::original, order_rule::automatic, order_rule::zb_v, order_rule::v_half, order_rule::v_min};
    j.only_orders = true;
  }
  return named(schedule::choose_orders(ordered, objective, std::move(found), keep, rounds.part()));
}

namespace detail {

[[nodiscard]] std::vector<device_id> fastest_first(const cluster& c);

/// Deals out devices, fastest first, so that every virtual worker gets its part of each kind. Returns 1 for members, by worker and device.
[[nodiscard]] std::vector<std::vector<char>> virtual_workers(const cluster& c, std::size_t workers);

}  // namespace detail

}  // namespace hetplan::recipes

namespace hetplan::recipes::detail {

HETPLAN_INLINE std::vector<device_id> fastest_first(const cluster& c) {
  std::vector<device_id> by_rate;
  for (const device& d : c.devices()) by_rate.push_back(d.id);
  sort_stably(by_rate, [&](device_id a, device_id b) { return c[a].total_compute() > c[b].total_compute(); });
  return by_rate;
}

HETPLAN_INLINE std::vector<std::vector<char>> virtual_workers(const cluster& c, std::size_t workers) {
  const std::vector<device_id> by_rate = fastest_first(c);
  std::vector<std::vector<char>> members(workers, std::vector<char>(c.size(), 0));
  for (std::size_t i = 0; i < by_rate.size(); ++i) members[i % workers][by_rate[i].index()] = 1;
  return members;
}

}  // namespace hetplan::recipes::detail

namespace hetplan::recipes {

HETPLAN_INLINE plan_result hetpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/,
                                   const candidate_observer& observer) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(without_memory_limits(problem.cluster));
  std::vector<bytes_per_second> rates;
  for (const resource& r : view.network().resources()) rates.push_back(r.capacity);
  const device_id server = detail::fastest_first(view).front();
  double slowest_rate = std::numeric_limits<double>::infinity();
  for (const bytes_per_second r : rates) slowest_rate = std::min(slowest_rate, r.value());
  const double exchange_s = 2 * trainable_bytes(chain, {.layers = all_layers(chain)}) / slowest_rate;

  step_budget budget(problem.steps);
  std::optional<plan> best;
  seconds shortest;
  for (std::size_t workers = 1; workers <= view.size(); ++workers) {
    if (problem.job.batch % static_cast<int>(workers) != 0) continue;
    job share = problem.job;
    share.batch /= static_cast<int>(workers);
    share.pins.clear();  // which the ranking asks of the whole plan
    for (const int size : problem.job.candidate_microbatch_sizes()) {
      if (share.batch % size != 0 || (best && budget.spent())) continue;
      share.microbatch_sizes = {size};
      plan p = blank_plan(problem, "hetpipe", size);
      p.schedule.kind = schedule_kind::one_f_one_b;  // like the schedule inside workers
      seconds round;
      for (const auto& members : detail::virtual_workers(view, workers)) {
        const cluster_part part = part_of(view, members, rates);
        planning_problem own{chain, part.devices, problem.cost, share, problem.models};
        const plan inside = choose_on_view(own, "hetpipe", chain, part.devices, {.law = largest_step{}, .largest_group = 1}, budget);
        round = std::max(round, detail::estimated_latency(own, inside, chain, part.devices));
        for (stage s : rename_devices(inside, part.original, view.size()).stages) {
          s.name = "w" + std::to_string(p.pipelines.size()) + s.name;
          s.pipeline = static_cast<int>(p.pipelines.size());
          p.stages.push_back(std::move(s));
        }
        p.pipelines.push_back(share.batch);
      }
      if (workers == 1) p.pipelines.clear();
      if (workers > 1 && problem.job.workload.mode == mode::training) {
        p.parameter_server = server;
        round += seconds(exchange_s);
      }
      set_warmup(p, chain, warmup_rule::depth);
      if (best && round >= shortest) continue;
      best = std::move(p);
      shortest = round;
    }
  }
  return judge_choice(problem, objective, *std::move(best), budget, observer);
}

}  // namespace hetplan::recipes
