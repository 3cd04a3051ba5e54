// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipelines of balanced stages of consecutive layers on single devices, within memory; one device alone; even splits.

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

/// On-device: the whole model on each device alone, with every microbatch size, without communication.
/// Source  the baseline "on-device" of Asteroid, section 5.1.
[[nodiscard]] plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                    const candidate_observer& observer = {});

namespace detail {

[[nodiscard]] std::vector<device_id> as_listed(const cluster& c);

/// Returns all devices by the cost model's time for the forward of the smallest microbatch through the whole model, shortest first; ties:
/// the cluster's order.
[[nodiscard]] std::vector<device_id> by_forward_time(const planning_problem& problem);

/// Judges, for every microbatch size, device order and number of stages from `fewest` on, the cut into consecutive layers with the least
/// largest cost, devices in that order, within memory. Under 1F1B with warm-up 2 depth - 1, and if memory requires it depth, then 1. Plans
/// that several orders or warm-ups share are simulated once.
///
/// @param orders      distinct orders of devices, of which a cut may skip some.
/// @param stage_cost  (table, first layer, last layer, device, microbatch size) -> cost of a stage.
/// @param cut_cost    (forward and gradient bytes per sample, device before, device behind, microbatch size) -> cost of a boundary.
/// Complexity         O(B O Q N^2 L^2) for B sizes, O orders, Q <= max_stages, N devices, L cut positions.
template <class StageCost, class CutCost>
[[nodiscard]] plan_result cut_chain(const planning_problem& problem, const any_objective& objective, int keep, const char* planner,
                                    const std::vector<std::vector<device_id>>& orders, int fewest, const StageCost& stage_cost,
                                    const CutCost& cut_cost, const candidate_observer& observer) {
  const int max_stages = std::max(16, fewest);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const planning_graph& model = problem.model;
  const cluster& devices = problem.cluster;
  const hetplan::job& job = problem.job;
  ranking best(problem, objective, keep);
  const auto sizes = job.candidate_microbatch_sizes();
  const int stages = std::min(max_stages, static_cast<int>(std::min(devices.size(), model.size())));
  const auto total = static_cast<long long>(sizes.size() * orders.size()) * stages;
  const bool training = job.workload.mode == mode::training, warms_up = training && job.schedule == schedule_kind::one_f_one_b;

  const layer_sequence sequence = sequence_of(model);
  const prefix_table table(model, sequence, devices, problem.cost, problem.models.memory, job.workload, sizes.back());
  const sequence_cuts cuts(model, sequence);
  std::vector<double> cut_bytes;  // forward and gradient
  for (std::size_t l = 0; l < model.size(); ++l) {
    const auto [forward_bytes, gradient_bytes] = cuts.bytes_in(l, model.size());
    cut_bytes.push_back(forward_bytes + (training ? gradient_bytes : 0));
  }
  const auto positions = partition::cut_positions(cut_bytes);
  for (const int size : sizes) {
    const plan blank = blank_plan(problem, planner, size);
    /// Returns the share of a device's memory that a stage with `following` stages behind it needs.
    const auto memory_share = [&](std::size_t first, std::size_t last, device_id d, int following, warmup_rule rule) {
      const int kept = microbatches_in_flight(blank, warmup_of(rule, following + 1));
      const double needed = table.state_bytes(first, last) +
                            size * (kept * table.activation_bytes(first, last) + blank.microbatches * table.cache_bytes(first, last));
      return needed / devices[d].usable_memory().value();
    };
    std::vector<std::pair<plan, bool>> judged;  // true if it kept the limits
    /// Judges a cut unless it is known. Returns true if it keeps the limits, nothing if an observer stops the search.
    const auto judge_cut = [&](const partition::chain_cut& cut, const std::vector<device_id>& order,
                               warmup_rule rule) -> std::optional<bool> {
      plan p = blank;
      for (std::size_t i = 0; i < cut.first.size(); ++i) {
        const std::size_t last = i + 1 < cut.first.size() ? cut.first[i + 1] : model.size();
        p.stages.push_back(
            {.name = "s" + std::to_string(i), .layers = sequence.layers_of(cut.first[i], last), .devices = {{order[cut.device[i]], size}}});
      }
      set_warmup(p, model, rule);
      const auto known = std::find_if(judged.begin(), judged.end(), [&](const auto& j) { return j.first == p; });
      if (known != judged.end()) return known->second;
      judged.emplace_back(p, false);
      if (best.consider(std::move(p), total, observer) == control::stop) return std::nullopt;
      return judged.back().second = best.last_fitted();
    };

    for (const std::vector<device_id>& order : orders) {
      std::vector<char> fitted(static_cast<std::size_t>(stages), 0);
      for (const warmup_rule rule : warmup_rules) {
        const auto chains = partition::bottleneck_chain(
            positions, model.size(), order.size(), stages,
            [&](std::size_t first, std::size_t last, std::size_t d, int following) {
              return memory_share(first, last, order[d], following, rule) > 1 ? inf : stage_cost(table, first, last, order[d], size);
            },
            [&](std::size_t position, std::size_t from, std::size_t to) {
              return cut_cost(cut_bytes[position], order[from], order[to], size);
            });
        for (std::size_t q = static_cast<std::size_t>(fewest - 1); q < chains.size(); ++q) {
          if (fitted[q] || !chains[q].exists()) continue;
          const std::optional<bool> fits = judge_cut(chains[q], order, rule);
          if (!fits) return std::move(best).result();
          fitted[q] = *fits;
        }
        if (!warms_up) break;
      }
    }
    if (best.any_fitted()) continue;
    // Nothing fits: judge the nearest cuts, so that the answer says what overflows and by how much.
    for (const std::vector<device_id>& order : orders) {
      const auto nearest = partition::bottleneck_chain(
          positions, model.size(), order.size(), stages,
          [&](std::size_t first, std::size_t last, std::size_t d, int following) {
            return memory_share(first, last, order[d], following, warmup_rule::one);
          },
          [](std::size_t, std::size_t, std::size_t) { return 0.0; });
      for (std::size_t q = static_cast<std::size_t>(fewest - 1); q < nearest.size(); ++q) {
        if (nearest[q].exists() && !judge_cut(nearest[q], order, warmup_rule::one)) return std::move(best).result();
      }
    }
  }
  return std::move(best).result();
}

}  // namespace detail

