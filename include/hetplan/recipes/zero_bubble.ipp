// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/zero_bubble.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/partition/bottleneck_chain.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/simulate/candidate_rounds.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE std::optional<plan> folded(const plan& p, const planning_problem& problem) {
  const planning_graph& model = problem.model;
  const std::size_t devices = p.stages.size();
  const bool single = std::ranges::all_of(p.stages, [](const stage& s) { return s.devices.size() == 1 && s.columns.empty(); });
  if (devices < 2 || !single || p.pipeline_count() > 1) return {};
  const layer_sequence sequence = sequence_of(model);
  const prefix_table table(model, sequence, problem.cluster, problem.cost, problem.models.memory, p.workload, p.microbatch_size);
  const sequence_cuts cuts(model, sequence);
  std::vector<double> cut_bytes;
  for (std::size_t l = 0; l < model.size(); ++l) {
    const auto [forward, gradient] = cuts.bytes_in(l, model.size());
    cut_bytes.push_back(forward + gradient);
  }
  const auto positions = detail::cut_positions(cut_bytes);
  if (positions.size() < 2 * devices) return {};
  const auto device_at = [&](std::size_t i) { return p.stages[i < devices ? i : 2 * devices - 1 - i].devices.front().device; };
  const auto chains = partition::bottleneck_chain(
      positions, model.size(), 2 * devices, static_cast<int>(2 * devices),
      [&](std::size_t first, std::size_t last, std::size_t i, int) {
        return table.time(first, last, device_at(i), p.microbatch_size).total_s;
      },
      [&](std::size_t position, std::size_t from, std::size_t to) {
        return device_at(from) == device_at(to)
                   ? 0.0
                   : p.microbatch_size * cut_bytes[position] / problem.cluster.network().peak_bandwidth(device_at(from), device_at(to)).value();
      });
  const partition::chain_cut& cut = chains.back();
  if (chains.size() < 2 * devices || !cut.exists()) return {};
  plan v = p;
  v.stages.clear();
  v.predicted.reset();
  v.schedule.warmup.clear();
  v.schedule.transfers.clear();
  for (std::size_t i = 0; i < cut.first.size(); ++i) {
    const std::size_t last = i + 1 < cut.first.size() ? cut.first[i + 1] : model.size();
    v.stages.push_back({.name = "s" + std::to_string(i),
                        .layers = sequence.layers_of(cut.first[i], last),
                        .devices = {{device_at(i), p.microbatch_size}}});
  }
  return v;
}

HETPLAN_INLINE plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep,
                                       const candidate_observer& observer) {
  check_keep(keep, "zero_bubble");
  planning_problem part = problem;
  const auto named = [](plan_result r) {
    for (plan& p : r.plans) p.planner = "zero-bubble" + (p.planner.find(',') == std::string::npos ? "" : p.planner.substr(p.planner.find(',')));
    return r;
  };
  if (problem.job.workload.mode != mode::training) return named(pipeline(problem, objective, keep, observer));
  constexpr int tried = 5;
  candidate_rounds rounds(2, objective, observer);
  part.steps = std::max(1LL, problem.steps / 2);
  part.with_bounds = false;
  plan_result found = pipeline(part, objective, std::max(keep, tried), rounds.part());
  if (found.plans.empty() || (!found.status.ok() && !found.out_of_steps)) return named(std::move(found));

  planning_problem ordered = problem;
  job& j = ordered.job;
  const bool usual = j.orders.empty();
  if (usual) {
    j.orders = {order_rule::original, order_rule::automatic};
    j.only_orders = true;
  }
  std::vector<plan> folds;
  for (const plan& p : found.plans) {
    if (auto v = folded(p, problem); v && std::ranges::find(folds, *v) == folds.end()) folds.push_back(*std::move(v));
  }
  if (usual && !folds.empty()) j.orders.insert(j.orders.end(), {order_rule::zb_v, order_rule::v_half, order_rule::v_min});
  plan_result all = found;
  if (j.only_orders || usual) {
    for (plan& v : folds) all.plans.push_back(std::move(v));
  }
  return named(schedule::choose_orders(ordered, objective, std::move(all), keep, rounds.part()));
}

}  // namespace HETPLAN_NAMESPACE::recipes
