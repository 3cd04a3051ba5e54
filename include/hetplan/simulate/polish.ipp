// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/polish.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <hetplan/graph/light_boundaries.hpp>
#include <hetplan/partition/move_boundaries.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/simulate/quick_judgement.hpp>

namespace hetplan {

HETPLAN_INLINE std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                        const std::vector<layer_sequence>& rows, const polish_options& options, step_budget& budget) {
  const auto same_part = [&](const assignment& x, const assignment& y) {
    return x.samples == y.samples && problem.cluster[x.device].kind == problem.cluster[y.device].kind;
  };
  const auto same_group = [&](const stage& x, const stage& y) {
    return std::equal(x.devices.begin(), x.devices.end(), y.devices.begin(), y.devices.end(), same_part);
  };
  const auto alike = [&](const plan& a, const plan& b) {
    return a.microbatch_size == b.microbatch_size &&
           std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), same_group);
  };
  std::vector<plan> chosen;
  for (const plan& p : ranked) {
    if (chosen.size() == static_cast<std::size_t>(options.plans)) break;
    if (p.schedule.kind == schedule_kind::explicit_orders || !p.schedule.transfers.empty()) continue;  // they speak of its own stages
    if (std::none_of(chosen.begin(), chosen.end(), [&](const plan& c) { return alike(c, p); })) chosen.push_back(p);
  }
  const auto simulated = [&](const plan& p) {
    if (budget.spent()) return std::numeric_limits<double>::infinity();
    try {
      const auto [e, steps] = judge_quickly(problem, p);
      budget.spend(steps);
      return find_broken_limit(e, problem.cluster) ? std::numeric_limits<double>::infinity() : score(objective, e);
    } catch (const missing_route&) {  // neighbours of a plan may need one
      return std::numeric_limits<double>::infinity();
    }
  };
  // Both rounds, and rows that are alike, try the same plans: of one that was chosen, its moves differ in what follows.
  using moved_plan = std::vector<std::int64_t>;
  const auto name_of = [](const plan& p) {
    moved_plan name;
    for (const stage& s : p.stages) {
      for (const layer_id l : s.layers) name.push_back(l.value);
      for (const assignment& a : s.devices) name.insert(name.end(), {-1 - std::int64_t{a.device.value}, a.samples});
    }
    return name;
  };
  std::vector<std::map<moved_plan, double>> known(chosen.size());
  for (const layer_sequence& row : rows) {
    if (chosen.empty()) break;
    const layer_sequence moved = options.boundaries == polish_boundaries::of_layers ? each_layer_of(row) : row;
    const std::vector<std::size_t> light = light_boundaries(problem.model, moved);
    std::vector<std::size_t> all(moved.size() - 1);
    std::iota(all.begin(), all.end(), std::size_t{1});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto score_of = [&](plan& p) {
        fit_warmup(p, problem.model, problem.cluster, problem.models.memory);
        drop_usual_warmup(p, problem.model);
        moved_plan name = name_of(p);
        const auto it = known[i].find(name);
        return it != known[i].end() ? it->second : known[i].emplace(std::move(name), simulated(p)).first->second;
      };
      plan& p = chosen[i];
      p.predicted.reset();
      p = partition::move_boundaries(std::move(p), moved, light, score_of, options.judged);
      p = partition::move_boundaries(std::move(p), moved, all, score_of, options.judged);
    }
  }
  return chosen;
}

HETPLAN_INLINE std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                        const std::vector<layer_sequence>& rows, const polish_options& options) {
  step_budget budget(problem.steps);
  return polish(problem, objective, ranked, rows, options, budget);
}

}  // namespace hetplan