/// Balanced pipelines: the largest step, a stage or both transfers of a boundary at peak bandwidth, is minimal. Stages take devices, with
/// gaps, in the cluster's order and by speed (detail::by_forward_time); the objective chooses by the judge's results. No other order is
/// tried: list the devices in the order that you want.
///
/// Complexity  see detail::cut_chain.
/// Determinism  ties: the cluster's order.
/// Source      balanced contiguous partitioning as in GPipe and PipeDream, judged under contention; the orders are our own.
[[nodiscard]] plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                   const candidate_observer& observer = {});

/// Even split, the start of an ablation: consecutive layers, one stage per device in the cluster's order, with the least largest forward
/// FLOP of a stage. Device speeds and network are ignored.
///
/// @return     none_found if no such cut fits, or if the model has fewer layers than the cluster devices.
/// Complexity  see detail::cut_chain.
/// Source      the partition that Dora's ablation (Fig 14) uses for its scheduler alone.
[[nodiscard]] inline plan_result even_split(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                            const candidate_observer& observer = {}) {
  std::vector<double> before{0};  // by layer: FLOP of the layers before it
  for (const layer& l : problem.model.layers()) before.push_back(before.back() + l.forward_flops.value());
  return detail::cut_chain(
      problem, objective, keep, "even-split", {detail::as_listed(problem.cluster)}, static_cast<int>(problem.cluster.size()),
      [&](const auto&, std::size_t first, std::size_t last, device_id, int) { return before[last] - before[first]; },
      [](double, device_id, device_id, int) { return 0.0; }, observer);
}

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/pipeline.ipp>
#endif
