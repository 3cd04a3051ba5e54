// SPDX-License-Identifier: BSL-1.0
#pragma once
/// HetPipe: pipelines inside virtual workers, data parallelism among them through a parameter server.

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/part.hpp>
#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/cluster/without.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/rename_devices.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

[[nodiscard]] std::vector<device_id> fastest_first(const cluster& c);

/// Deals the devices out, fastest first, so that every virtual worker gets its part of each kind.
[[nodiscard]] std::vector<std::vector<char>> virtual_workers(const cluster& c, std::size_t workers);

}  // namespace detail

/// Sees a chain, unequal devices and bandwidths between pairs; neither memory nor contention.
///
/// For every number of virtual workers that divides the batch: devices are dealt out so that workers are alike (equal
/// distribution), each worker is a pipeline of single devices whose largest step is smallest, and after the iteration every
/// stage sends its gradients to the server, the fastest device, and gets the sum back. The number and the microbatch size for
/// which the slowest worker's round and the exchange of one model there and back take least time win.
///
/// @return  one plan, the planner's choice.
/// Source   HetPipe (Park et al., 2020), sections 3, 5 and 6. Deviations: synchronous (staleness 0); one server; a dynamic program instead
///          of an integer one; see choose_on_view.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result hetpipe(const Problem& problem, const Objective& objective, int /*keep*/ = 1, Observers&&... observers) {
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
    for (const int size : problem.job.candidate_microbatch_sizes()) {
      if (share.batch % size != 0 || (best && budget.spent())) continue;
      share.microbatch_sizes = {size};
      plan p = problem.blank("hetpipe", size);
      p.schedule.kind = schedule_kind::one_f_one_b;  // as inside the workers
      seconds round;
      for (const auto& members : detail::virtual_workers(view, workers)) {
        const cluster_part part = part_of(view, members, rates);
        planning_problem own{chain, part.devices, problem.cost, share, problem.models};
        const plan inside =
            choose_on_view(own, "hetpipe", chain, part.devices, {.steps = latency_rule::largest_step, .largest_group = 1}, budget);
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
  return judge_choice(problem, objective, *std::move(best), budget, observers...);
}

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/hetpipe.ipp>
#endif
