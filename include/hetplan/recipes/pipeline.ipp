// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/pipeline.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep,
                                     const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto total = static_cast<long long>(sizes.size() * problem.cluster.size());
  for (const device& d : problem.cluster.devices()) {
    for (const int size : sizes) {
      plan p = blank_plan(problem, "on-device", size);
      p.stages = {{.name = "s0", .layers = all_layers(problem.model), .devices = {{d.id, size}}}};
      if (best.consider(std::move(p), total, observer) == control::stop) return std::move(best).result();
    }
  }
  return std::move(best).result();
}

namespace detail {

HETPLAN_INLINE std::vector<device_id> as_listed(const cluster& c) {
  std::vector<device_id> all;
  for (const device& d : c.devices()) all.push_back(d.id);
  return all;
}

HETPLAN_INLINE std::vector<device_id> by_forward_time(const planning_problem& problem) {
  const stage whole{.name = "s0", .layers = all_layers(problem.model)};
  const int size = problem.job.candidate_microbatch_sizes().front();
  std::vector<double> time_s;
  for (const device& d : problem.cluster.devices()) {
    time_s.push_back(stage_time_s(problem.cost, problem.model, whole, {d.id, size}, d, phase::forward, problem.job.workload.context));
  }
  std::vector<device_id> order = as_listed(problem.cluster);
  std::stable_sort(order.begin(), order.end(), [&](device_id a, device_id b) { return time_s[a.index()] < time_s[b.index()]; });
  return order;
}

}  // namespace detail

HETPLAN_INLINE plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep,
                                    const candidate_observer& observer) {
  std::vector<std::vector<device_id>> orders{detail::as_listed(problem.cluster)};
  if (auto by_speed = detail::by_forward_time(problem); by_speed != orders.front()) orders.push_back(std::move(by_speed));
  return detail::cut_chain(
      problem, objective, keep, "pipeline", orders, 1,
      [](const auto& table, std::size_t first, std::size_t last, device_id d, int size) {
        return table.time(first, last, d, size).total_s;
      },
      [&](double bytes_per_sample, device_id from, device_id to, int size) {
        const auto rate = problem.cluster.network().peak_bandwidth(from, to);
        return rate.value() > 0 ? size * bytes_per_sample / rate.value() : std::numeric_limits<double>::infinity();
      },
      observer);
}

}  // namespace hetplan::recipes
